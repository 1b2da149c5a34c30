// The lanes: a band for each rank, a row in it for each thing that can happen at once, time from left to right.

const TOP = 22; // for the marks of time
const GAP = 5;

/** Where everything lies, for a width and a view {from, to}. */
function layOf(width, run, pinned, view) {
  const narrow = width < 560;
  const left = narrow ? 52 : 132;
  const rows = Math.max(1, run.rows.size, pinned ? pinned.rows.size : 0);
  const ranks = Math.max(run.ranks, pinned ? pinned.ranks : 0);
  const row = Math.max(6, Math.min(rows === 1 ? 22 : 15, Math.floor((pinned ? 300 : 420) / (rows * ranks))));
  const own = Math.max(rows * row, narrow ? 14 : 28);
  const ghost = pinned ? Math.max(9, Math.round(rows * row * 0.6)) + 2 : 0;
  const band = own + ghost + GAP;
  const scale = (width - left - 8) / Math.max(1e-6, view.to - view.from);
  return { narrow, left, rows, ranks, row, own, ghost, band, width, height: TOP + ranks * band + 4, scale, view,
    x: (ms) => left + (ms - view.from) * scale, ms: (x) => view.from + (x - left) / scale };
}

function paintLanes(pen, lay, run, pinned, theme, marks) {
  pen.clearRect(0, 0, lay.width, lay.height);
  paintTime(pen, lay, theme);
  for (let rank = 0; rank < lay.ranks; rank += 1) paintRank(pen, lay, run, rank, theme);
  pen.save();
  pen.beginPath();
  pen.rect(lay.left, 0, lay.width - lay.left, lay.height);
  pen.clip();
  paintSteps(pen, lay, run, theme, marks.step);
  paintRows(pen, lay, run, theme, 0, lay.row);
  if (pinned) {
    pen.globalAlpha = 0.75;
    paintRows(pen, lay, pinned, theme, lay.own + 1, Math.max(3, (lay.ghost - 2) / lay.rows));
    pen.globalAlpha = 1;
  }
  paintDark(pen, lay, run, theme, marks.now);
  if (marks.now !== null) paintOpen(pen, lay, run, theme, marks.now);
  if (marks.moment !== null) paintMoment(pen, lay, run, theme, marks);
  pen.restore();
}

function paintTime(pen, lay, theme) {
  const first = Math.max(0, lay.view.from);
  pen.font = `11px ${theme.font}`;
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  pen.lineWidth = 1;
  for (const ms of ticksOf(lay.view.from, lay.view.to, (lay.width - lay.left) / 90)) {
    const x = lay.x(ms);
    pen.strokeStyle = theme.line;
    pen.beginPath(); pen.moveTo(x, TOP - 4); pen.lineTo(x, lay.height - 4); pen.stroke();
    pen.fillStyle = theme.soft;
    if (x > lay.left + 14 && x < lay.width - 22) pen.fillText(ms === 0 ? "0" : saidMs(ms), x, 9);
  }
  pen.textAlign = "left";
  if (!lay.narrow) pen.fillText("time of the run", 4, 9);
  return first;
}

const topOf = (lay, rank) => TOP + rank * lay.band;

function paintRank(pen, lay, run, rank, theme) {
  const top = topOf(lay, rank);
  pen.fillStyle = theme.band;
  pen.fillRect(lay.left, top, lay.width - lay.left - 8, lay.own + lay.ghost);
  pen.fillStyle = theme.ink;
  pen.textAlign = "left";
  pen.font = `600 12px ${theme.font}`;
  pen.fillText(lay.narrow ? String(rank) : `rank ${rank}`, 4, top + 8);
  if (lay.narrow) return;
  pen.font = `10.5px ${theme.font}`;
  pen.fillStyle = theme.soft;
  const words = saidCounters(run.counters[rank] || {});
  words.slice(0, lay.own + lay.ghost >= 40 ? 2 : 1).forEach((word, line) => pen.fillText(word, 4, top + 21 + 12 * line, lay.left - 10));
}

/** Where steps begin, as long as there is room between them; the chosen one stands out. */
function paintSteps(pen, lay, run, theme, chosen) {
  const usual = run.usualStep() * lay.scale;
  for (const step of usual > 14 ? run.steps : []) {
    if (step.end < lay.view.from || step.start > lay.view.to) continue;
    pen.strokeStyle = theme.soft;
    pen.setLineDash([2, 3]);
    pen.beginPath(); pen.moveTo(lay.x(step.start), TOP - 4); pen.lineTo(lay.x(step.start), lay.height - 4); pen.stroke();
    pen.setLineDash([]);
  }
  if (chosen) {
    const [x, end] = [lay.x(chosen.start), lay.x(chosen.end)];
    pen.strokeStyle = theme.ink;
    pen.lineWidth = 2;
    pen.strokeRect(x, TOP - 3, Math.max(2, end - x), lay.height - TOP - 1);
    pen.lineWidth = 1;
  }
}

function paintRows(pen, lay, run, theme, offset, height) {
  const fills = run.kinds.map(([, colour, pattern]) => [colour, fillOf(pen, colour, pattern)]);
  const edge = lay.width;
  pen.font = `10.5px ${theme.font}`;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  run.eachRow(lay.view.from, lay.view.to, (floats, at) => {
    const x = Math.max(lay.left - 2, lay.x(floats[at + START]));
    const wide = Math.max(0.6, Math.min(edge, lay.x(floats[at + END])) - x);
    const top = topOf(lay, floats[at + RANK]) + offset + (run.rows.get(floats[at + LANE] * 16 + floats[at + TRACK]) || 0) * height;
    const [colour, fill] = fills[floats[at + NAME]] || [theme.soft, theme.soft];
    if (floats[at + COUNT] > 1) pen.globalAlpha *= 0.35 + 0.65 * Math.min(1, floats[at + BUSY] / Math.max(1e-9, floats[at + END] - floats[at + START]));
    pen.fillStyle = wide < 3 ? colour : fill;
    pen.fillRect(x, top, wide, height - 1);
    if (floats[at + COUNT] > 1) pen.globalAlpha = offset ? 0.75 : 1;
    if (wide > 4) { pen.strokeStyle = theme.ground; pen.lineWidth = 1; pen.strokeRect(x + 0.5, top + 0.5, wide - 1, height - 2); }
    if (wide > 34 && height >= 12) paintLabel(pen, run.saidKind(floats, at), colour, x, top, wide, height);
  });
}

/** A kind's name in its span, on a plate of its colour: a pattern behind letters cannot be read. */
function paintLabel(pen, said, colour, x, top, wide, height) {
  const length = pen.measureText(said).width;
  if (length + 8 > wide) return;
  pen.fillStyle = colour;
  pen.fillRect(x + 2, top + 1, length + 5, height - 3);
  pen.fillStyle = isDark(colour) ? "#ffffff" : "#000000";
  pen.fillText(said, x + 4, top + height / 2);
}

/** Where a rank is gone: dark, crossed out, with the word why. */
function paintDark(pen, lay, run, theme, now) {
  for (const [rank, start, end, word] of run.dark) {
    const x = Math.max(lay.left, lay.x(start));
    const until = Math.min(lay.width - 8, end === null ? (now === null ? lay.x(run.last) : lay.x(now)) : lay.x(end));
    if (until <= x) continue;
    const top = topOf(lay, rank);
    pen.fillStyle = fillOf(pen, "#2b2b2b", "cross");
    pen.fillRect(x, top, until - x, lay.own);
    const length = pen.measureText(word).width;
    if (length + 12 > until - x) continue;
    pen.fillStyle = "#000000";
    pen.fillRect(x + 3, top + lay.own / 2 - 8, length + 8, 16);
    pen.fillStyle = "#ffffff";
    pen.fillText(word, x + 7, top + lay.own / 2);
  }
}

/** While a run goes on: the step that is under way on each rank has no end yet. */
function paintOpen(pen, lay, run, theme, now) {
  const begun = run.lastEnds || new Map();
  pen.strokeStyle = theme.soft;
  pen.setLineDash([3, 3]);
  for (const [rank, since] of begun) {
    if (run.dark.some(([other, , end]) => other === rank && end === null)) continue;
    const [x, until] = [Math.max(lay.left, lay.x(since)), Math.min(lay.width - 9, lay.x(now))];
    if (until > x + 1) pen.strokeRect(x + 0.5, topOf(lay, rank) + 1.5, until - x - 1, lay.own - 3);
  }
  pen.setLineDash([]);
}

/** The moment that is looked at, and what is under way at it. */
function paintMoment(pen, lay, run, theme, marks) {
  const x = lay.x(marks.moment);
  pen.strokeStyle = theme.ink;
  pen.lineWidth = 2;
  pen.beginPath(); pen.moveTo(x, TOP - 6); pen.lineTo(x, lay.height - 3); pen.stroke();
  for (const { rank, floats, at } of marks.inFlight) {
    const top = topOf(lay, rank) + (run.rows.get(floats[at + LANE] * 16 + floats[at + TRACK]) || 0) * lay.row;
    const from = lay.x(floats[at + START]);
    pen.strokeRect(from, top, Math.max(2, lay.x(floats[at + END]) - from), lay.row - 1);
  }
  pen.lineWidth = 1;
}

/** The row under a place of the canvas: {run, floats, at}, or nothing. */
function rowAt(lay, run, pinned, x, y) {
  const rank = Math.floor((y - TOP) / lay.band);
  if (rank < 0 || rank >= lay.ranks || x < lay.left) return null;
  const inside = y - topOf(lay, rank);
  const below = pinned && inside > lay.own;
  const of = below ? pinned : run;
  const height = below ? Math.max(3, (lay.ghost - 2) / lay.rows) : lay.row;
  const place = Math.floor((inside - (below ? lay.own + 1 : 0)) / height);
  const near = 2 / lay.scale, ms = lay.ms(x);
  let found = null;
  of.eachRow(ms - near, ms + near, (floats, at) => {
    if (floats[at + RANK] === rank && of.rows.get(floats[at + LANE] * 16 + floats[at + TRACK]) === place) found = { run: of, floats, at, below };
  });
  return found;
}
