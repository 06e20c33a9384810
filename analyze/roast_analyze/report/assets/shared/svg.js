// A drawing context that writes SVG instead of pixels: the part of CanvasRenderingContext2D that the
// figures use, so that a figure is saved by the code that draws it.

const XML = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const NOT_XML = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu;
/** Return text of a trace as text of an SVG file. */
export const escapeXml = (text) => String(text).replace(NOT_XML, "\uFFFD").replace(/[&<>"]/g, (sign) => XML[sign]);

const round = (value) => Math.round(value * 100) / 100;
// Shifts of the baseline by the size of the font. Not all programs know dominant-baseline.
const SHIFTS = { top: 0.8, middle: 0.35, bottom: -0.2 };
const ANCHORS = { center: "middle", right: "end" };
const measuring = document.createElement("canvas").getContext("2d");
let identifiers = 0; // of clips and patterns, which are unique in a file

class SvgContext {
  constructor() {
    this.parts = [];
    Object.assign(this, { fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1,
      font: "12px sans-serif", textAlign: "left", textBaseline: "alphabetic" });
    this.dash = [];
    this.path = [];
    this.clips = [0]; // of each save(): how many groups are open since
  }

  setTransform() { /* the unit is the CSS pixel */ }
  clearRect() { /* a picture begins empty */ }
  setLineDash(dash) { this.dash = dash; }
  measureText(text) { measuring.font = this.font; return measuring.measureText(text); }

  save() { this.clips.push(0); }
  restore() { this.parts.push("</g>".repeat(this.clips.pop())); }
  clip() {
    const id = `clip-${++identifiers}`;
    this.parts.push(`<clipPath id="${id}"><path d="${this.path.join("")}"/></clipPath><g clip-path="url(#${id})">`);
    this.clips[this.clips.length - 1]++;
  }

  beginPath() { this.path = []; }
  moveTo(x, y) { this.path.push(`M${round(x)} ${round(y)}`); }
  lineTo(x, y) { this.path.push(`L${round(x)} ${round(y)}`); }
  bezierCurveTo(...places) { this.path.push(`C${places.map(round).join(" ")}`); }
  closePath() { this.path.push("Z"); }
  rect(x, y, w, h) { this.path.push(`M${round(x)} ${round(y)}h${round(w)}v${round(h)}h${round(-w)}Z`); }
  stroke() { this.parts.push(`<path d="${this.path.join("")}" fill="none" ${this.#stroke()}/>`); }
  fill() { this.parts.push(`<path d="${this.path.join("")}" ${this.#fill()}/>`); }
  fillRect(x, y, w, h) { this.parts.push(`<rect ${rectangle(x, y, w, h)} ${this.#fill()}/>`); }
  strokeRect(x, y, w, h) { this.parts.push(`<rect ${rectangle(x, y, w, h)} fill="none" ${this.#stroke()}/>`); }

  fillText(text, x, y, maxWidth = Infinity) {
    const [, size, family] = /([\d.]+)px (.*)/.exec(this.font);
    const fit = this.measureText(text).width > maxWidth ? ` textLength="${round(maxWidth)}" lengthAdjust="spacingAndGlyphs"` : "";
    this.parts.push(`<text x="${round(x)}" y="${round(y + size * (SHIFTS[this.textBaseline] ?? 0))}" font-size="${size}" `
      + `font-family="${escapeXml(family)}" text-anchor="${ANCHORS[this.textAlign] ?? "start"}"${fit} ${this.#fill()}>${escapeXml(text)}</text>`);
  }

  /** Draw a row of pixels of a canvas: a rectangle for each run of one color. */
  drawImage(image, from, row, count, _, x, y, w, h) {
    // Read once: an image is drawn row by row.
    const { data } = (image.pixels ??= image.getContext("2d").getImageData(0, 0, image.width, image.height));
    const pixelAt = (i) => data.slice(4 * (row * image.width + from + i), 4 * (row * image.width + from + i + 1));
    const colorAt = (i) => pixelAt(i).join(",");
    for (let i = 0, next; i < count; i = next) {
      next = i + 1;
      while (next < count && colorAt(next) === colorAt(i)) next++;
      const [red, green, blue, alpha] = pixelAt(i);
      if (!alpha) continue;
      this.parts.push(`<rect ${rectangle(x + (i / count) * w, y, ((next - i) / count) * w, h)} fill="rgb(${red},${green},${blue})" fill-opacity="${round(alpha / 255)}"/>`);
    }
  }

  #fill() {
    let color = this.fillStyle;
    if (typeof color !== "string") {
      // A pattern of diagonal lines, as flame/colors.js makes it.
      const id = `pattern-${++identifiers}`;
      const [background, line] = color.colors;
      this.parts.push(`<pattern id="${id}" width="8" height="8" patternUnits="userSpaceOnUse"><path d="M0 0h8v8H0Z" fill="${background}"/><path d="M0 8L8 0" stroke="${line}"/></pattern>`);
      color = `url(#${id})`;
    }
    return `fill="${color}"${this.#opacity()}`;
  }
  #stroke() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    return `stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${dash}${this.#opacity()}`;
  }
  #opacity() { return this.globalAlpha < 1 ? ` opacity="${round(this.globalAlpha)}"` : ""; }
}

const rectangle = (x, y, w, h) => `x="${round(x)}" y="${round(y)}" width="${round(Math.max(w, 0))}" height="${round(Math.max(h, 0))}"`;

/** Return what stands for a canvas: drawing on it writes SVG into `context.parts`. */
export function svgCanvas() {
  const context = new SvgContext();
  return { style: {}, context, getContext: () => context };
}

/** Write the legend of a figure; return its height. */
export function drawLegend(context, figure, top, width, { ink, font }) {
  const [indent, rowPx, gapPx] = [8, 18, 16];
  Object.assign(context, { font, textAlign: "left", textBaseline: "middle" });
  let [x, y] = [indent, top + rowPx];
  for (const item of figure.querySelectorAll("ul li:not([hidden])")) {
    const swatch = item.querySelector("i");
    const label = [...item.querySelectorAll(".what, b, .seconds")].map((part) => part.textContent).join(" ")
      || item.textContent.trim().slice(swatch.textContent.length);
    const length = 16 + context.measureText(label).width + gapPx;
    if (x > indent && x + length > width) [x, y] = [indent, y + rowPx];
    const { backgroundColor, color } = getComputedStyle(swatch);
    context.fillStyle = swatch.textContent || backgroundColor === "rgba(0, 0, 0, 0)" ? color : backgroundColor;
    if (swatch.textContent) context.fillText(swatch.textContent, x, y);
    else context.fillRect(x, y - 5, 10, 10);
    context.fillStyle = ink;
    context.fillText(label, x + 16, y);
    x += length;
  }
  return y + rowPx - top;
}
