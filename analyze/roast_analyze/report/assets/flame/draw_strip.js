import { sizedContext } from "../shared/canvas.js";
import { duration } from "../shared/format.js";
import { ROOT } from "./data.js";

const STRIP_PX = 52;
const AXIS_PX = 15;

/** Draw the samples over time, and the brushed time range. */
export function drawStrip({ colors, data, state, weights: { byBucket }, elements: { strip } }) {
  const width = Math.max(strip.parentElement.clientWidth, 200);
  const context = sizedContext(strip, width, STRIP_PX);
  const highest = Math.max(...byBucket, 1e-12);
  const height = STRIP_PX - AXIS_PX;
  const step = width / data.bucketCount;
  [context.fillStyle] = colors.kinds[ROOT];
  context.fillRect(0, 0, width, height);
  for (let bucket = 0; bucket < data.bucketCount; bucket++) {
    const isInside = bucket >= state.start && bucket < state.stop;
    context.fillStyle = isInside ? colors.accent : colors.idle;
    context.globalAlpha = isInside && !state.isBrushed ? 0.55 : 1;
    const barHeight = byBucket[bucket] ? Math.max((byBucket[bucket] / highest) * (height - 2), 1) : 0;
    context.fillRect(bucket * step, height - barHeight, Math.max(step - (step > 4 ? 1 : 0), 0.5), barHeight);
  }
  context.globalAlpha = 1;
  context.font = `11px ${colors.sans}`;
  context.fillStyle = colors.soft;
  context.textBaseline = "bottom";
  context.textAlign = "left";
  context.fillText(duration(data.timeOf(0)), 0, STRIP_PX);
  context.textAlign = "right";
  context.fillText(duration(data.timeOf(data.bucketCount)), width, STRIP_PX);
  if (!state.isBrushed) return;
  context.strokeStyle = colors.accent;
  context.lineWidth = 1.5;
  context.strokeRect(state.start * step + 0.75, 0.75, (state.stop - state.start) * step - 1.5, height - 1.5);
  const text = `${duration(data.timeOf(state.start))} to ${duration(data.timeOf(state.stop))}`;
  const middle = ((state.start + state.stop) / 2) * step;
  context.textAlign = "center";
  context.fillStyle = colors.outline;
  context.fillText(text, Math.min(Math.max(middle, 110), width - 110), STRIP_PX);
}
