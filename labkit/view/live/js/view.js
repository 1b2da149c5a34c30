// The widget: what is on the page, what keys and pointer do, what comes from the kernel.

const FRAME_MS = 80; // while a run goes on: more than ten pictures a second, and the rest of the time is the ranks'
const KEYS = "Left and right arrows step by step, with Shift moment by moment; plus and minus zoom; Home and End; 0 shows the whole run; Escape stops a run.";

const make = (tag, of = {}, inside = []) => {
  const { className = "", text = "", ...attributes } = of;
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...inside);
  return element;
};

class View {
  constructor(model, root) {
    Object.assign(this, { model, run: null, pinned: null, running: false, follows: true, chosen: -1, moment: null, view: { from: 0, to: 1000 } });
    this.build(root);
    this.listen(root);
    this.frames = 0;
    model.send({ ask: "hello" });
  }

  build(root) {
    this.title = make("strong", { className: "lk-title" });
    this.state = make("span", { className: "lk-state", "aria-live": "polite" });
    this.lanes = make("canvas", { role: "img" });
    this.tip = make("div", { className: "lk-tip", role: "tooltip" });
    this.stage = make("div", { className: "lk-stage", tabindex: "0", role: "group", "aria-label": `Timeline of the run. ${KEYS}`, title: "" }, [this.lanes, this.tip]);
    const button = (text, label, act) => {
      const made = make("button", { type: "button", text, title: label, "aria-label": label });
      made.addEventListener("click", act);
      return made;
    };
    this.slider = make("input", { type: "range", min: "0", max: "0", value: "0", "aria-label": "step" });
    this.slider.addEventListener("input", () => this.choose(Number(this.slider.value)));
    this.tools = make("div", { className: "lk-tools", role: "toolbar", "aria-label": "One step at a time" }, [
      button("◀", "one step back (left arrow)", () => this.step(-1)), this.slider, button("▶", "one step on (right arrow)", () => this.step(1)),
      button("◂ moment", "to the moment before at which something begins or ends (Shift and left arrow)", () => this.shift(-1)),
      button("moment ▸", "to the next moment at which something begins or ends (Shift and right arrow)", () => this.shift(1)),
      button("+", "zoom in", () => this.zoom(0.5)), button("−", "zoom out", () => this.zoom(2)), button("all", "show all of it (0)", () => this.whole()),
    ]);
    this.said = make("p", { className: "lk-said", "aria-live": "polite" });
    this.legend = make("ul", { className: "lk-legend", "aria-label": "what the patterns mean" });
    this.curve = make("canvas", { className: "lk-curve", role: "img" });
    this.curveSaid = make("p", { className: "lk-said" });
    this.words = make("ul", { className: "lk-words", "aria-label": "how the two runs differ" });
    this.body = make("div", { className: "lk-body" }, [this.stage, this.tools, this.said, this.legend, this.curve, this.curveSaid, this.words]);
    this.body.hidden = true;
    this.root = make("div", { className: "lk-live", "data-lm-suppress-shortcuts": "true" }, [make("div", { className: "lk-head" }, [this.title, this.state]), this.body]);
    root.append(this.root);
  }

  listen(root) {
    this.receive = (content, buffers) => this.take(content, buffers);
    this.model.on("msg:custom", this.receive);
    this.stage.addEventListener("keydown", (event) => this.key(event));
    this.stage.addEventListener("pointermove", (event) => this.hover(event));
    this.stage.addEventListener("pointerleave", () => this.tip.classList.remove("lk-seen"));
    this.stage.addEventListener("click", (event) => this.pick(event));
    this.stage.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 0.7 : 1.4, this.lay && this.lay.ms(event.offsetX));
    }, { passive: false });
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.root);
    this.themed = new MutationObserver(() => setTimeout(() => this.draw(), 60));
    this.themed.observe(document.body, { attributes: true });
    this.pressed = (event) => this.waitFor(event);
    requestAnimationFrame(() => {
      this.panel = root.closest(".labkit-panel") || root.closest(".widget-vbox");
      if (this.panel) this.panel.addEventListener("click", this.pressed);
    });
  }

  forget() {
    this.model.off("msg:custom", this.receive);
    this.resized.disconnect();
    this.themed.disconnect();
    clearTimeout(this.timer);
    clearTimeout(this.waiting);
    if (this.panel) this.panel.removeEventListener("click", this.pressed);
  }

  /** Run was pressed and nothing comes: a cell keeps the kernel. */
  waitFor(event) {
    const button = event.target.closest && event.target.closest("button");
    if (!button || this.root.contains(button) || !/^\s*Run\s*$/.test(button.textContent)) return;
    this.hadFocus = true;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => { this.state.textContent = "The kernel is busy with a cell. This run starts when the cell is done."; }, 1200);
  }

  take(content, buffers) {
    clearTimeout(this.waiting);
    const floats = (buffers || []).map(asFloats);
    const does = {
      begin: () => this.begin(content),
      delta: () => this.delta(content, floats),
      whole: () => this.full(content, floats),
      window: () => this.look(content, floats),
      end: () => this.end(content),
      unpin: () => { this.pinned = null; this.draw(); },
      words: () => this.words.replaceChildren(...content.sentences.map((text) => make("li", { text }))),
    }[content.type];
    if (does) does();
  }

  begin({ ranks, title }) {
    this.run = new Run(ranks, title);
    Object.assign(this, { running: true, follows: true, chosen: -1, moment: null, view: { from: 0, to: 1000 }, now: null });
    this.body.hidden = false;
    this.tip.classList.remove("lk-seen");
    this.title.textContent = title;
    this.state.textContent = "starting …";
    this.said.textContent = "";
    this.words.replaceChildren();
    if (this.hadFocus) { this.stage.focus({ preventScroll: true }); this.hadFocus = false; }
    clearTimeout(this.timer);
    this.tick();
  }

  delta({ now, kinds, counters, dark, left_out }, [spans, steps, losses]) {
    if (!this.run || !this.running) return;
    Object.assign(this.run, { kinds, dark, leftOut: left_out });
    for (const [rank, found] of Object.entries(counters)) this.run.counters[rank] = found;
    this.run.addSpans(spans);
    this.run.addSteps(steps);
    this.run.addLosses(losses);
    this.run.lastEnds = this.run.lastEnds || new Map();
    for (let at = 0; at < steps.length; at += 5) this.run.lastEnds.set(steps[at], steps[at + 3]);
    if (this.run.steps.length) this.now = { ms: now, at: performance.now() };
    const last = this.run.steps[this.run.steps.length - 1];
    this.state.textContent = last ? `running, step ${last.step}` + (left_out ? "; steps come faster than they are drawn" : "") : "starting …";
  }

  /** The ranks' clock now, as far as it is known. */
  clock() {
    return this.now ? this.now.ms + Math.min(1500, performance.now() - this.now.at) : null;
  }

  tick() {
    if (!this.running) return;
    const now = this.clock();
    if (now !== null && this.follows) {
      const wide = Math.min(10000, Math.max(500, 14 * this.run.usualStep()));
      this.view = { from: Math.max(0, now - wide), to: Math.max(wide, now) };
    }
    this.draw();
    this.frames += 1;
    this.root.dataset.frames = this.frames;
    this.timer = setTimeout(() => this.tick(), FRAME_MS);
  }

  full({ side, title, ranks, kinds, dark, joined, counters }, [spans, steps, losses]) {
    const run = new Run(ranks, title);
    Object.assign(run, { kinds, dark, joined, counters });
    run.addSpans(spans);
    run.addSteps(steps);
    run.addLosses(losses);
    this.body.hidden = false;
    if (side === "pinned") { this.pinned = run; if (!this.running) this.whole(); return; }
    this.run = run;
    this.tip.classList.remove("lk-seen");
    Object.assign(this, { running: false, chosen: -1, moment: null });
    this.title.textContent = title;
    this.whole();
  }

  end({ said }) {
    this.running = false;
    clearTimeout(this.timer);
    this.state.textContent = said;
    if (this.run) this.whole();
  }

  /** A part of the run came with nothing joined. */
  look({ side, from, to }, [floats]) {
    const run = side === "pinned" ? this.pinned : this.run;
    if (!run) return;
    run.closer = { from, to, floats };
    this.draw();
    if (this.moment !== null) this.say();
  }

  whole() {
    const last = Math.max(this.run ? this.run.last : 0, this.pinned ? this.pinned.last : 0, 1);
    this.show(0, last * 1.01);
  }

  show(from, to) {
    const wide = Math.max(0.02, to - from);
    this.follows = false;
    this.view = { from, to: from + wide };
    for (const [side, run] of [["now", this.run], ["pinned", this.pinned]]) {
      if (!run || !run.joined || this.running) continue;
      clearTimeout(run.asking);
      run.asking = setTimeout(() => this.model.send({ ask: "window", side, from: from - wide, to: to + wide }), 60);
    }
    this.draw();
  }

  zoom(times, around) {
    if (!this.run) return;
    const { from, to } = this.view;
    const middle = around ?? (this.moment !== null && this.moment > from && this.moment < to ? this.moment : (from + to) / 2);
    this.show(Math.max(0, middle - (middle - from) * times), middle + (to - middle) * times);
  }

  step(by) {
    if (!this.run || !this.run.steps.length) return;
    const count = this.run.steps.length;
    this.choose(this.chosen < 0 ? (by > 0 ? 0 : count - 1) : Math.max(0, Math.min(count - 1, this.chosen + by)));
  }

  /** Look at one step: it fills two thirds of the width. */
  choose(at) {
    if (!this.run || !this.run.steps[at]) return;
    this.chosen = at;
    const step = this.run.steps[at];
    const wide = Math.max(0.05, step.end - step.start);
    this.moment = step.start + wide / 2;
    this.show(Math.max(0, step.start - wide * 0.25), step.end + wide * 0.25);
    this.say();
  }

  /** To the next moment of the chosen step at which something begins or ends. */
  shift(by) {
    if (this.chosen < 0) { this.step(by); return; }
    const step = this.run.steps[this.chosen], moments = new Set([step.start]);
    this.run.eachRow(step.start, step.end, (floats, at) => {
      for (const ms of [floats[at + START], floats[at + END]]) if (ms >= step.start && ms <= step.end) moments.add(ms);
    });
    const ordered = [...moments].sort((a, b) => a - b);
    const next = by > 0 ? ordered.find((ms) => ms > this.moment + 1e-9) : ordered.reverse().find((ms) => ms < this.moment - 1e-9);
    if (next === undefined) { this.step(by); return; }
    this.moment = next;
    this.draw();
    this.say();
  }

  say() {
    const step = this.run.steps[this.chosen];
    if (!step) return;
    const flight = this.run.inFlight(this.moment);
    const by = new Map();
    for (const { rank, said } of flight) by.set(rank, [...(by.get(rank) || []), said]);
    const words = [...by].map(([rank, of]) => `rank ${rank}: ${of.join(" and ")}`);
    const last = this.run.steps[this.run.steps.length - 1].step;
    const slow = this.run.ranks > 1 ? `; slowest is rank ${step.slowest}, ${saidMs(step.longest)}` : "";
    this.said.textContent = `Step ${step.step} (the last is ${last})${step.attempt ? `, attempt ${step.attempt + 1}` : ""} takes ${saidMs(step.end - step.start)}${slow}. `
      + `${saidMs(this.moment - step.start)} into it: ${words.join("; ") || "nothing that was recorded is under way"}.`;
  }

  key(event) {
    const acts = {
      ArrowLeft: () => (event.shiftKey ? this.shift(-1) : this.step(-1)),
      ArrowRight: () => (event.shiftKey ? this.shift(1) : this.step(1)),
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), _: () => this.zoom(2),
      Home: () => this.choose(0),
      End: () => (this.running ? (this.follows = true) : this.run && this.choose(this.run.steps.length - 1)),
      0: () => this.whole(),
      Escape: () => this.running && this.model.send({ ask: "stop" }),
    }[event.key];
    if (!acts || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    acts();
  }

  placed(event) {
    const box = this.lanes.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  hover(event) {
    const [x, y] = this.placed(event);
    const row = this.run && this.lay && rowAt(this.lay, this.run, this.pinned, x, y);
    this.tip.classList.toggle("lk-seen", Boolean(row));
    if (!row) return;
    this.tip.textContent = (row.below ? "pinned, " : "") + row.run.saidRow(row.floats, row.at);
    this.tip.style.left = `${Math.max(0, Math.min(x + 12, this.lay.width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${y + 16}px`;
  }

  pick(event) {
    const [x, y] = this.placed(event);
    const row = this.run && this.lay && !this.running && rowAt(this.lay, this.run, null, x, y);
    if (!row) return;
    const found = this.run.steps.findIndex((step) => step.step === row.floats[row.at + STEP] && step.end >= row.floats[row.at + START] && step.start <= row.floats[row.at + END]);
    if (found < 0) return;
    this.chosen = found;
    this.moment = this.lay.ms(x);
    this.draw();
    this.say();
  }

  pen(canvas, width, height) {
    const dots = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * dots) || canvas.height !== Math.round(height * dots)) {
      canvas.width = Math.round(width * dots);
      canvas.height = Math.round(height * dots);
      Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    return pen;
  }

  draw() {
    const width = this.root.clientWidth;
    if (!this.run || width < 60) return;
    const theme = themeOf(this.root);
    const chosen = this.run.steps[this.chosen];
    this.lay = layOf(width, this.run, this.pinned, this.view);
    const marks = { step: chosen, moment: this.moment, now: this.running ? this.clock() : null, inFlight: this.moment === null ? [] : this.run.inFlight(this.moment) };
    paintLanes(this.pen(this.lanes, width, this.lay.height), this.lay, this.run, this.pinned, theme, marks);
    const has = this.run.losses.some((of) => of.size) || (this.pinned && this.pinned.losses.some((of) => of.size));
    this.curve.hidden = !has;
    if (has) paintCurve(this.pen(this.curve, width, 150), width, 150, this.run, this.pinned, theme, chosen);
    this.tell();
  }

  /** What is drawn, in words, for whoever does not see it; and the legend. */
  tell() {
    const run = this.run, steps = run.steps.length;
    this.curveSaid.textContent = saidCurve(run, this.pinned);
    this.curve.setAttribute("aria-label", this.curveSaid.textContent || "no loss was recorded");
    this.lanes.setAttribute("aria-label", `${run.title}: ${run.ranks} ${run.ranks === 1 ? "rank" : "ranks"}, ${steps} steps in ${saidMs(run.last)}`
      + run.dark.map(([rank, , , word]) => `; rank ${rank} ${word}`).join("") + (this.pinned ? `; beneath it, pinned: ${this.pinned.title}` : ""));
    this.slider.max = String(Math.max(0, steps - 1));
    this.slider.value = String(Math.max(0, this.chosen));
    this.slider.setAttribute("aria-valuetext", run.steps[this.chosen] ? `step ${run.steps[this.chosen].step}` : "no step chosen");
    this.tools.hidden = this.running || !steps;
    const key = JSON.stringify([run.kinds, Boolean(this.pinned)]);
    if (key === this.legendOf) return;
    this.legendOf = key;
    const items = run.kinds.map(([said, colour, pattern]) => {
      const swatch = make("canvas", { className: "lk-swatch", "aria-hidden": "true" });
      const pen = this.pen(swatch, 22, 12);
      pen.fillStyle = fillOf(pen, colour, pattern);
      pen.fillRect(0, 0, 22, 12);
      return make("li", {}, [swatch, make("span", { text: said })]);
    });
    if (this.pinned) items.push(make("li", {}, [make("span", { text: `the lower, thinner lanes and the dashed loss: pinned, ${this.pinned.title}` })]));
    this.legend.replaceChildren(...items);
  }
}

export default {
  render({ model, el }) {
    const view = new View(model, el);
    return () => view.forget();
  },
};
