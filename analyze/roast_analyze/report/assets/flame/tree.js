import { DASK, LIBRARY } from "./data.js";

/**
 * A tree of functions. `children[first[node]]` to `children[first[node + 1] - 1]` are the children of
 * a node, by name. `nodeOf` maps the nodes of the data to nodes of the tree.
 */
function tree(data, parents, frames, nodeOf) {
  const { rank, names } = data;
  const count = parents.length;
  // A counting sort by name, then by parent: it takes linear time for hundreds of thousands of nodes.
  const start = new Int32Array(names.length + 1);
  for (let node = 0; node < count; node++) start[rank[frames[node]] + 1]++;
  for (let i = 0; i < names.length; i++) start[i + 1] += start[i];
  const byName = new Int32Array(count);
  for (let node = 0; node < count; node++) byName[start[rank[frames[node]]]++] = node;
  const first = new Int32Array(count + 1);
  for (let node = 1; node < count; node++) first[parents[node] + 1]++;
  for (let i = 0; i < count; i++) first[i + 1] += first[i];
  const free = first.slice(0, count);
  const children = new Int32Array(Math.max(count - 1, 0));
  for (const node of byName) if (node > 0) children[free[parents[node]]++] = node;
  // The total time of a recursive function counts only its outermost calls.
  const outermost = new Uint8Array(count);
  for (let node = 1; node < count; node++) {
    let caller = parents[node];
    while (caller > 0 && frames[caller] !== frames[node]) caller = parents[caller];
    outermost[node] = caller <= 0 ? 1 : 0;
  }
  return {
    count, parents, frames, nodeOf, first, children, outermost,
    // Filled by weigh() and search(), and allocated once.
    self: new Float64Array(count), ambiguous: new Float64Array(count),
    total: new Float64Array(count), matched: new Uint8Array(count),
  };
}

export function sampledTree(data) {
  const { count, parents, frames } = data.nodes;
  return tree(data, parents, frames, Int32Array.from({ length: count }, (_, node) => node));
}

/** Return the tree without functions of libraries: their time goes to the user's function that called them. */
export function ownCodeTree(data) {
  const { nodes, kinds, noOwnCode } = data;
  const nodeOf = new Int32Array(nodes.count);
  const parents = new Int32Array(nodes.count + 1);
  const frames = new Int32Array(nodes.count + 1);
  parents[0] = -1;
  frames[1] = noOwnCode; // node 1 represents stacks without own code
  let count = 2;
  // Nodes by parent and frame in a hash table with open addressing: half the time of a Map.
  let size = 1;
  while (size < 2 * nodes.count + 4) size *= 2;
  const slots = new Int32Array(size).fill(-1);
  for (let node = 1; node < nodes.count; node++) {
    const parent = nodeOf[nodes.parents[node]];
    const frame = nodes.frames[node];
    if (kinds[frame] === LIBRARY || kinds[frame] === DASK) { nodeOf[node] = parent; continue; }
    let slot = (Math.imul(parent, 0x9e3779b1) ^ Math.imul(frame, 0x85ebca6b)) >>> 0 & (size - 1);
    while (slots[slot] >= 0 && (parents[slots[slot]] !== parent || frames[slots[slot]] !== frame)) {
      slot = (slot + 1) & (size - 1);
    }
    if (slots[slot] < 0) {
      parents[count] = parent;
      frames[count] = frame;
      slots[slot] = count++;
    }
    nodeOf[node] = slots[slot];
  }
  for (let node = 0; node < nodes.count; node++) if (nodeOf[node] === 0) nodeOf[node] = 1;
  return tree(data, parents.slice(0, count), frames.slice(0, count), nodeOf);
}
