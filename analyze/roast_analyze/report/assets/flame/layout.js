// Boxes of the flame graph. A box has its place (`depth`, and `x` and `w` in pixels), its `frame`,
// its caller's box `above`, and its `total`, `self` and `ambiguous` time.
import { AMBIGUOUS } from "./data.js";
import { layOutSandwich } from "./sandwich.js";

const MIN_BOX_PX = 0.5; // narrower boxes, and what is below them, are left out

/**
 * Return the boxes by depth, each row from left to right. Below the focus, boxes fill the width; a
 * focus that the tree does not have is cut to what it has.
 */
export function layOut(flame) {
  const boxes = flame.state.sandwich ? layOutSandwich(flame) : layOutTree(flame);
  for (const [row, some] of boxes.entries()) for (const box of some) box.row = row;
  return boxes;
}

function layOutTree(flame) {
  const boxes = [];
  if (!(flame.tree.total[0] > 0)) return boxes;
  const { root, split, childWith } = flame.state.inverted ? invertedTree(flame) : callTree(flame);
  const add = (box) => { (boxes[box.depth] ??= []).push(box); return box; };
  let box = root;
  for (const [i, frame] of flame.state.focus.entries()) {
    const child = childWith(box, frame);
    if (!child) { flame.state.focus.length = i; break; }
    add(box);
    box = Object.assign(child, { x: 0, w: root.w });
  }
  const stack = [box];
  while (stack.length) {
    const above = add(stack.pop());
    const children = split(above);
    if (flame.state.heavy) {
      children.sort((a, b) => b.total - a.total);
      let { x } = above;
      for (const child of children) { child.x = x; x += child.w; }
    }
    // The leftmost child is popped next, which fills every row from left to right.
    for (let i = children.length - 1; i >= 0; i--) stack.push(children[i]);
  }
  return boxes;
}

function callTree({ tree, width }) {
  const { first, children, total, self, frames, ambiguous } = tree;
  const newBox = (node, x, w, above) => ({
    node, depth: above ? above.depth + 1 : 0, x, w, above, frame: frames[node], total: total[node],
    self: self[node] + ambiguous[node], ambiguous: ambiguous[node],
  });
  return {
    root: newBox(0, 0, width, null),
    split(above) {
      const scale = above.w / total[above.node];
      const found = [];
      let { x } = above;
      for (let i = first[above.node]; i < first[above.node + 1]; i++) {
        const w = total[children[i]] * scale;
        if (w >= MIN_BOX_PX) found.push(newBox(children[i], x, w, above));
        x += w;
      }
      return found;
    },
    childWith(above, frame) {
      for (let i = first[above.node]; i < first[above.node + 1]; i++) {
        const node = children[i];
        if (frames[node] === frame && total[node] > 0) return newBox(node, 0, 0, above);
      }
      return null;
    },
  };
}

/**
 * The inverted tree. Its boxes are sets of nodes, each with the self time of the stack's innermost
 * node. They are split by caller only where boxes are drawn: the whole tree would be many times larger
 * than the call tree.
 */
function invertedTree({ data, tree, weights, width }) {
  const { total, self, frames, parents, count } = tree;
  let size = 0;
  for (let node = 1; node < count; node++) if (self[node] > 0) size++;
  // The set of a box is a range of these lists, `low` to `high`; its children are parts of that range.
  const nodes = new Int32Array(size);
  const seconds = new Float64Array(size);
  const movedNodes = new Int32Array(size);
  const movedSeconds = new Float64Array(size);
  size = 0;
  for (let node = 1; node < count; node++) {
    if (self[node] > 0) { nodes[size] = node; seconds[size++] = self[node]; }
  }
  const sums = new Float64Array(data.names.length); // zero between calls of split
  const sizes = new Int32Array(data.names.length);
  const places = new Int32Array(data.names.length);

  function split(above, wanted) {
    const { low, high } = above;
    const callers = [];
    for (let i = low; i < high; i++) {
      if (nodes[i] <= 0) continue;
      const frame = frames[nodes[i]];
      if (sizes[frame]++ === 0) callers.push(frame);
      sums[frame] += seconds[i];
    }
    if (callers.length > 1) callers.sort((a, b) => data.rank[a] - data.rank[b]);
    const scale = above.w / above.total;
    const found = [];
    let { x } = above;
    let place = low;
    for (const frame of callers) {
      const w = sums[frame] * scale;
      if (wanted === undefined ? w >= MIN_BOX_PX : frame === wanted) {
        found.push({
          depth: above.depth + 1, x, w, above, frame, total: sums[frame], self: weights.functionSelf[frame],
          ambiguous: data.kinds[frame] === AMBIGUOUS ? sums[frame] : 0, low: place, high: place + sizes[frame],
        });
      }
      places[frame] = place;
      place += sizes[frame];
      x += w;
    }
    if (found.length) {
      for (let i = low; i < high; i++) {
        if (nodes[i] <= 0) continue;
        const to = places[frames[nodes[i]]]++;
        movedNodes[to] = parents[nodes[i]];
        movedSeconds[to] = seconds[i];
      }
      for (let i = low; i < place; i++) { nodes[i] = movedNodes[i]; seconds[i] = movedSeconds[i]; }
    }
    for (const frame of callers) { sums[frame] = 0; sizes[frame] = 0; }
    return found;
  }
  return {
    root: { depth: 0, x: 0, w: width, above: null, frame: 0, total: total[0], self: 0, ambiguous: 0, low: 0, high: size },
    split: (above) => split(above),
    childWith: (above, frame) => split(above, frame)[0],
  };
}

/** Return the frames from below the root to a box. */
export function pathOf(box) {
  const path = [];
  for (let one = box; one.above; one = one.above) path.push(one.step ?? one.frame);
  return path.reverse();
}

export function hasPath(box, path) {
  if (!path || box.depth !== path.length) return false;
  for (let one = box, i = path.length; i > 0; one = one.above) if ((one.step ?? one.frame) !== path[--i]) return false;
  return true;
}

/** Return the box with a path; in a sandwich, its row is not the length of the path. */
export const boxWithPath = (boxes, path) => (boxes[0]?.[0].depth === 0 ? boxes[path.length] ?? [] : boxes.flat())
  .find((box) => hasPath(box, path)) ?? null;
