// What tooltips and the lines above and below the timeline report, as text.
import { duration, integer, percent, plural, significant } from "../shared/format.js";
import { WORKER_LOST } from "./data.js";
import { CURVE_PX, GAP_PX } from "./layout.js";

export const HINT = "Drag to select a time range, double-click to reset the zoom. Ctrl + wheel zooms. "
  + "Click a bar to keep its details here.";

const OUTCOMES = {
  erred: "failed", retried: "failed and retried", lost: "lost with its worker", rescheduled: "rescheduled",
  cancelled: "cancelled", unfinished: "unfinished", skipped: "skipped",
};

/** Return a time since the start and by the clock: together to a thousandth of the visible range. */
function instant({ data, state }, seconds) {
  const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10((state.stop - state.start) / 1000))));
  const sinceStart = digits
    ? `${seconds.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })} s`
    : duration(seconds);
  return `${sinceStart} (${clockTime(data, seconds)})`;
}

/** Return the time of day, with the date in recordings of more than a day. */
function clockTime(data, seconds) {
  const zone = data.zone ?? 0; // seconds east of UTC
  const instant = new Date((data.begin + seconds + zone) * 1000).toISOString();
  const time = instant.slice(data.seconds > 86400 ? 0 : 11, 19).replace("T", " ");
  if (zone === 0) return `${time} UTC`;
  const minutes = Math.round(Math.abs(zone) / 60);
  const rest = minutes % 60 ? `:${String(minutes % 60).padStart(2, "0")}` : "";
  return `${time} UTC${zone < 0 ? "−" : "+"}${Math.floor(minutes / 60)}${rest}`;
}

export const prefixOf = (data, kind) => data.prefixes[data.kinds[kind]?.[0]]?.[0];
export const datasetOf = (data, kind) => data.datasets[data.kinds[kind]?.[1]]?.[0];
export const mapRowName = ({ name, workers }) => (workers > 1 ? `${name} and ${workers - 1} more` : name);
const nameOf = (data, kind) => prefixOf(data, kind) ?? datasetOf(data, kind) ?? "(others)";

function threadOf(data, lane) {
  const row = data.rowOfLane[lane];
  const [name, address] = [data.workers[row], data.addresses[row]];
  const worker = address && !address.endsWith(name) ? `${name}, ${address}` : address || name;
  return data.lanes[row] > 1 ? `${worker}, thread ${lane - data.firstLane[row] + 1}` : worker;
}

/** Describe what hitTest found: a title and lines; null for nothing. */
export function describe(timeline, hit) {
  if (!hit) return null;
  if (hit.bar !== undefined) return describeBar(timeline, hit.bar);
  if (hit.mark !== undefined) return describeMark(timeline, hit.mark);
  if (hit.process) return describeProcess(timeline, hit);
  return describeCells(timeline, hit);
}

function describeBar(timeline, i) {
  const { data } = timeline;
  const { bars } = data;
  const kind = bars.kinds[i];
  const lines = [bars.keys[i]];
  if (bars.files && bars.files[i] >= 0) {
    const dataset = prefixOf(data, kind) ? datasetOf(data, kind) : null;
    const entries = bars.entryStarts[i] === null ? ""
      : `, entries ${integer(bars.entryStarts[i])} to ${integer(bars.entryStops[i])}`;
    lines.push(`${dataset ? `${dataset}: ` : ""}${bars.filenames[bars.files[i]]}${entries}`);
  }
  const outcome = OUTCOMES[data.outcomes[bars.outcomes[i]]];
  lines.push(`compute time ${duration(bars.lengths[i])}, started at ${instant(timeline, bars.starts[i])}, `
    + `attempt ${bars.attempts[i]}${outcome ? `: ${outcome}` : ""}`
    + (bars.isOnPath[i] ? ", on the critical path" : ""));
  return { title: nameOf(data, kind), lines: [...lines, ...describeLinks(timeline, i), threadOf(data, bars.lanes[i])] };
}

/** Count the lines to and from the selected bar. */
function describeLinks({ state }, i) {
  if (state.selected?.bar !== i) return [];
  const links = state.linksInView();
  const sources = links.filter(([, target]) => target === i).length;
  const parts = [sources && `from ${plural(sources, "dependency", "dependencies")}`,
    links.length - sources && `dashed to ${plural(links.length - sources, "dependent")}`];
  return links.length ? [`lines ${parts.filter(Boolean).join(", ")} in view`] : [];
}

function describeMark(timeline, i) {
  const { data } = timeline;
  const { marks } = data;
  return {
    title: `${nameOf(data, marks.kinds[i])}: ${OUTCOMES[data.outcomes[marks.outcomes[i]]] ?? ""}`,
    lines: [marks.keys[i], `at ${instant(timeline, marks.starts[i])}, attempt ${marks.attempts[i]}`,
      threadOf(data, marks.lanes[i])],
  };
}

function describeProcess(timeline, { process, event, row }) {
  const { workers, addresses } = timeline.data;
  const action = event === "join" ? "joined" : process.end === WORKER_LOST ? "was lost" : "left";
  const time = event === "join" ? process.start : process.stop;
  return { title: `${workers[row]} ${action}`, lines: [`at ${instant(timeline, time)}`, addresses[row]] };
}

function describeCells(timeline, { lane, bucket }) {
  const { data, state } = timeline;
  const { cells, bucketSeconds } = data;
  const found = [];
  for (let i = cells.first[lane]; i < cells.first[lane + 1]; i++) {
    if (cells.buckets[i] === bucket && state.isKindShown[cells.kinds[i]]) found.push([cells.shares[i], cells.kinds[i]]);
  }
  found.sort((a, b) => b[0] - a[0]);
  const lines = found.slice(0, 5).map(([share, kind]) => {
    const dataset = prefixOf(data, kind) && datasetOf(data, kind);
    return `${nameOf(data, kind)}${dataset ? ` (${dataset})` : ""}: ${percent(share)} of the time`;
  });
  if (found.length > 5) lines.push(`and ${found.length - 5} more`);
  const start = bucket * bucketSeconds;
  const length = duration(Math.min(bucketSeconds, data.seconds - start));
  return {
    title: `Short tasks from ${instant(timeline, start)}, for ${length}`,
    lines: [...lines, threadOf(data, lane)],
  };
}

/** Describe the bucket of the curve or of the utilization map at a time and height; null outside. */
export function describeOverview(timeline, seconds, y) {
  const { data, state, layout } = timeline;
  const { begin, seconds: bucketSeconds, computing, threads } = data.curve;
  const i = Math.floor((seconds - begin) / bucketSeconds);
  if (i < 0 || i >= computing.length) return null;
  const range = `from ${instant(timeline, begin + i * bucketSeconds)}, for ${duration(bucketSeconds)}`;
  if (y > CURVE_PX) {
    const row = data.map[Math.floor((y - CURVE_PX - GAP_PX) / layout.mapRowHeight)];
    if (!row || row.shares[i] < 0) return null;
    return { title: `${mapRowName(row)}: ${row.shares[i]} % busy`, lines: [range] };
  }
  const on = threads[i] === null ? "" : ` on ${significant(threads[i])} threads`;
  const least = state.isComputingPartial ? "at least " : "";
  const selected = state.computing ? [`${least}${significant(state.computing[i])} of the selected tasks`] : [];
  return { title: `${significant(computing[i])} tasks computing${on}`, lines: [...selected, range] };
}

/** Return the sentence above the timeline: the visible time range, and what the filters select. */
export function summarize(timeline) {
  const { data, state } = timeline;
  const parts = [];
  if (state.isZoomed) {
    parts.push(`From ${instant(timeline, state.start)} to ${instant(timeline, state.stop)}, `
      + duration(state.stop - state.start));
  }
  const sumOf = (kinds, column) => kinds.reduce((sum, kind) => sum + kind[column], 0);
  const [ATTEMPTS, SECONDS] = [2, 3];
  if (state.isFiltered) {
    // Kinds count the attempts of all workers and outcomes, also those that are not drawn.
    const ofKinds = state.worker === "all" && !state.areAttemptsFiltered;
    const kinds = data.kinds.filter((_, kind) => state.isKindShown[kind]);
    const { seconds } = data.curve;
    const selected = ofKinds ? sumOf(kinds, SECONDS) : state.computing.reduce(
      (sum, value, i) => sum + value * Math.min(seconds, data.seconds - i * seconds), 0);
    const attempts = ofKinds ? `${plural(sumOf(kinds, ATTEMPTS), "attempt")}, ` : "";
    const isPartial = ofKinds ? state.areKindsPartial : state.isComputingPartial;
    parts.push(`Selected: ${isPartial ? "at least " : ""}${attempts}${duration(selected)} of compute time, `
      + `${percent(selected / sumOf(data.kinds, SECONDS))} of the total`);
  }
  if (!parts.length) {
    const noun = data.prefixes.length ? "task attempt" : "chunk attempt";
    parts.push(`${plural(sumOf(data.kinds, ATTEMPTS), noun)} in ${duration(data.seconds)}`);
  }
  return `${parts.join(". ")}.`;
}
