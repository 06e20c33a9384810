const UNITS = [[1e-6, "µs"], [1e-3, "ms"], [1, "s"], [60, "min"], [3600, "h"], [86400, "d"]];
const DECADES = [1, 2, 5, 10, 20, 50, 100, 200, 500];
const STEPS = [
  ...DECADES.map((n) => n * 1e-6), ...DECADES.map((n) => n * 1e-3),
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
  ...[...DECADES, 1000, 5000].map((n) => n * 86400),
];
const TICK_PX = 90; // least distance between two ticks
const ROUNDING = 1.0000001;

/** Return the ticks of the visible time range as [seconds, label], and the unit of the labels. */
function ticks({ start, stop }, widthPx) {
  const wanted = (stop - start) / Math.max(widthPx / TICK_PX, 2);
  const step = STEPS.find((size) => size >= wanted) ?? wanted;
  const fitting = UNITS.findLast(([size]) => size <= (step >= 60 ? step : Math.min(step, 1)) * ROUNDING) ?? UNITS[0];
  const [size, unit] = step < 1 && stop >= 1 ? [1, "s"] : fitting;
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / size * ROUNDING))));
  const found = [];
  for (let i = Math.ceil(start / step - 1e-9); i * step <= stop * (1 + 1e-12) && found.length < 200; i++) {
    found.push([i * step, (i * step / size).toFixed(digits)]);
  }
  return { found, unit };
}

/** Draw the grid lines of the time axis over a height; below them, if labeled, the axis itself. */
export function drawAxis({ state, layout, colors }, context, height, { labeled }) {
  const { found, unit } = ticks(state, layout.plotWidth);
  context.strokeStyle = colors.line;
  context.lineWidth = 1;
  context.fillStyle = colors.soft;
  context.textBaseline = "top";
  context.textAlign = "center";
  const title = `time since start (${unit})`;
  // The title is at the right end of the axis; labels that would overlap it are left out.
  const free = labeled ? layout.width - context.measureText(title).width - 24 : layout.width;
  for (const [seconds, label] of found) {
    const x = Math.round(layout.x(seconds)) + 0.5;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, height + (labeled ? 4 : 0));
    context.stroke();
    if (labeled && x + context.measureText(label).width / 2 < free) context.fillText(label, x, height + 7);
  }
  if (!labeled) return;
  context.textAlign = "right";
  context.fillText(title, layout.width - 8, height + 7);
}

/** Draw the time range that is being dragged. */
export function drawBrush({ state, layout, colors }, context, height) {
  if (!state.brush) return;
  const [left, right] = [Math.min(...state.brush), Math.max(...state.brush)].map((seconds) => layout.x(seconds));
  context.fillStyle = colors.brush;
  context.fillRect(left, 0, Math.max(right - left, 1), height);
}
