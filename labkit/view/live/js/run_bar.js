// A bar under the cell that runs: how far it is, the seconds so far and left, the loss. It belongs to no output.

const STYLE = "box-sizing:border-box;display:flex;flex-wrap:wrap;gap:.2em .9em;align-items:center;padding:.35em .9em;margin:2px 0;"
  + "border:1px solid var(--jp-border-color2,#d0d7de);border-radius:3px;font:13px/1.4 var(--jp-ui-font-family,system-ui,sans-serif);"
  + "color:var(--jp-ui-font-color1,#1b1f24);background:var(--jp-layout-color1,#fff);font-variant-numeric:tabular-nums;";
const FLOATS = "position:fixed;right:1em;bottom:2.2em;z-index:1000;box-shadow:0 2px 8px #0004;";

/** The cell that runs: of those that wait or run, the first on the page. */
function runningCell() {
  const prompts = document.querySelectorAll(".jp-CodeCell .jp-InputArea-prompt, .jp-CodeCell .jp-InputPrompt");
  const found = [...prompts].find((prompt) => prompt.textContent.includes("[*]"));
  const cell = found && found.closest(".jp-CodeCell");
  return cell && cell.querySelector(".jp-Cell-inputWrapper");
}

/** Let the figures of cells follow a dark theme, from the first run on; once a page. */
function figuresFollowTheTheme(rule) {
  const own = document.getElementById("labkit-figures") || document.head.appendChild(document.createElement("style"));
  own.id = "labkit-figures";
  own.textContent = rule;
}

export default {
  initialize({ model }) {
    figuresFollowTheTheme(model.get("rule"));
    const bar = document.createElement("div");
    bar.className = "labkit-run-bar";
    bar.setAttribute("role", "status");
    bar.style.cssText = STYLE;
    const progress = document.createElement("progress");
    progress.max = 1;
    progress.style.cssText = "flex:0 1 14em;min-width:6em;accent-color:#0072B2;";
    progress.setAttribute("aria-label", "how much of the run is done");
    const said = document.createElement("span");
    bar.append(progress, said);
    const place = () => {
      const input = runningCell();
      if (input) { input.after(bar); bar.style.cssText = STYLE + "margin-left:var(--jp-cell-prompt-width,64px);"; }
      else { document.body.append(bar); bar.style.cssText = STYLE + FLOATS; }
    };
    const draw = () => {
      if (model.get("over")) { bar.remove(); return; }
      if (!bar.isConnected) place();
      const fraction = model.get("fraction");
      if (fraction > 0) progress.value = fraction; else progress.removeAttribute("value");
      said.textContent = model.get("said");
    };
    model.on("change:said", draw);
    model.on("change:over", draw);
    model.on("destroy", () => bar.remove());
    const first = setTimeout(draw, 150);
    return () => { clearTimeout(first); bar.remove(); };
  },
};
