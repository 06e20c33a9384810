// The flame graph's data, as roast_analyze.report.topics.profile.flame_graph embeds it. A frame is a
// function with its file and line, a node is a frame below its callers, a group is a pair of worker and prefix.

// Kinds of frames. Those below AMBIGUOUS are functions.
export const LIBRARY = 1; // 0: the user's own code
export const DASK = 2;
export const AMBIGUOUS = 3; // the sample is in one of several functions
export const RARE = 4; // the page leaves out which functions
export const ROOT = 5;

export const SCHEDULER = -1; // in the place of a worker's index; below it are files from Yappi

export function decodeFlame(raw) {
  const names = [...raw.names, "(none of your code)"];
  const noOwnCode = raw.names.length;
  const file = (frame) => {
    const name = frame === noOwnCode ? "" : raw.files[raw.frameFiles[frame]];
    return name ? `${name}:${raw.lines[frame]}` : "";
  };
  const files = names.map((_, frame) => file(frame));
  const named = (shownFile) => names.map((name, frame) => (files[frame] ? `${name} (${shownFile(files[frame])})` : name));

  const nodeCount = raw.nodeFrames.length + 1;
  const parents = new Int32Array(nodeCount);
  const frames = new Int32Array(nodeCount);
  parents[0] = -1;
  for (let node = 1; node < nodeCount; node++) {
    parents[node] = node - raw.parents[node - 1];
    frames[node] = raw.nodeFrames[node - 1];
  }
  const countNodes = Int32Array.from(raw.nodes);
  for (let i = 1; i < countNodes.length; i++) countNodes[i] += countNodes[i - 1];

  // Siblings are in the order of their names, which does not change with their weights.
  const collator = new Intl.Collator("en");
  const byName = [...names.keys()].sort((a, b) => collator.compare(names[a], names[b]) || a - b);
  const rank = new Int32Array(names.length);
  byName.forEach((frame, place) => { rank[frame] = place; });

  // If a group has no sampling interval, samples are drawn instead of seconds.
  const inSeconds = raw.groups.every(([, , interval]) => interval !== null);
  return {
    names, files, noOwnCode, rank, inSeconds,
    labels: named((path) => path.split(/[/\\]/).pop()),
    fullLabels: named((path) => path),
    kinds: Uint8Array.from([...raw.kinds, ROOT]),
    nodes: { count: nodeCount, parents, frames },
    groups: raw.groups,
    groupSeconds: Float64Array.from(raw.groups, ([, , interval]) => (inSeconds ? interval : 1)),
    // One entry for each node, group and time bucket that has samples.
    counts: {
      nodes: countNodes, groups: Int32Array.from(raw.of),
      buckets: Uint8Array.from(raw.bins), samples: Float64Array.from(raw.samples),
    },
    bucketCount: raw.binCount,
    timeOf: (bucket) => raw.start + bucket * raw.binSeconds,
  };
}
