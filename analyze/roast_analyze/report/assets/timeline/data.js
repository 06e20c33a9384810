// The timeline's data, as roast_analyze.report.topics.timeline.lanes embeds it. Times are seconds
// since the start of the recording. A row is a worker, a lane is a thread of it, a kind is a pair of
// prefix and dataset, a cell is the time that one kind took of one lane in one bucket.

export const ERRED = 1; // indices into data.outcomes
export const RETRIED = 2;
export const LOST = 3;
export const SEVERAL = -2; // in the place of a kind's prefix or dataset
export const WORKER_LOST = 2; // `end` of a process; 0: ran to the end of the recording, 1: left

const NO_SPANS = { lanes: [], starts: [], lengths: [] };
const NO_CELLS = { at: [], kinds: [], steps: [] };
const NO_LANES = {
  bars: NO_SPANS, transfers: NO_SPANS, marks: NO_SPANS, cells: NO_CELLS, transferCells: NO_CELLS,
  dependencies: { targets: [], sources: [] } };

/** Decode the first part, which the curve and the utilization map are drawn from. Lanes are empty. */
export function decodeTimeline(raw) {
  const firstLane = [0];
  for (const lanes of raw.lanes) firstLane.push(firstLane.at(-1) + lanes);
  const laneCount = firstLane.at(-1);
  const rowOfLane = new Int32Array(laneCount);
  const processes = raw.lanes.map((_, row) => {
    rowOfLane.fill(row, firstLane[row], firstLane[row + 1]);
    return [];
  });
  for (const [row, start, stop, joined, end] of raw.processes) {
    processes[row].push({ start: start / 1e6, stop: stop / 1e6, joined, end });
  }
  const data = {
    ...raw,
    statuses: raw.statuses.map(([row, status, start, stop]) => [row, status, start / 1e6, stop / 1e6]),
    seconds: Math.max(raw.seconds, 1e-6),
    bucketSeconds: raw.stretch,
    bucketsPerLane: raw.cellsALane,
    laneCount, rowOfLane, processes,
    firstLane: Int32Array.from(firstLane), // of each row, and the end of the last
  };
  decodeLanes(data, NO_LANES);
  return data;
}

/** Decode the second part, which the lanes are drawn from, into the data of the first. */
export function decodeLanes(data, raw) {
  data.bars = decodeSpans(data, raw.bars);
  data.bars.statuses = statusesOf(data);
  data.bars.isOnPath = new Uint8Array(data.bars.count);
  for (const bar of raw.bars.path ?? []) data.bars.isOnPath[bar] = 1;
  data.transfers = decodeSpans(data, raw.transfers);
  data.marks = decodeSpans(data, { ...raw.marks, lengths: raw.marks.starts.map(() => 0) });
  data.cells = decodeCells(data, raw.cells);
  data.transferCells = decodeCells(data, raw.transferCells);
  // Pairs of bars: a task, and a dependency of it.
  data.dependencies = { targets: cumulative(raw.dependencies.targets), sources: raw.dependencies.sources };
}

/** Return the number of the state in which the worker of each bar was; 0 is running. */
function statusesOf({ bars, rowOfLane, statuses }) {
  const found = new Uint8Array(bars.count);
  for (const [row, status, start, stop] of statuses) {
    for (let i = 0; i < bars.count; i++) {
      if (rowOfLane[bars.lanes[i]] === row && bars.starts[i] < stop && bars.starts[i] + bars.lengths[i] > start) found[i] = status;
    }
  }
  return found;
}

function cumulative(differences) {
  const sums = Float64Array.from(differences);
  for (let i = 1; i < sums.length; i++) sums[i] += sums[i - 1];
  return sums;
}

// Spans are in order of start time; `order[first[lane]]` to `order[first[lane + 1] - 1]` are
// the spans of a lane, in the same order.
function decodeSpans(data, raw) {
  const starts = cumulative(raw.starts);
  const lengths = Float64Array.from(raw.lengths);
  for (let i = 0; i < starts.length; i++) { starts[i] /= 1e6; lengths[i] /= 1e6; }
  const first = new Int32Array(data.laneCount + 1);
  for (const lane of raw.lanes) first[lane + 1]++;
  for (let lane = 0; lane < data.laneCount; lane++) first[lane + 1] += first[lane];
  const free = first.slice(0, data.laneCount);
  const order = new Int32Array(raw.lanes.length);
  raw.lanes.forEach((lane, i) => { order[free[lane]++] = i; });
  return { ...raw, starts, lengths, first, order, count: starts.length };
}

// There are tens of thousands of cells: plain loops take a tenth of the time of callbacks.
function decodeCells(data, raw) {
  const at = cumulative(raw.at);
  const first = new Int32Array(data.laneCount + 1);
  const buckets = new Int32Array(at.length);
  const shares = new Float32Array(at.length);
  for (let i = 0; i < at.length; i++) {
    const lane = Math.floor(at[i] / data.bucketsPerLane);
    first[lane + 1]++;
    buckets[i] = at[i] - lane * data.bucketsPerLane;
    shares[i] = raw.steps[i] / data.steps;
  }
  for (let lane = 0; lane < data.laneCount; lane++) first[lane + 1] += first[lane];
  return { first, buckets, shares, kinds: raw.kinds };
}
