import { AMBIGUOUS } from "./data.js";

export function newWeights(data) {
  return {
    samples: 0, // in the chosen groups and time range
    whole: 0, // seconds of the chosen groups at any time
    byBucket: new Float64Array(data.bucketCount),
    functionTotal: new Float64Array(data.names.length),
    functionSelf: new Float64Array(data.names.length),
  };
}

/** Fill the weights and the tree's `self`, `total` and `ambiguous` time with what the state chooses. */
export function weigh(data, state, tree, weights) {
  const { counts, groupSeconds, kinds } = data;
  const { self, ambiguous, total, nodeOf, parents, frames, count } = tree;
  const { byBucket, functionTotal, functionSelf } = weights;
  self.fill(0);
  ambiguous.fill(0);
  byBucket.fill(0);
  weights.samples = 0;
  const chosen = state.chosenGroups();
  const ignoresTime = state.isYappi;
  for (let i = 0; i < counts.nodes.length; i++) {
    const group = counts.groups[i];
    if (!chosen[group]) continue;
    const bucket = counts.buckets[i];
    const seconds = counts.samples[i] * groupSeconds[group];
    byBucket[bucket] += seconds;
    if (!ignoresTime && (bucket < state.start || bucket >= state.stop)) continue;
    self[nodeOf[counts.nodes[i]]] += seconds;
    weights.samples += counts.samples[i];
  }
  weights.whole = byBucket.reduce((sum, value) => sum + value, 0);
  total.set(self);
  functionTotal.fill(0);
  functionSelf.fill(0);
  // Parents precede their children.
  for (let node = count - 1; node > 0; node--) {
    total[parents[node]] += total[node];
    functionSelf[frames[node]] += self[node];
    if (tree.outermost[node]) functionTotal[frames[node]] += total[node];
  }
  // An ambiguous sample may be in the caller itself, so it counts as the caller's self time too.
  for (let node = 1; node < count; node++) {
    if (self[node] && kinds[frames[node]] === AMBIGUOUS && parents[node] > 0) {
      functionSelf[frames[parents[node]]] += self[node];
      ambiguous[parents[node]] += self[node];
    }
  }
}
