// Sliders, and the pictures that the kernel draws for where they stand. No network, no other module.

const isDark = () => {
  const lab = document.body.dataset.jpThemeLight;
  if (lab !== undefined) return lab === "false";
  if (document.body.className.includes("vscode-")) return !document.body.classList.contains("vscode-light");
  return matchMedia("(prefers-color-scheme: dark)").matches;
};

const made = (tag, properties = {}, children = []) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

// One slider or menu: `stops` are words, and what is sent is the place of one.
const control = (spec, send) => {
  const name = made("span", { className: "lkm-name", textContent: spec.label });
  const said = made("output", { className: "lkm-said" });
  let entry;
  if (spec.menu) {
    entry = made("select", {}, spec.stops.map((word, place) => made("option", { value: String(place), textContent: word })));
    said.hidden = true;
  } else {
    entry = made("input", { type: "range", min: "0", max: String(spec.stops.length - 1), step: "1" });
  }
  entry.dataset.name = spec.name;
  entry.setAttribute("aria-label", spec.label);
  const show = (place) => {
    entry.value = String(place);
    said.textContent = spec.stops[place];
    entry.setAttribute("aria-valuetext", spec.stops[place]);
  };
  entry.addEventListener("input", () => { show(Number(entry.value)); send(spec.name, Number(entry.value)); });
  return { element: made("label", { className: "lkm-control" }, [name, entry, said]), show };
};

const render = ({ model, el }) => {
  el.classList.add("lkm");
  let waiting = null;
  const note = made("p", { className: "lkm-note" });
  note.setAttribute("role", "status");
  const send = (name, place) => {
    model.set("places", { ...model.get("places"), [name]: place });
    model.save_changes();
    waiting ??= setTimeout(() => { note.textContent = "The kernel does not answer: run this cell again."; }, 3000);
  };
  const controls = Object.fromEntries(model.get("controls").map((spec) => [spec.name, control(spec, send)]));
  const back = made("button", { type: "button", className: "lkm-back", textContent: "Back to the start" });
  back.addEventListener("click", () => {
    model.set("places", { ...model.get("start") });
    model.save_changes();
    follow();
  });
  const pictures = made("div", { className: "lkm-pictures" });
  const said = made("p", { className: "lkm-words" });
  const follow = () => Object.entries(model.get("places")).forEach(([name, place]) => controls[name].show(place));
  const colour = () => {
    el.classList.toggle("lkm-dark", isDark());
    pictures.querySelectorAll("svg").forEach((svg) => {
      svg.classList.toggle("dark", isDark());
      svg.classList.toggle("light", !isDark());
    });
  };
  const draw = () => {
    const shown = model.get("shown");
    clearTimeout(waiting);
    waiting = null;
    note.textContent = "";
    pictures.innerHTML = shown.svgs.join("");
    said.textContent = shown.said;
    colour();
  };
  el.append(
    made("p", { className: "lkm-title", textContent: model.get("title") }),
    made("div", { className: "lkm-controls" }, [...Object.values(controls).map((one) => one.element), back]),
    pictures, said, made("p", { className: "lkm-source", textContent: model.get("source") }), note,
  );
  // JupyterLab looks for this on the element that has the focus: else it takes the arrows for its own cursor.
  el.querySelectorAll("input, select, button").forEach((one) => one.setAttribute("data-lm-suppress-shortcuts", "true"));
  follow();
  draw();
  model.on("change:shown", draw);
  model.on("change:places", follow);
  const watched = new MutationObserver(colour);
  watched.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  return () => { watched.disconnect(); clearTimeout(waiting); };
};

export default { render };
