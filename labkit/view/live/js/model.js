// What is known of one run: rows of numbers as the kernel sends them, and where its steps lie.

const WIDTH = 10; // of a row of spans
const [RANK, LANE, TRACK, NAME, STEP, START, END, COUNT, BUSY, ORDER] = Array.from({ length: WIDTH }, (_, at) => at);
const MOST_VALUES = 80000 * WIDTH; // kept while a run goes on; the oldest are forgotten

const asFloats = (view) => new Float64Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));

class Run {
  constructor(ranks, title) {
    Object.assign(this, { ranks, title, kinds: [], counters: {}, dark: [], joined: false, leftOut: false });
    this.chunks = []; // of rows of spans
    this.held = 0;
    this.closer = null; // rows of a part of the run that somebody looks at, with nothing joined that need not be
    this.steps = []; // {key, step, attempt, start, end, slowest, longest, began: [by rank]}, in the order of their starts
    this.byKey = new Map();
    this.losses = Array.from({ length: ranks }, () => new Map());
    this.rows = new Map(); // which tracks of which lanes there are, with their places
    this.last = 0;
  }

  addSpans(floats) {
    if (!floats.length) return;
    this.chunks.push(floats);
    this.held += floats.length;
    while (this.held > MOST_VALUES && this.chunks.length > 1) this.held -= this.chunks.shift().length;
    let found = false;
    for (let at = 0; at < floats.length; at += WIDTH) {
      const key = floats[at + LANE] * 16 + floats[at + TRACK];
      if (!this.rows.has(key)) { this.rows.set(key, 0); found = true; }
      if (floats[at + END] > this.last) this.last = floats[at + END];
    }
    if (found) this.layOut();
  }

  /** Data first, then compute, communication, checkpoints, waiting: as a step goes. */
  layOut() {
    const order = [1, 2, 0, 3, 4]; // of compute, comm, data, checkpoint, idle
    const keys = [...this.rows.keys()].sort((a, b) => (order[a >> 4] * 16 + (a & 15)) - (order[b >> 4] * 16 + (b & 15)));
    this.rows = new Map(keys.map((key, place) => [key, place]));
  }

  addSteps(floats) {
    for (let at = 0; at < floats.length; at += 5) {
      const [rank, step, start, end, attempt] = floats.subarray(at, at + 5);
      const key = attempt * 1e9 + step;
      let known = this.byKey.get(key);
      if (!known) {
        known = { key, step, attempt, start, end, slowest: rank, longest: end - start, ends: new Map() };
        this.byKey.set(key, known);
        this.steps.push(known);
        let place = this.steps.length - 1;
        while (place && this.steps[place - 1].start > start) { this.steps[place] = this.steps[place - 1]; place -= 1; }
        this.steps[place] = known;
      }
      known.start = Math.min(known.start, start);
      known.end = Math.max(known.end, end);
      known.ends.set(rank, end);
      if (end - start > known.longest) { known.longest = end - start; known.slowest = rank; }
      this.last = Math.max(this.last, end);
    }
  }

  addLosses(floats) {
    if (floats.length) this.means = null;
    for (let at = 0; at < floats.length; at += 3) {
      const of = this.losses[floats[at]];
      if (of) of.set(floats[at + 1], floats[at + 2]);
    }
  }

  /** The mean over the ranks of each step that several recorded, in order: [step, mean, least, most]. */
  meanLoss() {
    if (this.means) return this.means;
    const by = new Map();
    for (const of of this.losses) for (const [step, value] of of) {
      const seen = by.get(step);
      if (seen) { seen[0] += value; seen[1] += 1; seen[2] = Math.min(seen[2], value); seen[3] = Math.max(seen[3], value); }
      else by.set(step, [value, 1, value, value]);
    }
    this.means = [...by].map(([step, [sum, count, least, most]]) => [step, sum / count, least, most]).sort((a, b) => a[0] - b[0]);
    return this.means;
  }

  /** The rows between two moments, each given to `see` as (floats, at). */
  eachRow(from, to, see) {
    const closer = this.closer && this.closer.from <= from + 1e-6 && this.closer.to >= to - 1e-6;
    for (const floats of closer ? [this.closer.floats] : this.chunks) {
      for (let at = 0; at < floats.length; at += WIDTH) {
        if (floats[at + END] >= from && floats[at + START] <= to) see(floats, at);
      }
    }
  }

  /** What is under way at a moment, by rank: [{rank, said}]. */
  inFlight(moment) {
    const found = [], most = new Map();
    this.eachRow(moment - 1e5, moment + 1e5, (floats, at) => {
      const key = `${floats[at + RANK]} ${floats[at + STEP]} ${floats[at + NAME]}`;
      most.set(key, Math.max(most.get(key) || 0, floats[at + ORDER]));
      if (floats[at + START] <= moment && moment < floats[at + END]) found.push([floats, at, key]);
    });
    return found.sort((a, b) => a[0][a[1] + RANK] - b[0][b[1] + RANK]).map(([floats, at, key]) => ({
      rank: floats[at + RANK], floats, at,
      said: this.saidKind(floats, at) + (floats[at + ORDER] && most.get(key) > 1 ? ` ${floats[at + ORDER]} of ${most.get(key)}` : ""),
    }));
  }

  saidKind(floats, at) {
    const [said] = this.kinds[floats[at + NAME]] || ["a span"];
    return said;
  }

  /** One row in words, with units. */
  saidRow(floats, at) {
    const [start, end, count] = [floats[at + START], floats[at + END], floats[at + COUNT]];
    const where = `rank ${floats[at + RANK]}, step ${floats[at + STEP]}`;
    const when = `from ${saidMs(start)} to ${saidMs(end)} of the run`;
    if (count > 1) return `${where} and after: ${count} spans, mostly ${this.saidKind(floats, at)}, ${saidMs(floats[at + BUSY])} together, ${when}`;
    return `${where}: ${this.saidKind(floats, at)}, ${saidMs(end - start)}, ${when}`;
  }

  usualStep() {
    const last = this.steps.slice(-41).map((step) => step.end - step.start).sort((a, b) => a - b);
    return last.length ? last[last.length >> 1] : 20;
  }
}
