// Numbers as a person reads them. Nothing here ever says "null", "undefined" or "NaN ms".

/** A time in milliseconds, in the unit that suits it: "12.3 ms", "1.20 s", "85 µs". */
function saidMs(ms) {
  if (!Number.isFinite(ms)) return "not known";
  const size = Math.abs(ms);
  if (size >= 60000) return `${(ms / 60000).toPrecision(3)} min`;
  if (size >= 1000) return `${(ms / 1000).toPrecision(3)} s`;
  if (size >= 1) return `${Number(ms.toPrecision(3))} ms`;
  return `${Math.round(ms * 1000)} µs`;
}

/** A count of bytes: "3.2 MB". */
function saidBytes(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (bytes >= 1000 && at < units.length - 1) { bytes /= 1000; at += 1; }
  return `${at ? Number(bytes.toPrecision(3)) : bytes} ${units[at]}`;
}

/** A loss: three digits, or the word for what is no number. */
function saidLoss(value) {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "infinite" : "−infinite";
  return String(Number(value.toPrecision(3)));
}

/** A rank's counters, in the few words that fit beside its lanes. */
function saidCounters(found) {
  const words = [];
  if ("version_pulled" in found && "version_pushed" in found) {
    words.push(`v${found.version_pulled} → v${found.version_pushed}`, `${found.version_pushed - found.version_pulled} old`);
  }
  if ("wire_sent_bytes" in found) words.push(`${saidBytes(found.wire_sent_bytes)} over the link`);
  else if ("store_bytes" in found) words.push(`${saidBytes(found.store_bytes)} from the store`);
  else if ("all_reduce_bytes" in found) words.push(`${saidBytes(found.all_reduce_bytes)} reduced`);
  return words;
}

/** Round places for marks on an axis from `low` to `high`, about `wanted` of them. */
function ticksOf(low, high, wanted) {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return [];
  const raw = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((times) => times * power).find((each) => each >= raw);
  const marks = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) marks.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return marks;
}
