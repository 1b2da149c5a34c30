// How things look: the theme's colours as they are now, and a pattern for each kind of span.

/** The colours of the page's theme; `ink` on `ground` can be read in light and dark. */
function themeOf(element) {
  const style = getComputedStyle(element);
  const read = (name, otherwise) => style.getPropertyValue(name).trim() || otherwise;
  const ground = plainColour(read("--lk-ground", "#ffffff"));
  return {
    curve: isDark(ground) ? "#56B4E9" : "#0072B2",
    ink: read("--lk-ink", "#1b1f24"),
    soft: read("--lk-soft", "#57606a"),
    line: read("--lk-line", "#d0d7de"),
    ground: read("--lk-ground", "#ffffff"),
    band: read("--lk-band", "#f4f5f6"),
    font: read("--lk-font", "system-ui, sans-serif"),
  };
}

const TILE = 8;
const STROKES = {
  slash: (pen) => { pen.moveTo(-2, 10); pen.lineTo(10, -2); pen.moveTo(-2, 2); pen.lineTo(2, -2); pen.moveTo(6, 10); pen.lineTo(10, 6); },
  backslash: (pen) => { pen.moveTo(-2, -2); pen.lineTo(10, 10); pen.moveTo(6, -2); pen.lineTo(10, 2); pen.moveTo(-2, 6); pen.lineTo(2, 10); },
  bars: (pen) => { pen.moveTo(2, 0); pen.lineTo(2, 8); pen.moveTo(6, 0); pen.lineTo(6, 8); },
  cross: (pen) => { pen.moveTo(0, 0); pen.lineTo(8, 8); pen.moveTo(0, 8); pen.lineTo(8, 0); },
  dots: (pen) => { pen.rect(1, 1, 1.6, 1.6); pen.rect(5, 5, 1.6, 1.6); },
};

const tiles = new Map();

/** What to fill a span with: its colour, with its pattern in it where there is room to see one. */
function fillOf(pen, colour, pattern) {
  const key = colour + pattern;
  if (!tiles.has(key)) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = TILE;
    const inner = tile.getContext("2d");
    inner.fillStyle = colour;
    inner.fillRect(0, 0, TILE, TILE);
    if (STROKES[pattern]) {
      inner.strokeStyle = inner.fillStyle = isDark(colour) ? "rgba(255,255,255,.62)" : "rgba(0,0,0,.5)";
      inner.lineWidth = 1.3;
      inner.beginPath();
      STROKES[pattern](inner);
      if (pattern === "dots") inner.fill(); else inner.stroke();
    }
    tiles.set(key, tile);
  }
  return pen.createPattern(tiles.get(key), "repeat");
}

/** Any colour of a style sheet as #rrggbb. */
function plainColour(colour) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.fillStyle = "#ffffff";
  pen.fillStyle = colour;
  return /^#[0-9a-f]{6}$/i.test(pen.fillStyle) ? pen.fillStyle : "#ffffff";
}

/** Whether white can be read on a colour better than black. */
function isDark(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue < 140;
}
