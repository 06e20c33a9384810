// The lower canvas: a lane for each thread. Long computations are bars of their own; short ones
// are drawn by bucket, as high as their share of the bucket. Only what is visible is drawn.
import { sizedContext } from "../shared/canvas.js";
import { drawAxis, drawBrush } from "./axis.js";
import { ERRED, RETRIED, WORKER_LOST } from "./data.js";

const NAME_PX = 12;

export function drawLanes(timeline) {
  const { state, layout, colors, elements } = timeline;
  elements.content.style.height = `${layout.lanesHeight}px`;
  elements.canvas.style.width = `${layout.width}px`;
  const height = layout.visibleHeight;
  const context = sizedContext(elements.canvas, layout.width, height);
  context.font = colors.font;
  const top = layout.scrollTop;
  drawAxis(timeline, context, height, { labeled: false });
  context.save();
  context.beginPath();
  context.rect(layout.gutter, 0, layout.plotWidth + 8, height);
  context.clip();
  const first = layout.placeAt(top);
  const last = Math.min(layout.placeAt(top + height), state.rows.length - 1);
  // Signs come after all bars, so that those of the next row do not cover them.
  for (const drawPart of [drawRow, drawSigns]) {
    for (let place = first; place <= last; place++) {
      drawPart(timeline, context, state.rows[place], layout.rowTops[place] - top, layout.rowHeight(place));
    }
  }
  drawDependencies(timeline, context, top);
  drawBrush(timeline, context, height);
  context.restore();
  drawNames(timeline, context, top, height);
}

function drawNames({ data, state, layout, colors }, context, top, height) {
  context.fillStyle = colors.soft;
  context.textAlign = "right";
  context.textBaseline = "middle";
  let free = -Infinity;
  // From the first row on, so that scrolling does not change which rows are named.
  for (let place = 0; place < state.rows.length; place++) {
    const middle = layout.rowTops[place] + layout.rowHeight(place) / 2 - top;
    if (middle > height + NAME_PX) break;
    if (middle < free) continue;
    free = middle + NAME_PX + 1;
    if (middle < -NAME_PX) continue;
    const name = shortened(context, data.workers[state.rows[place]], layout.gutter - 12);
    context.fillText(name, layout.gutter - 6, middle);
  }
}

function shortened(context, text, widthPx) {
  if (context.measureText(text).width <= widthPx) return text;
  let length = text.length - 1;
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > widthPx) length--;
  return `${text.slice(0, length)}…`;
}

function drawRow(timeline, context, row, y, height) {
  const { data, state, layout, colors } = timeline;
  context.fillStyle = colors.presence;
  for (const { start, stop } of data.processes[row]) {
    if (stop < state.start || start > state.stop) continue;
    context.fillRect(layout.x(start), y, Math.max(layout.x(stop) - layout.x(start), 1), height);
  }
  if (state.color === "status") drawStatuses(timeline, context, row, y, height);
  const laneHeight = height / data.lanes[row];
  const barHeight = laneHeight > 6 ? laneHeight - 1 : laneHeight;
  for (let slot = 0; slot < data.lanes[row]; slot++) {
    const lane = data.firstLane[row] + slot;
    const laneY = y + slot * laneHeight;
    if (!state.areAttemptsFiltered) drawCells(timeline, context, lane, laneY, barHeight);
    drawBars(timeline, context, lane, laneY, barHeight);
    if (state.areTransfersShown) drawTransfers(timeline, context, lane, laneY, barHeight);
  }
}

function drawStatuses({ data, layout }, context, row, y, height) {
  context.globalAlpha = 0.35;
  for (const [of, status, start, stop] of data.statuses) {
    if (of !== row) continue;
    context.fillStyle = data.ranked[status] ?? data.others;
    context.fillRect(layout.x(start), y, Math.max(layout.x(stop) - layout.x(start), 1), height);
  }
  context.globalAlpha = 1;
}

/** Draw lines from the dependencies of the selected bar to it, and dashed ones to its dependents. */
function drawDependencies({ data, state, layout, colors }, context, top) {
  const { bars } = data;
  const yOf = (i) => {
    const row = data.rowOfLane[bars.lanes[i]];
    const place = state.rows.indexOf(row);
    const laneHeight = layout.rowHeight(place) / data.lanes[row];
    return layout.rowTops[place] - top + (bars.lanes[i] - data.firstLane[row] + 0.5) * laneHeight;
  };
  context.lineWidth = 1.5;
  context.strokeStyle = colors.ink;
  for (const [source, target] of state.linksInView()) {
    const [x, toX] = [layout.x(bars.starts[source] + bars.lengths[source]), layout.x(bars.starts[target])];
    const [y, toY] = [yOf(source), yOf(target)];
    const bend = Math.max(Math.abs(toX - x) / 2, 20);
    context.setLineDash(target === state.selected.bar ? [] : [4, 3]);
    context.beginPath();
    context.moveTo(x, y);
    context.bezierCurveTo(x + bend, y, toX - bend, toY, toX, toY);
    context.stroke();
  }
  context.setLineDash([]);
}

function drawBars({ data, state, layout, colors }, context, lane, y, height) {
  const { bars } = data;
  for (let k = bars.first[lane]; k < bars.first[lane + 1]; k++) {
    const i = bars.order[k];
    const start = bars.starts[i];
    if (start > state.stop) break;
    const stop = start + bars.lengths[i];
    if (stop < state.start || !state.isBarShown(i)) continue;
    const x = layout.x(start);
    const width = Math.max(layout.x(stop) - x, 1);
    context.fillStyle = state.colorOf(i);
    // Wide bars leave a thin gap, so that neighbors of one color stay apart.
    context.fillRect(x, y, width > 4 ? width - 0.7 : width, height);
    if (bars.isOnPath[i]) {
      context.fillStyle = colors.ink;
      context.fillRect(x, y, width > 4 ? width - 0.7 : width, Math.min(2.5, height / 3));
    }
    if (state.selected?.bar === i) {
      context.strokeStyle = colors.ink;
      context.lineWidth = 2;
      context.strokeRect(x - 1, y - 1, width + 2, height + 2);
    }
  }
}

// In a bucket, kinds are stacked, each as high as its share of the bucket's time.
function drawCells({ data, state, layout }, context, lane, y, height) {
  const { cells, bucketSeconds } = data;
  let bucket = -1;
  let base = 0;
  for (let i = cells.first[lane]; i < cells.first[lane + 1]; i++) {
    const start = cells.buckets[i] * bucketSeconds;
    if (start > state.stop) break;
    if (start + bucketSeconds < state.start || !state.isKindShown[cells.kinds[i]]) continue;
    if (cells.buckets[i] !== bucket) { bucket = cells.buckets[i]; base = 0; }
    const bottom = Math.min(base, 1) * height;
    base += cells.shares[i];
    const top = Math.min(base, 1) * height;
    const x = layout.x(start);
    const width = layout.x(Math.min(start + bucketSeconds, data.seconds)) - x;
    context.fillStyle = state.kindColors[cells.kinds[i]];
    context.fillRect(x, y + height - top, Math.max(width + 0.3, 0.5), top - bottom);
  }
}

// Transfers run beside computing: a thin line at the bottom of the lane.
function drawTransfers({ data, state, layout, colors }, context, lane, y, height) {
  const { transfers, transferCells, bucketSeconds } = data;
  const lineHeight = Math.max(1, Math.min(4, height * 0.3));
  const lineY = y + height - lineHeight;
  context.fillStyle = colors.transfer;
  for (let i = transferCells.first[lane]; i < transferCells.first[lane + 1]; i++) {
    const start = transferCells.buckets[i] * bucketSeconds;
    if (start > state.stop) break;
    if (start + bucketSeconds < state.start) continue;
    context.globalAlpha = Math.min(1, transferCells.shares[i]);
    const x = layout.x(start);
    context.fillRect(x, lineY, layout.x(Math.min(start + bucketSeconds, data.seconds)) - x + 0.3, lineHeight);
  }
  context.globalAlpha = 1;
  for (let k = transfers.first[lane]; k < transfers.first[lane + 1]; k++) {
    const i = transfers.order[k];
    const stop = transfers.starts[i] + transfers.lengths[i];
    if (transfers.starts[i] > state.stop) break;
    if (stop < state.start) continue;
    const x = layout.x(transfers.starts[i]);
    context.fillRect(x, lineY, Math.max(layout.x(stop) - x, 1), lineHeight);
  }
}

function drawSigns({ data, state, layout, colors }, context, row, y, height) {
  const { marks } = data;
  const laneHeight = height / data.lanes[row];
  for (let slot = 0; slot < data.lanes[row]; slot++) {
    const lane = data.firstLane[row] + slot;
    for (let k = marks.first[lane]; k < marks.first[lane + 1]; k++) {
      const i = marks.order[k];
      const x = layout.x(marks.starts[i]);
      if (x < layout.gutter - 6 || x > layout.width || !state.isMarkShown(i)) continue;
      const radius = state.selected?.mark === i ? 7 : 4.5;
      drawSign(context, colors, marks.outcomes[i], x, y + (slot + 0.5) * laneHeight, radius);
    }
  }
  for (const { start, stop, joined, end } of data.processes[row]) {
    context.fillStyle = colors.soft;
    if (joined) context.fillRect(layout.x(start) - 1, y - 1, 2, height + 2);
    if (!end) continue;
    const width = end === WORKER_LOST ? 4 : 2;
    if (end === WORKER_LOST) context.fillStyle = colors.bad;
    context.fillRect(layout.x(stop) - width / 2, y - 1, width, height + 2);
  }
}

function drawSign(context, colors, outcome, x, y, r) {
  context.beginPath();
  if (outcome === ERRED) {
    context.moveTo(x - r, y - r); context.lineTo(x + r, y + r);
    context.moveTo(x + r, y - r); context.lineTo(x - r, y + r);
  } else if (outcome === RETRIED) {
    context.moveTo(x, y - r); context.lineTo(x + r, y + r); context.lineTo(x - r, y + r); context.closePath();
  } else {
    context.moveTo(x, y - r); context.lineTo(x + r, y); context.lineTo(x, y + r); context.lineTo(x - r, y); context.closePath();
  }
  // An outline in the color of the background sets the sign off from the bar below it.
  context.strokeStyle = colors.raised;
  context.lineWidth = 4;
  context.stroke();
  context.strokeStyle = colors.bad;
  context.lineWidth = 2;
  context.stroke();
  if (outcome === RETRIED) { context.fillStyle = colors.bad; context.fill(); }
}
