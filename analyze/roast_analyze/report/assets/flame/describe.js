// What the tooltip and the lines above and below the flame graph report, as text.
import { duration, percent, plural } from "../shared/format.js";
import { AMBIGUOUS, RARE } from "./data.js";

export const HINT = "Click a function, or press Enter, to zoom in; Escape zooms out. "
  + "Drag over the bars above to select a time range.";

/** Return an amount of time, or of samples where the sampling interval is not known. */
export const amount = (data, value) => (data.inSeconds ? duration(value) : plural(value, "sample"));

/** Return lines about a box. */
export function describe({ data, state, tree, weights }, box) {
  const ofShown = (value) => percent(value / tree.total[0]);
  const kind = data.kinds[box.frame];
  if (state.sandwich) return describeInSandwich({ data, tree, weights, state }, box);
  const what = box.depth === 0 || !state.inverted ? "total time"
    : box.depth === 1 ? "self time" : "self time of the innermost function, called from here";
  const ofWhole = state.isBrushed ? `, ${percent(box.total / weights.whole)} of the total` : "";
  const lines = [`${what} ${amount(data, box.total)}: ${ofShown(box.total)} of what is shown${ofWhole}`];
  if (box.depth && !state.inverted) {
    const ambiguous = box.ambiguous
      ? `; ${amount(data, box.ambiguous)} of it is ambiguous: in one of several functions that it calls` : "";
    lines.push(`self time ${amount(data, box.self)}: ${ofShown(box.self)}${ambiguous}`);
  }
  if (box.depth && kind < AMBIGUOUS) {
    lines.push(`all calls of this function: total time ${amount(data, weights.functionTotal[box.frame])}, `
      + `self time ${amount(data, weights.functionSelf[box.frame])}`);
  }
  if (kind === AMBIGUOUS) lines.push("in one of several functions; the profiler does not record in which");
  if (kind === RARE) lines.push("functions with too few samples to be listed here");
  return lines;
}

function describeInSandwich({ data, tree, weights, state }, box) {
  const name = data.names[state.center];
  const what = box.depth === 0 ? "total time" : box.step < 0 ? `time of ${name}, called through here` : `time below ${name}`;
  const lines = [`${what} ${amount(data, box.total)}: ${percent(box.total / tree.total[0])} of what is shown`];
  if (data.kinds[box.frame] < AMBIGUOUS) {
    lines.push(`all calls of this function: total time ${amount(data, weights.functionTotal[box.frame])}, `
      + `self time ${amount(data, weights.functionSelf[box.frame])}`);
  }
  return lines;
}

/** Return the sentence above the flame graph: how much is shown, and what a search finds. */
export function summarize({ data, state, tree, weights, searched, matched }) {
  const { samples, whole } = weights;
  const total = tree.total[0];
  const parts = [];
  if (state.sandwich) parts.push(`Callers above and callees below ${data.names[state.center]}`);
  if (!samples) parts.push("No samples in this selection");
  else if (state.isYappi) parts.push(`${amount(data, total)}, measured by Yappi`);
  else parts.push(`${data.inSeconds ? `${amount(data, total)}, ` : ""}${plural(samples, "sample")}`);
  if (state.isBrushed) {
    const [start, stop] = [state.start, state.stop].map((bucket) => duration(data.timeOf(bucket)));
    parts.push(`${percent(total / whole)} of the total, from ${start} to ${stop}`);
  }
  if (searched.isInvalid) parts.push("invalid regular expression");
  if (matched) {
    parts.push(`${plural(matched.functions, "function")} found, in ${percent(matched.seconds / (total || 1))} `
      + `of the time (${amount(data, matched.seconds)})`);
  }
  return `${parts.join("; ")}.`;
}
