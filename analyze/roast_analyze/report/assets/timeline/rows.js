import { datasetOf, mapRowName, prefixOf } from "./describe.js";

const HEADER = ["what", "worker", "thread", "prefix", "dataset", "key", "attempt", "outcome",
  "start_t", "stop_t", "seconds", "filename", "entry_start", "entry_stop", "value"];

/**
 * Return what is shown as rows of a CSV file: by lane what passes the filters and lies in the visible
 * time range, then the curve and the utilization map. Instants are seconds since the epoch.
 */
export function shownRows({ data, state }) {
  const rows = [];
  const add = (what, start, stop, about) => {
    if (stop < state.start || start > state.stop) return;
    const record = { what, start_t: (data.begin + start).toFixed(6), stop_t: (data.begin + stop).toFixed(6),
      seconds: stop - start, ...about };
    rows.push(HEADER.map((name) => record[name] ?? ""));
  };
  const ofKind = (kind) => ({ prefix: prefixOf(data, kind), dataset: datasetOf(data, kind) });
  const ofAttempt = (from, i) => ({ ...ofKind(from.kinds[i]), key: from.keys[i], attempt: from.attempts[i],
    outcome: data.outcomes[from.outcomes[i]] });
  const { bars, bucketSeconds, cells, marks, transfers, transferCells } = data;
  const ofFile = (i) => (bars.files && bars.files[i] >= 0 ? {
    filename: bars.filenames[bars.files[i]], entry_start: bars.entryStarts[i], entry_stop: bars.entryStops[i] } : {});
  const spansOf = (spans, lane) => spans.order.subarray(spans.first[lane], spans.first[lane + 1]);
  const addCell = (what, { buckets, shares }, i, about) => {
    const start = buckets[i] * bucketSeconds;
    add(what, start, Math.min(start + bucketSeconds, data.seconds), { ...about, seconds: shares[i] * bucketSeconds });
  };
  for (const row of state.rows) {
    for (let lane = data.firstLane[row]; lane < data.firstLane[row + 1]; lane++) {
      const where = { worker: data.addresses[row], thread: lane - data.firstLane[row] + 1 };
      for (const i of spansOf(bars, lane)) {
        if (!state.isBarShown(i)) continue;
        const about = { ...where, ...ofAttempt(bars, i), ...ofFile(i), seconds: bars.lengths[i] };
        add("computation", bars.starts[i], bars.starts[i] + bars.lengths[i], about);
      }
      for (let i = cells.first[lane]; !state.areAttemptsFiltered && i < cells.first[lane + 1]; i++) {
        if (state.isKindShown[cells.kinds[i]]) addCell("short tasks", cells, i, { ...where, ...ofKind(cells.kinds[i]) });
      }
      for (const i of spansOf(marks, lane)) {
        if (state.isMarkShown(i)) add("failure", marks.starts[i], marks.starts[i], { ...where, ...ofAttempt(marks, i) });
      }
      if (!state.areTransfersShown) continue;
      for (let i = transferCells.first[lane]; i < transferCells.first[lane + 1]; i++) {
        addCell("short transfers", transferCells, i, where);
      }
      for (const i of spansOf(transfers, lane)) {
        add("transfer", transfers.starts[i], transfers.starts[i] + transfers.lengths[i], where);
      }
    }
  }
  const { begin, seconds, computing, threads } = data.curve;
  const addSeries = (what, worker, values) => values.forEach((value, i) => {
    if (value === null || value < 0) return;
    const start = begin + i * seconds;
    add(what, start, Math.min(start + seconds, data.seconds), { worker, value });
  });
  addSeries("tasks computing", "", state.computing ?? computing);
  addSeries("threads", "", threads);
  for (const row of data.map) addSeries("percent busy", mapRowName(row), row.shares);
  return [HEADER, ...rows];
}
