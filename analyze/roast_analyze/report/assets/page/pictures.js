// Figures as files: SVG, and PNG of twice its size. Figures on canvases have a method `picture`
// that returns width, height and body of an SVG; plotly writes that of its figures.
import { drawLegend, svgCanvas } from "../shared/svg.js";
import { cssVariable } from "./theme.js";

const SCALE = 2;
const SVG = "http://www.w3.org/2000/svg";

/** Return a figure as the text of an SVG file, in the colors of the page. */
export async function svgOf(figure) {
  const paper = `<rect width="100%" height="100%" fill="${cssVariable("--paper")}"/>`;
  if (figure.classList.contains("plot")) {
    const canvas = figure.querySelector(".canvas");
    const { clientWidth: width, clientHeight: height } = canvas;
    const url = await Plotly.toImage(canvas, { format: "svg", width, height });
    return decodeURIComponent(url.slice(url.indexOf(",") + 1)).replace(/<svg[^>]*>/, (start) => start + paper);
  }
  const { width, height, body } = figure.classList.contains("spent") ? spentPicture(figure) : figure.picture();
  return `<svg xmlns="${SVG}" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${paper}${body}</svg>`;
}

/** Return the bar of the verdict, with its legend. */
function spentPicture(figure) {
  const { context } = svgCanvas();
  const width = figure.clientWidth;
  const left = figure.querySelector(".bar").getBoundingClientRect().left;
  for (const part of figure.querySelectorAll(".bar i")) {
    const box = part.getBoundingClientRect();
    context.fillStyle = getComputedStyle(part).backgroundColor;
    context.fillRect(box.left - left, 0, box.width, box.height);
  }
  const top = figure.querySelector(".bar").clientHeight;
  const height = top + drawLegend(context, figure, top, width, { ink: cssVariable("--ink"), font: `12px ${cssVariable("--sans")}` });
  return { width, height, body: context.parts.join("") };
}

/** Return a figure as a blob: "svg" or "png". */
export async function pictureOf(figure, format) {
  const svg = new Blob([await svgOf(figure)], { type: "image/svg+xml" });
  if (format === "svg") return svg;
  const image = new Image();
  image.src = URL.createObjectURL(svg);
  try {
    await image.decode();
  } finally {
    URL.revokeObjectURL(image.src);
  }
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width * SCALE, image.height * SCALE];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => { canvas.toBlob(done, "image/png"); });
}
