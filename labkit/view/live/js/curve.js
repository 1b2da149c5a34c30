// The loss, by step: the mean of the ranks as a line, from the least to the most of them as a band; a pinned run dashed.

const EDGE = { left: 52, right: 12, top: 12, bottom: 26 };

function paintCurve(pen, width, height, run, pinned, theme, chosen) {
  pen.clearRect(0, 0, width, height);
  const own = run.meanLoss(), other = pinned ? pinned.meanLoss() : [];
  const finite = [...own, ...other].flatMap(([, mean, least, most]) => [mean, least, most]).filter(Number.isFinite);
  if (!finite.length) return false;
  const steps = [...own, ...other].map(([step]) => step);
  const [first, last] = [Math.min(...steps), Math.max(...steps, Math.min(...steps) + 1)];
  let [low, high] = [finite.reduce((a, b) => Math.min(a, b)), finite.reduce((a, b) => Math.max(a, b))];
  if (low > 0 && low < high / 2) low = 0;
  if (high === low) high = low + 1;
  const x = (step) => EDGE.left + ((step - first) / (last - first)) * (width - EDGE.left - EDGE.right);
  const y = (value) => height - EDGE.bottom - ((value - low) / (high - low)) * (height - EDGE.top - EDGE.bottom);
  paintAxes(pen, width, height, theme, ticksOf(first, last, width / 110), ticksOf(low, high, 4), x, y);
  if (run.ranks > 1) paintBand(pen, own, x, y, theme.curve);
  paintLine(pen, other, x, y, theme.soft, [6, 4]);
  paintLine(pen, own, x, y, theme.curve, []);
  if (chosen && chosen.step >= first && chosen.step <= last) {
    pen.strokeStyle = theme.ink;
    pen.beginPath(); pen.moveTo(x(chosen.step), EDGE.top); pen.lineTo(x(chosen.step), height - EDGE.bottom); pen.stroke();
  }
  return true;
}

function paintAxes(pen, width, height, theme, across, up, x, y) {
  pen.font = `11px ${theme.font}`;
  pen.lineWidth = 1;
  pen.strokeStyle = theme.line;
  pen.fillStyle = theme.soft;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (const value of up) {
    pen.beginPath(); pen.moveTo(EDGE.left, y(value)); pen.lineTo(width - EDGE.right, y(value)); pen.stroke();
    pen.fillText(saidLoss(value), EDGE.left - 5, y(value));
  }
  pen.textAlign = "center";
  for (const step of across.filter(Number.isInteger)) pen.fillText(String(step), x(step), height - EDGE.bottom + 9);
  pen.textAlign = "right";
  pen.fillText("step", width - EDGE.right, height - 6);
  pen.textAlign = "left";
  pen.fillText("loss", 2, 7);
}

function paintLine(pen, values, x, y, colour, dash) {
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  pen.setLineDash(dash);
  pen.beginPath();
  let down = false;
  for (const [step, mean] of values) {
    if (!Number.isFinite(mean)) { down = false; continue; }
    if (down) pen.lineTo(x(step), y(mean)); else pen.moveTo(x(step), y(mean));
    down = true;
  }
  pen.stroke();
  pen.setLineDash([]);
  pen.lineWidth = 1;
}

function paintBand(pen, values, x, y, colour) {
  const fit = values.filter(([, , least, most]) => Number.isFinite(least) && Number.isFinite(most));
  if (!fit.length) return;
  pen.globalAlpha = 0.2;
  pen.fillStyle = colour;
  pen.beginPath();
  fit.forEach(([step, , , most], at) => (at ? pen.lineTo(x(step), y(most)) : pen.moveTo(x(step), y(most))));
  fit.reverse().forEach(([step, , least]) => pen.lineTo(x(step), y(least)));
  pen.fill();
  pen.globalAlpha = 1;
}

/** The curve in words. */
function saidCurve(run, pinned) {
  const own = run.meanLoss();
  if (!own.length) return "";
  const [step, value] = own[own.length - 1];
  const bad = own.find(([, mean]) => !Number.isFinite(mean));
  let said = `Loss ${saidLoss(own[0][1])} at step ${own[0][0]}, ${saidLoss(value)} at step ${step}` + (run.ranks > 1 ? ", the mean of the ranks; the band holds all of them." : ".");
  if (bad) said += ` It is ${saidLoss(bad[1])} from step ${bad[0]} on.`;
  const other = pinned ? pinned.meanLoss() : [];
  if (other.length) said += ` Pinned, dashed: ${saidLoss(other[other.length - 1][1])} at step ${other[other.length - 1][0]}.`;
  return said;
}
