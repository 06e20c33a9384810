import { AMBIGUOUS } from "./data.js";

/** Return the colors of the current theme. `kinds` has the shades of each kind of frame. */
export function readColors() {
  const style = getComputedStyle(document.documentElement);
  const css = (name) => style.getPropertyValue(name).trim();
  const colors = {
    kinds: [
      [0, 1, 2, 3].map((i) => css(`--flame-own-${i}`)),
      [0, 1, 2].map((i) => css(`--flame-library-${i}`)),
      [0, 1].map((i) => css(`--flame-dask-${i}`)),
      [css("--flame-unknown")], [css("--flame-unknown")], [css("--faint")],
    ],
    match: css("--flame-match"), matchInk: css("--flame-match-ink"), ink: css("--flame-ink"),
    soft: css("--soft"), accent: css("--accent"), outline: css("--ink"), idle: css("--idle"), sans: css("--sans"),
  };
  colors.hatch = hatch(colors.kinds[AMBIGUOUS][0], css("--flame-hatch"));
  return colors;
}

/** Return a pattern of diagonal lines. */
function hatch(background, line) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const context = tile.getContext("2d");
  context.fillStyle = background;
  context.fillRect(0, 0, 8, 8);
  context.strokeStyle = line;
  for (const shift of [-8, 0, 8]) {
    context.beginPath();
    context.moveTo(shift, 8);
    context.lineTo(shift + 8, 0);
    context.stroke();
  }
  // The colors are those of the pattern in SVG.
  return Object.assign(context.createPattern(tile, "repeat"), { colors: [background, line] });
}

/** Return a number for each function that depends on its name and file only, so that its shade never changes. */
export const shadesOf = (data) => Uint8Array.from(data.labels, (label) => {
  let hash = 0;
  for (let i = 0; i < label.length; i++) hash = (Math.imul(hash, 31) + label.charCodeAt(i)) | 0;
  return (hash >>> 3) & 0xff;
});
