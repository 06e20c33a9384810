// The upper canvas: the number of tasks computing, and the utilization of workers, over time.
import { sizedContext } from "../shared/canvas.js";
import { significant } from "../shared/format.js";
import { drawAxis, drawBrush } from "./axis.js";
import { AXIS_PX, CURVE_PX, GAP_PX } from "./layout.js";

export function drawOverview(timeline) {
  const { layout, colors, elements } = timeline;
  elements.top.style.width = `${layout.width}px`;
  const context = sizedContext(elements.top, layout.width, layout.topHeight);
  context.font = colors.font;
  drawAxis(timeline, context, layout.topHeight - AXIS_PX, { labeled: true });
  if (timeline.data.curve.computing.length) {
    drawCurve(timeline, context);
    drawMap(timeline, context);
  }
  drawBrush(timeline, context, layout.topHeight - AXIS_PX);
}

function clip(context, x, y, width, height) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
}

function drawCurve({ data, state, layout, colors }, context) {
  const { begin, seconds, computing, threads } = data.curve;
  const mostThreads = Math.max(...threads.map((count) => count ?? 0));
  const highest = Math.max(...computing, mostThreads, 1);
  const base = CURVE_PX - 1;
  const y = (value) => base - (value / highest) * (CURVE_PX - 14);
  const tracePath = (values) => {
    context.beginPath();
    context.moveTo(layout.x(begin), base);
    values.forEach((value, i) => {
      context.lineTo(layout.x(begin + i * seconds), y(value ?? 0));
      context.lineTo(layout.x(Math.min(begin + (i + 1) * seconds, data.seconds)), y(value ?? 0));
    });
    context.lineTo(layout.x(Math.min(begin + values.length * seconds, data.seconds)), base);
  };
  clip(context, layout.gutter, 0, layout.plotWidth, CURVE_PX);
  tracePath(state.computing ?? computing);
  context.fillStyle = colors.area;
  context.fill();
  context.strokeStyle = colors.computing;
  context.lineWidth = 1.2;
  context.stroke();
  context.setLineDash([3, 3]);
  context.strokeStyle = colors.soft;
  tracePath(threads);
  context.stroke();
  context.restore();
  context.fillStyle = colors.soft;
  context.textAlign = "right";
  context.textBaseline = "middle";
  // The number of threads is a round number; without it, the highest number of tasks is the label.
  const label = mostThreads || highest;
  context.fillText(significant(label), layout.gutter - 6, y(label));
  context.fillText("0", layout.gutter - 6, base - 4);
  context.fillText("tasks", layout.gutter - 6, (y(label) + base) / 2);
}

/** Return an image of one color with a pixel for each share of the map. */
function mapImage({ curve, map }, alphaOf, color) {
  const image = document.createElement("canvas");
  [image.width, image.height] = [curve.computing.length, map.length];
  const context = image.getContext("2d");
  const pixels = context.createImageData(image.width, image.height);
  map.forEach(({ shares }, row) => shares.forEach((share, i) => {
    pixels.data[4 * (row * image.width + i) + 3] = share < 0 ? 0 : alphaOf(share);
  }));
  context.putImageData(pixels, 0, 0);
  context.globalCompositeOperation = "source-in";
  context.fillStyle = color;
  context.fillRect(0, 0, image.width, image.height);
  return image;
}

function drawMap({ data, state, layout, colors }, context) {
  if (!data.map.length) return;
  const { begin, seconds, computing: { length } } = data.curve;
  // Drawn once a theme: zooming only scales the images.
  colors.mapImages ??= [
    mapImage(data, () => 255, colors.presence),
    mapImage(data, (share) => Math.round(2.55 * Math.min(share, 100)), colors.computing),
  ];
  const height = layout.mapRowHeight;
  const plotWidth = Math.min(layout.plotWidth, layout.x(data.seconds) - layout.gutter);
  clip(context, layout.gutter, CURVE_PX, plotWidth, GAP_PX + layout.mapHeight);
  const low = Math.max(0, Math.floor((state.start - begin) / seconds));
  const high = Math.min(length - 1, Math.floor((state.stop - begin) / seconds));
  const x = layout.x(begin + low * seconds);
  const width = layout.x(begin + (high + 1) * seconds) - x;
  // Smoothing would blur the edges of buckets when they are drawn wide.
  context.imageSmoothingEnabled = false;
  for (let row = 0; row < data.map.length; row++) {
    const y = CURVE_PX + GAP_PX + row * height;
    for (const image of colors.mapImages) {
      context.drawImage(image, low, row, high - low + 1, 1, x, y, width, height - (height > 3 ? 1 : 0));
    }
  }
  context.restore();
  context.fillStyle = colors.soft;
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillText("busy", layout.gutter - 6, CURVE_PX + GAP_PX + layout.mapHeight / 2);
}
