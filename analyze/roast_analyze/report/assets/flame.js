// The flame graph: a tree of functions with samples by group and stretch of time, drawn on
// a canvas. Every interaction computes it anew from the samples, on typed arrays: a tree's
// weights in one pass over the samples and one over its nodes, boxes only where they are
// wide enough to be seen. Names only ever become text, on the canvas or of an element.
drawings.push(async () => {
  const figure = document.querySelector("figure.flame");
  if (!figure) return;

  const [LIBRARY, DASK, ONE_OF_SEVERAL, RARE, ROOT] = [1, 2, 3, 4, 5]; // 0: the user's own
  const ROW_PX = 19;
  const NARROWEST_PX = 0.5;
  const MOST_CRUMBS = 6;
  const STRIP_PX = 52;
  const AXIS_PX = 15;
  const HINT = "A click or Enter zooms into a function, Escape out of it. Drag over the bars above for a stretch of time.";

  const part = (selector) => figure.querySelector(selector);
  const strip = part(".flame-strip canvas");
  const canvas = part(".flame-content canvas");
  const scroller = part(".flame-scroll");
  const content = part(".flame-content");
  const tip = part(".flame-tip");
  const input = part("input[type=search]");

  // ---- What was embedded -----------------------------------------------------------------
  const packed = part("script");
  let raw;
  try {
    raw = await unpacked(packed);
  } catch (error) {
    part(".flame-shown").textContent = error.message;
    return;
  }
  packed.remove();
  const NONE = raw.names.length; // the frame of what runs in no code of the user's
  const names = [...raw.names, "(none of your code)"];
  const kinds = Uint8Array.from([...raw.kinds, ROOT]);
  const fileOf = (frame) => {
    const file = frame < NONE ? raw.files[raw.frameFiles[frame]] : "";
    return file ? `${file}:${raw.lines[frame]}` : "";
  };
  const shortFile = (frame) => fileOf(frame).split(/[/\\]/).pop();
  const labels = names.map((name, frame) => (fileOf(frame) ? `${name} (${shortFile(frame)})` : name));
  const searched = names.map((name, frame) => (fileOf(frame) ? `${name} (${fileOf(frame)})` : name));
  const nodeCount = raw.nodeFrames.length + 1;
  const baseParent = new Int32Array(nodeCount);
  const baseFrame = new Int32Array(nodeCount);
  for (let node = 1; node < nodeCount; node++) {
    baseParent[node] = node - raw.parents[node - 1];
    baseFrame[node] = raw.nodeFrames[node - 1];
  }
  baseParent[0] = -1;
  const rowNode = Int32Array.from(raw.nodes);
  for (let row = 1; row < rowNode.length; row++) rowNode[row] += rowNode[row - 1];
  const rowGroup = Int32Array.from(raw.of);
  const rowBin = Uint8Array.from(raw.bins);
  const rowSamples = Float64Array.from(raw.samples);
  // Without an interval of every group, samples themselves are what is drawn.
  const inSeconds = raw.groups.every((group) => group[2] !== null);
  const groupSeconds = Float64Array.from(raw.groups, (group) => (inSeconds ? group[2] : 1));
  // A number below that of the scheduler, -1, is that of a file of Yappi's.
  const hasWorkers = raw.groups.some((group) => group[0] >= 0);
  const hasScheduler = raw.groups.some((group) => group[0] === -1);

  // Functions in the order of their names: places among siblings that do not change when
  // the weights do.
  const collator = new Intl.Collator("en");
  const byName = [...names.keys()].sort((a, b) => collator.compare(names[a], names[b]) || a - b);
  const rank = new Int32Array(names.length);
  byName.forEach((frame, place) => { rank[frame] = place; });

  // ---- Trees: as sampled, and with only the user's own code ------------------------------
  // Children lie together, by name: those of a node from first[node] to first[node + 1].
  function tree(parent, frame, count, place) {
    const inOrder = new Int32Array(count);
    const start = new Int32Array(names.length + 1);
    for (let node = 0; node < count; node++) start[rank[frame[node]] + 1]++;
    for (let i = 0; i < names.length; i++) start[i + 1] += start[i];
    for (let node = 0; node < count; node++) inOrder[start[rank[frame[node]]]++] = node;
    const first = new Int32Array(count + 1);
    for (let node = 1; node < count; node++) first[parent[node] + 1]++;
    for (let i = 0; i < count; i++) first[i + 1] += first[i];
    const free = first.slice(0, count);
    const children = new Int32Array(Math.max(count - 1, 0));
    for (const node of inOrder) if (node > 0) children[free[parent[node]]++] = node;
    // A function that calls itself counts once in its total: where it is outermost.
    const outermost = new Uint8Array(count);
    for (let node = 1; node < count; node++) {
      let above = parent[node];
      while (above > 0 && frame[above] !== frame[node]) above = parent[above];
      outermost[node] = above <= 0 ? 1 : 0;
    }
    return { count, parent, frame, place, first, children, outermost,
      self: new Float64Array(count), undecided: new Float64Array(count),
      total: new Float64Array(count), matched: new Uint8Array(count) };
  }

  function sampledTree() {
    const place = Int32Array.from({ length: nodeCount }, (_, node) => node);
    return tree(baseParent, baseFrame, nodeCount, place);
  }

  function ownTree() {
    const place = new Int32Array(nodeCount);
    const parent = new Int32Array(nodeCount + 1);
    const frame = new Int32Array(nodeCount + 1);
    parent[0] = -1;
    parent[1] = 0;
    frame[1] = NONE;
    let count = 2;
    let size = 1;
    while (size < 2 * nodeCount + 4) size *= 2;
    const slots = new Int32Array(size).fill(-1);
    for (let node = 1; node < nodeCount; node++) {
      const at = place[baseParent[node]];
      const what = baseFrame[node];
      if (kinds[what] === LIBRARY || kinds[what] === DASK) { place[node] = at; continue; }
      let slot = (Math.imul(at, 0x9e3779b1) ^ Math.imul(what, 0x85ebca6b)) >>> 0 & (size - 1);
      while (slots[slot] >= 0 && (parent[slots[slot]] !== at || frame[slots[slot]] !== what)) {
        slot = (slot + 1) & (size - 1);
      }
      if (slots[slot] < 0) {
        parent[count] = at;
        frame[count] = what;
        slots[slot] = count++;
      }
      place[node] = slots[slot];
    }
    for (let node = 0; node < nodeCount; node++) if (place[node] === 0) place[node] = 1;
    return tree(parent.slice(0, count), frame.slice(0, count), count, place);
  }

  const trees = [sampledTree(), null];
  const treeOf = (fold) => (trees[Number(fold)] ??= ownTree());

  // ---- State -----------------------------------------------------------------------------
  const state = {
    worker: hasWorkers ? "all" : hasScheduler ? "scheduler" : String(raw.groups[0][0]),
    prefix: "all",
    fold: false, inverted: false, heavy: false, regex: false,
    from: 0, to: raw.binCount, // the brushed stretch of time, in bins
    focus: [], // functions from the root to where the view is zoomed to
    cursor: null, // the same to the function that the keyboard is at
  };
  let now = null; // the tree as weighted by the state
  let samples = 0; // of what is shown
  let whole = 0; // seconds of every sample of what the selects choose, at any time
  let overTime = new Float64Array(raw.binCount);
  let functionTotal = new Float64Array(names.length);
  let functionSelf = new Float64Array(names.length);
  let matching = null; // of each function whether it is found; null without a search
  let matchCount = 0;
  let boxes = []; // what is drawn: one array a row, from left to right
  let shares = { matched: 0 };

  function wanted() {
    return Uint8Array.from(raw.groups, ([worker, prefix]) => {
      if (state.worker === "scheduler") return worker === -1 ? 1 : 0;
      if (worker < 0) return String(worker) === state.worker ? 1 : 0;
      const here = state.worker === "all" || worker === Number(state.worker);
      return here && (state.prefix === "all" || prefix === Number(state.prefix)) ? 1 : 0;
    });
  }

  const isMeasured = () => Number(state.worker) < -1; // by Yappi, and not sampled

  function weigh() {
    now = treeOf(state.fold);
    const { self, undecided, total, place, parent, frame, count } = now;
    self.fill(0);
    undecided.fill(0);
    samples = 0;
    overTime.fill(0);
    const groups = wanted();
    const timeless = isMeasured();
    for (let row = 0; row < rowNode.length; row++) {
      const group = rowGroup[row];
      if (!groups[group]) continue;
      const bin = rowBin[row];
      const seconds = rowSamples[row] * groupSeconds[group];
      overTime[bin] += seconds;
      // What Yappi measured lies in no stretch of time.
      if (!timeless && (bin < state.from || bin >= state.to)) continue;
      const node = place[rowNode[row]];
      self[node] += seconds;
      samples += rowSamples[row];
    }
    whole = overTime.reduce((sum, value) => sum + value, 0);
    total.set(self);
    functionTotal.fill(0);
    functionSelf.fill(0);
    for (let node = count - 1; node > 0; node--) {
      total[parent[node]] += total[node];
      functionSelf[frame[node]] += self[node];
      if (now.outermost[node]) functionTotal[frame[node]] += total[node];
    }
    // Undecided samples are also their caller's own, as far as anyone knows.
    for (let node = 1; node < count; node++) {
      if (self[node] && kinds[frame[node]] === ONE_OF_SEVERAL && parent[node] > 0) {
        functionSelf[frame[parent[node]]] += self[node];
        undecided[parent[node]] += self[node];
      }
    }
  }

  function search() {
    const text = input.value.trim();
    input.removeAttribute("aria-invalid");
    matching = null;
    matchCount = 0;
    if (!text) return;
    let finds;
    if (state.regex) {
      try {
        const pattern = new RegExp(text, "i");
        finds = (label) => pattern.test(label);
      } catch {
        input.setAttribute("aria-invalid", "true");
        return;
      }
    } else {
      const low = text.toLowerCase();
      finds = (label) => label.toLowerCase().includes(low);
    }
    matching = Uint8Array.from(searched, (label, frame) => (kinds[frame] !== ROOT && finds(label) ? 1 : 0));
  }

  // The share of the samples in whose stacks anything is found.
  function share() {
    shares = { matched: 0 };
    if (!matching) return;
    const { matched, parent, frame, self, count } = now;
    matched[0] = 0;
    for (let node = 1; node < count; node++) {
      matched[node] = matched[parent[node]] | matching[frame[node]];
      if (matched[node]) shares.matched += self[node];
    }
    matchCount = 0;
    for (let f = 0; f < names.length; f++) if (matching[f] && functionTotal[f] > 0) matchCount++;
  }

  // ---- Where the boxes lie ---------------------------------------------------------------
  const width = () => Math.max(content.clientWidth, 200);

  function add(depth, box) {
    (boxes[depth] ??= []).push(box);
    return box;
  }

  // A box: x and w in pixels, its function, the time in it and below, and its own.
  function layout() {
    boxes = [];
    if (now.total[0] > 0) (state.inverted ? layoutInverted : layoutCallers)();
  }

  const heavyFirst = (a, b) => b.total - a.total;

  function childWith(node, frame) {
    for (let i = now.first[node]; i < now.first[node + 1]; i++) {
      const child = now.children[i];
      if (now.frame[child] === frame && now.total[child] > 0) return child;
    }
    return -1;
  }

  function layoutCallers() {
    const { first, children, total } = now;
    const full = width();
    const path = [0];
    for (const [i, wants] of state.focus.entries()) {
      const child = childWith(path[path.length - 1], wants);
      if (child < 0) { state.focus.length = i; break; }
      path.push(child);
    }
    let box = null;
    path.forEach((node, depth) => {
      if (box) add(box.depth, box);
      box = boxOf(node, depth, 0, full, box);
    });
    const stack = [box];
    while (stack.length) {
      const above = add(stack[stack.length - 1].depth, stack.pop());
      const scale = above.w / total[above.node];
      const shown = [];
      let x = above.x;
      for (let i = first[above.node]; i < first[above.node + 1]; i++) {
        const node = children[i];
        const w = total[node] * scale;
        if (w >= NARROWEST_PX) shown.push(boxOf(node, above.depth + 1, x, w, above));
        x += w;
      }
      if (state.heavy) {
        shown.sort(heavyFirst);
        x = above.x;
        for (const one of shown) { one.x = x; x += one.w; }
      }
      // The leftmost is taken next, so that every row fills from left to right.
      for (let i = shown.length - 1; i >= 0; i--) stack.push(shown[i]);
    }
  }

  function boxOf(node, depth, x, w, above) {
    const { total, self, frame } = now;
    const undecided = now.undecided[node];
    return { node, depth, x, w, above, frame: frame[node], total: total[node],
      self: self[node] + undecided, undecided };
  }

  // Inverted, a box is a bag of nodes: those where its functions stand, each with the time
  // of the sample's innermost node. A bag is split by function only where that is seen.
  function layoutInverted() {
    const { total, self, frame, parent, count } = now;
    const full = width();
    let size = 0;
    for (let node = 1; node < count; node++) if (self[node] > 0) size++;
    const at = new Int32Array(size);
    const weight = new Float64Array(size);
    const movedAt = new Int32Array(size);
    const movedWeight = new Float64Array(size);
    size = 0;
    for (let node = 1; node < count; node++) {
      if (self[node] > 0) { at[size] = node; weight[size++] = self[node]; }
    }
    const sums = new Float64Array(names.length);
    const sizes = new Int32Array(names.length);
    const places = new Int32Array(names.length);
    // The bag of a box is a stretch of these lists; its parts are stretches of that.
    const split = (above, wants) => {
      const { low, high } = above;
      const found = [];
      for (let i = low; i < high; i++) {
        if (at[i] <= 0) continue;
        const f = frame[at[i]];
        if (sizes[f]++ === 0) found.push(f);
        sums[f] += weight[i];
      }
      if (found.length > 1) found.sort((a, b) => rank[a] - rank[b]);
      const scale = above.w / above.total;
      const shown = [];
      let x = above.x;
      let place = low;
      for (const f of found) {
        const w = sums[f] * scale;
        if (wants === undefined ? w >= NARROWEST_PX : f === wants) {
          shown.push({ node: -1, depth: above.depth + 1, x, w, above, frame: f, total: sums[f],
            self: 0, undecided: 0, low: place, high: place + sizes[f] });
        }
        places[f] = place;
        place += sizes[f];
        x += w;
      }
      if (shown.length) {
        for (let i = low; i < high; i++) {
          if (at[i] <= 0) continue;
          const to = places[frame[at[i]]]++;
          movedAt[to] = parent[at[i]];
          movedWeight[to] = weight[i];
        }
        for (let i = low; i < place; i++) { at[i] = movedAt[i]; weight[i] = movedWeight[i]; }
      }
      for (const f of found) { sums[f] = 0; sizes[f] = 0; }
      if (state.heavy && wants === undefined) {
        shown.sort(heavyFirst);
        x = above.x;
        for (const one of shown) { one.x = x; x += one.w; }
      }
      return shown;
    };
    let box = { node: 0, depth: 0, x: 0, w: full, above: null, frame: 0, total: total[0], self: 0,
      undecided: 0, low: 0, high: size };
    for (const [i, wants] of state.focus.entries()) {
      const [next] = split(box, wants);
      if (!next) { state.focus.length = i; break; }
      add(box.depth, box);
      next.x = 0;
      next.w = full;
      box = next;
    }
    const stack = [box];
    while (stack.length) {
      const above = add(stack[stack.length - 1].depth, stack.pop());
      const shown = split(above);
      for (let i = shown.length - 1; i >= 0; i--) stack.push(shown[i]);
    }
    for (const row of boxes) {
      for (const one of row) {
        one.self = functionSelf[one.frame];
        one.undecided = kinds[one.frame] === ONE_OF_SEVERAL ? one.total : 0;
      }
    }
  }

  // ---- Drawing ---------------------------------------------------------------------------
  let colours = {};
  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    colours = {
      kinds: [
        [0, 1, 2, 3].map((i) => of(`--flame-own-${i}`)),
        [0, 1, 2].map((i) => of(`--flame-library-${i}`)),
        [0, 1].map((i) => of(`--flame-dask-${i}`)),
        [of("--flame-unknown")], [of("--flame-unknown")], [of("--faint")],
      ],
      hatch: of("--flame-hatch"), match: of("--flame-match"), matchInk: of("--flame-match-ink"),
      ink: of("--flame-ink"), soft: of("--soft"), paper: of("--raised"), line: of("--line"),
      accent: of("--accent"), sans: of("--sans"), outline: of("--ink"), idle: of("--idle"),
    };
    pattern = null;
  }
  // The same function has the same colour wherever it is, and so do those of a file nearly.
  const shade = Uint8Array.from(labels, (label) => {
    let hash = 0;
    for (let i = 0; i < label.length; i++) hash = (Math.imul(hash, 31) + label.charCodeAt(i)) | 0;
    return (hash >>> 3) & 0xff;
  });
  const colourOf = (frame) => {
    const of = colours.kinds[kinds[frame]];
    return of[shade[frame] % of.length];
  };

  let pattern = null;
  function hatch(context) {
    if (pattern) return pattern;
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const on = tile.getContext("2d");
    on.fillStyle = colours.kinds[ONE_OF_SEVERAL][0];
    on.fillRect(0, 0, 8, 8);
    on.strokeStyle = colours.hatch;
    on.lineWidth = 1;
    for (const shift of [-8, 0, 8]) {
      on.beginPath();
      on.moveTo(shift, 8);
      on.lineTo(shift + 8, 0);
      on.stroke();
    }
    pattern = context.createPattern(tile, "repeat");
    return pattern;
  }

  const CHARACTER_PX = 6.3;
  function fitting(frame, room) {
    const most = Math.floor(room / CHARACTER_PX);
    if (most < 3) return "";
    if (labels[frame].length <= most) return labels[frame];
    const name = names[frame];
    return name.length <= most ? name : `${name.slice(0, most - 1)}…`;
  }

  const samePath = (box, path) => {
    if (!path || box.depth !== path.length) return false;
    for (let one = box, i = path.length; i > 0; one = one.above) if (one.frame !== path[--i]) return false;
    return true;
  };

  function draw() {
    const full = width();
    const height = Math.max(boxes.length, 1) * ROW_PX + 1;
    content.style.height = `${height}px`;
    const seen = Math.max(Math.min(height, scroller.clientHeight || height), ROW_PX);
    const context = sizedContext(canvas, full, seen);
    const top = Math.min(scroller.scrollTop, Math.max(height - seen, 0));
    context.font = `11.5px ${colours.sans}`;
    context.textBaseline = "middle";
    context.direction = "ltr";
    let cursorBox = null;
    const firstRow = Math.floor(top / ROW_PX);
    const lastRow = Math.min(boxes.length - 1, Math.ceil((top + seen) / ROW_PX));
    for (let depth = firstRow; depth <= lastRow; depth++) {
      const y = depth * ROW_PX - top;
      for (const box of boxes[depth]) {
        const found = matching && matching[box.frame];
        const unknown = kinds[box.frame] === ONE_OF_SEVERAL || kinds[box.frame] === RARE;
        // What is zoomed into lies below its callers, which are pale; so is what isn't found.
        context.globalAlpha = depth < state.focus.length || (matching && !found) ? 0.55 : 1;
        context.fillStyle = found ? colours.match : unknown ? hatch(context) : colourOf(box.frame);
        // Between two boxes a line of the background, if there is room for it.
        context.fillRect(box.x, y + 1, Math.max(box.w - (box.w > 2 ? 0.7 : 0), 0.5), ROW_PX - 1);
        if (box.w > 24) {
          const text = depth === 0 ? `${names[box.frame]}: ${amount(box.total)}` : fitting(box.frame, box.w - 8);
          if (text) {
            context.globalAlpha = depth < state.focus.length ? 0.75 : 1;
            if (unknown && !found) {
              context.fillStyle = colours.kinds[ONE_OF_SEVERAL][0];
              context.fillRect(box.x + 2, y + 3, Math.min(text.length * CHARACTER_PX + 3, box.w - 4), ROW_PX - 5);
            }
            context.fillStyle = found ? colours.matchInk : colours.ink;
            context.fillText(text, box.x + 4, y + ROW_PX / 2 + 1, Math.max(box.w - 6, 1));
          }
        }
        if (samePath(box, state.cursor)) cursorBox = box;
      }
    }
    context.globalAlpha = 1;
    if (cursorBox) {
      context.strokeStyle = colours.outline;
      context.lineWidth = 2;
      context.strokeRect(cursorBox.x + 1, cursorBox.depth * ROW_PX - top + 2, Math.max(cursorBox.w - 2, 1), ROW_PX - 3);
    }
  }

  function drawStrip() {
    const full = Math.max(strip.parentElement.clientWidth, 200);
    const context = sizedContext(strip, full, STRIP_PX);
    const most = Math.max(...overTime, 1e-12);
    const tall = STRIP_PX - AXIS_PX;
    const step = full / raw.binCount;
    const brushed = isBrushed();
    context.fillStyle = colours.kinds[ROOT][0];
    context.fillRect(0, 0, full, tall);
    for (let bin = 0; bin < raw.binCount; bin++) {
      const inside = bin >= state.from && bin < state.to;
      context.fillStyle = inside ? colours.accent : colours.idle;
      context.globalAlpha = inside && !brushed ? 0.55 : 1;
      const high = overTime[bin] ? Math.max((overTime[bin] / most) * (tall - 2), 1) : 0;
      context.fillRect(bin * step, tall - high, Math.max(step - (step > 4 ? 1 : 0), 0.5), high);
    }
    context.globalAlpha = 1;
    if (brushed) {
      context.strokeStyle = colours.accent;
      context.lineWidth = 1.5;
      context.strokeRect(state.from * step + 0.75, 0.75, (state.to - state.from) * step - 1.5, tall - 1.5);
    }
    context.font = `11px ${colours.sans}`;
    context.fillStyle = colours.soft;
    context.textBaseline = "bottom";
    const stop = raw.start + raw.binCount * raw.binSeconds;
    const [left, right] = [duration(raw.start), duration(stop)];
    context.textAlign = "left";
    context.fillText(left, 0, STRIP_PX);
    context.textAlign = "right";
    context.fillText(right, full, STRIP_PX);
    if (brushed) {
      const text = `${duration(timeOf(state.from))} to ${duration(timeOf(state.to))}`;
      context.textAlign = "center";
      context.fillStyle = colours.outline;
      const middle = ((state.from + state.to) / 2) * step;
      context.fillText(text, Math.min(Math.max(middle, 110), full - 110), STRIP_PX);
    }
  }

  const isBrushed = () => state.from > 0 || state.to < raw.binCount;
  const timeOf = (bin) => raw.start + bin * raw.binSeconds;

  // ---- Words -----------------------------------------------------------------------------
  const amount = (value) => (inSeconds ? duration(value)
    : `${value.toLocaleString("en")} ${value === 1 ? "sample" : "samples"}`);
  function percent(value) {
    if (!(value > 0)) return "0 %";
    const of = 100 * value;
    return of < 0.1 ? "<0.1 %" : `${of < 10 ? of.toFixed(1) : of.toFixed(0)} %`;
  }
  const plural = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;

  function facts(box) {
    const shown = now.total[0];
    const inner = box.depth === 0 ? "All that is shown"
      : state.inverted ? (box.depth === 1 ? "itself" : "the functions above it, called from here")
        : "with what it calls";
    const lines = [`${amount(box.total)} ${inner}: ${percent(box.total / shown)} of what is shown`
      + (isBrushed() ? `, ${percent(box.total / whole)} of the whole` : "")];
    if (box.depth && !state.inverted) {
      lines.push(`${amount(box.self)} itself: ${percent(box.self / shown)}`
        + (box.undecided ? `; ${amount(box.undecided)} of it undecided: in one of several functions that it calls` : ""));
    }
    if (box.depth && kinds[box.frame] < ONE_OF_SEVERAL) {
      lines.push(`this function wherever it is called: ${amount(functionTotal[box.frame])} in all, `
        + `${amount(functionSelf[box.frame])} itself`);
    }
    if (kinds[box.frame] === ONE_OF_SEVERAL) lines.push("in one of several functions, it is not known in which");
    if (kinds[box.frame] === RARE) lines.push("functions seen too rarely to be told apart here");
    return lines;
  }

  function sayShown() {
    const words = isMeasured() ? [`${amount(now.total[0])}, as Yappi measured it`]
      : [`${inSeconds ? `${amount(now.total[0])}, ` : ""}${plural(samples, "sample")}`];
    if (isBrushed()) {
      words.push(`${percent(now.total[0] / whole)} of the whole, from ${duration(timeOf(state.from))} to ${duration(timeOf(state.to))}`);
    }
    if (input.hasAttribute("aria-invalid")) words.push("this is no regular expression");
    if (matching) {
      words.push(`${plural(matchCount, "function")} found, in ${percent(shares.matched / (now.total[0] || 1))} of the time (${amount(shares.matched)})`);
    }
    if (!samples) words[0] = "No samples here";
    part(".flame-shown").textContent = `${words.join("; ")}.`;
  }

  function crumbs() {
    const list = part(".flame-crumbs ol");
    list.textContent = "";
    const path = [0, ...state.focus];
    const skip = path.length > MOST_CRUMBS ? path.length - MOST_CRUMBS + 1 : 0;
    path.forEach((frame, depth) => {
      if (depth > 1 && depth <= skip) return;
      const item = document.createElement("li");
      const last = depth === path.length - 1;
      if (skip && depth === 1) {
        item.textContent = "…";
      } else {
        const name = document.createElement(last ? "span" : "button");
        name.textContent = names[frame];
        name.title = searched[frame];
        if (last) name.setAttribute("aria-current", "true");
        else { name.type = "button"; name.addEventListener("click", () => zoom(state.focus.slice(0, depth))); }
        item.append(name);
      }
      list.append(item);
    });
  }

  // ---- From the state to the screen ------------------------------------------------------
  function render() {
    share();
    layout();
    draw();
    drawStrip();
    crumbs();
    sayShown();
    if (state.cursor && !boxAt(state.cursor)) leaveCursor();
    else if (state.cursor) describe(boxAt(state.cursor));
    tip.hidden = true;
  }
  function renew() { weigh(); render(); }
  // A search changes colours alone: every box stays where it is.
  function find() { search(); share(); draw(); sayShown(); }

  function zoom(path) {
    state.focus = [...path];
    render();
    // The zoomed function comes into sight, with the one that called it.
    const top = Math.max(0, (state.focus.length - 2) * ROW_PX);
    if (scroller.scrollTop !== top) { scroller.scrollTop = top; draw(); }
  }
  const pathOf = (box) => {
    const path = [];
    for (let one = box; one.above; one = one.above) path.push(one.frame);
    return path.reverse();
  };
  function boxAt(path) {
    return (boxes[path.length] ?? []).find((box) => samePath(box, path)) ?? null;
  }
  function leaveCursor() {
    state.cursor = null;
    part(".flame-detail").textContent = HINT;
  }
  function describe(box) {
    part(".flame-detail").textContent = `${searched[box.frame]}: ${facts(box).join("; ")}.`;
  }
  function moveTo(box) {
    if (!box) return;
    state.cursor = pathOf(box);
    const y = box.depth * ROW_PX;
    if (y < scroller.scrollTop) scroller.scrollTop = y;
    if (y + ROW_PX > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = y + 2 * ROW_PX - scroller.clientHeight;
    describe(box);
    draw();
  }

  // ---- Pointer ---------------------------------------------------------------------------
  function hit(event) {
    const there = canvas.getBoundingClientRect();
    const height = Math.max(boxes.length, 1) * ROW_PX + 1;
    const top = Math.min(scroller.scrollTop, Math.max(height - there.height, 0));
    const x = ((event.clientX - there.left) / there.width) * width();
    const row = boxes[Math.floor((event.clientY - there.top + top) / ROW_PX)];
    if (!row) return null;
    let [low, high] = [0, row.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row[middle].x <= x) low = middle + 1;
      else high = middle;
    }
    const box = row[low - 1];
    return box && x <= box.x + Math.max(box.w, 1) ? box : null;
  }

  let tipped = null;
  function showTip(event) {
    const box = hit(event);
    tip.hidden = !box;
    canvas.style.cursor = box ? "pointer" : "default";
    if (!box) { tipped = null; return; }
    if (tipped !== box) {
      tipped = box;
      fillTip(tip, names[box.frame], [fileOf(box.frame), ...facts(box)]);
    }
    placeTip(tip, figure, event);
  }
  canvas.addEventListener("pointermove", showTip);
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; tipped = null; });
  canvas.addEventListener("click", (event) => {
    const box = hit(event);
    if (!box) return;
    state.cursor = pathOf(box);
    zoom(state.cursor);
  });
  scroller.addEventListener("scroll", () => { tip.hidden = true; draw(); }, { passive: true });

  // ---- Keyboard --------------------------------------------------------------------------
  const isBelow = (box, above) => {
    for (let one = box; one; one = one.above) if (one === above) return true;
    return false;
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !boxes.length) return;
    const at = (state.cursor && boxAt(state.cursor)) ?? boxAt(state.focus) ?? boxes[0][0];
    const row = boxes[at.depth];
    const widest = (all) => all.reduce((a, b) => (b.w > a.w ? b : a), all[0]);
    const moves = {
      ArrowDown: () => moveTo(state.cursor ? widest((boxes[at.depth + 1] ?? []).filter((box) => isBelow(box, at))) : at),
      ArrowUp: () => moveTo(at.above ?? at),
      ArrowRight: () => moveTo(row[row.indexOf(at) + 1]),
      ArrowLeft: () => moveTo(row[row.indexOf(at) - 1]),
      Home: () => moveTo(boxes[0][0]),
      Enter: () => zoom(pathOf(at)),
      " ": () => zoom(pathOf(at)),
      Escape: () => { state.cursor = state.focus.slice(0, -1); zoom(state.cursor); },
      Backspace: () => { state.cursor = state.focus.slice(0, -1); zoom(state.cursor); },
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  });

  // ---- The stretch of time ---------------------------------------------------------------
  function brush(from, to) {
    const low = Math.max(0, Math.min(from, raw.binCount - 1));
    const high = Math.min(raw.binCount, Math.max(to, low + 1));
    if (low === state.from && high === state.to) return;
    state.from = low;
    state.to = high;
    renew();
  }
  const binAt = (event) => {
    const there = strip.getBoundingClientRect();
    const bin = Math.floor(((event.clientX - there.left) / there.width) * raw.binCount);
    return Math.max(0, Math.min(bin, raw.binCount - 1));
  };
  let anchor = null;
  strip.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    anchor = { bin: binAt(event), x: event.clientX, moved: false };
    strip.setPointerCapture?.(event.pointerId);
  });
  strip.addEventListener("pointermove", (event) => {
    if (!anchor) return;
    anchor.moved ||= Math.abs(event.clientX - anchor.x) > 3;
    const bin = binAt(event);
    if (anchor.moved) brush(Math.min(bin, anchor.bin), Math.max(bin, anchor.bin) + 1);
  });
  for (const end of ["pointerup", "pointercancel"]) strip.addEventListener(end, () => { anchor = null; });
  strip.addEventListener("dblclick", () => brush(0, raw.binCount));
  strip.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const long = state.to - state.from;
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") brush(0, raw.binCount);
    else if (!by) return;
    else if (!isBrushed()) brush(by > 0 ? 0 : raw.binCount - 1, by > 0 ? 1 : raw.binCount);
    else if (event.shiftKey) brush(state.from, Math.max(state.to + by, state.from + 1));
    else if (state.from + by >= 0 && state.to + by <= raw.binCount) brush(state.from + by, state.from + by + long);
    event.preventDefault();
  });

  // ---- Controls --------------------------------------------------------------------------
  for (const select of figure.querySelectorAll("[data-choose]")) {
    select.addEventListener("change", () => {
      state[select.dataset.choose] = select.value;
      part('[data-choose="prefix"]').disabled = state.worker === "scheduler" || isMeasured();
      renew();
    });
  }
  for (const button of figure.querySelectorAll("[data-toggle]")) {
    button.addEventListener("click", () => {
      const name = button.dataset.toggle;
      state[name] = !state[name];
      button.setAttribute("aria-pressed", String(state[name]));
      if (name === "regex") { find(); return; }
      if (name !== "heavy") { state.focus = []; leaveCursor(); scroller.scrollTop = 0; }
      renew();
    });
  }
  input.addEventListener("input", find);

  // What a download has: every box that is drawn, as a stack with its time.
  figure.shownRows = () => [
    ["stack", "function", "file", inSeconds ? "total_seconds" : "samples", inSeconds ? "self_seconds" : "self_samples"],
    ...boxes.flat().filter((box) => box.depth).map((box) => [
      pathOf(box).map((frame) => labels[frame]).join(";"), names[box.frame], fileOf(box.frame), box.total, box.self]),
  ];

  document.addEventListener("roast-theme", () => { readColours(); draw(); drawStrip(); });
  new ResizeObserver(() => { layout(); draw(); drawStrip(); }).observe(scroller);

  for (const select of figure.querySelectorAll("[data-choose]")) {
    // A browser that goes back to a page fills in what was chosen before.
    if (select.options.length) state[select.dataset.choose] = select.value;
  }
  readColours();
  search();
  leaveCursor();
  renew();
  figure.dataset.state = "drawn";
});
