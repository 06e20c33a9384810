// The timeline: workers × time, drawn on two canvases with one time axis. Above, how many
// tasks computed and how busy workers were; below, a lane for each thread, drawn as soon as
// the browser has read what is in them. Long tasks are bars of their own; short ones are put
// together by lane and stretch of time, and drawn as high as the part of the stretch that
// they took. Only what is in sight is drawn, so that each interaction is answered at once.
// Names only ever become text.
const timelineDrawn = (async () => {
  const figure = document.querySelector("figure.timeline");
  if (!figure) return;

  const CURVE_PX = 84;
  const AXIS_PX = 26;
  const MAP_PX = 80; // most that the map may take
  const GAP_PX = 6;
  const LANES_PX = 420; // what all lanes take together, where that gives each one its least
  const [LEAST_LANE_PX, MOST_LANE_PX] = [4, 22];
  const ROW_GAP_PX = 3;
  const LABEL_PX = 12;
  const MOST_ZOOM = 1e-6; // the least part of the run that fills the width
  const [ERRED, RETRIED, LOST] = [1, 2, 3]; // of the outcomes
  const HINT = "Drag for a stretch of time, double click for all of it; Ctrl and wheel zoom. A click keeps what a bar says here.";
  const WORDS = {
    memory: "", erred: "failed", retried: "failed, tried again", lost: "lost with its worker",
    rescheduled: "rescheduled", cancelled: "cancelled", unfinished: "unfinished", skipped: "skipped",
  };

  const part = (selector) => figure.querySelector(selector);
  const top = part(".timeline-top canvas");
  const canvas = part(".timeline-content canvas");
  const scroller = part(".timeline-scroll");
  const content = part(".timeline-content");
  const tip = part(".timeline-tip");
  const detail = part(".timeline-detail");

  // ---- What was embedded -----------------------------------------------------------------
  let raw;
  try {
    raw = await unpacked(part("script"));
  } catch (error) {
    part(".timeline-shown").textContent = error.message;
    return;
  }
  part("script").remove();
  const summed = (steps) => {
    const sums = Float64Array.from(steps);
    for (let i = 1; i < sums.length; i++) sums[i] += sums[i - 1];
    return sums;
  };
  const spanSeconds = Math.max(raw.seconds, 1e-6);
  const laneCount = raw.lanes.reduce((sum, lanes) => sum + lanes, 0);
  const rowCount = raw.lanes.length;
  const rowOf = new Int32Array(laneCount);
  const firstLane = new Int32Array(rowCount + 1);
  raw.lanes.forEach((lanes, row) => {
    firstLane[row + 1] = firstLane[row] + lanes;
    rowOf.fill(row, firstLane[row], firstLane[row + 1]);
  });
  // Everything by lane, in order of time: those of a lane from first[lane] to first[lane + 1].
  function byLane(lanes) {
    const first = new Int32Array(laneCount + 1);
    for (const lane of lanes) first[lane + 1]++;
    for (let lane = 0; lane < laneCount; lane++) first[lane + 1] += first[lane];
    const free = first.slice(0, laneCount);
    const order = new Int32Array(lanes.length);
    lanes.forEach((lane, i) => { order[free[lane]++] = i; });
    return { first, order };
  }
  function spans(embedded) {
    const starts = summed(embedded.starts);
    const lengths = Float64Array.from(embedded.lengths);
    for (let i = 0; i < starts.length; i++) { starts[i] /= 1e6; lengths[i] /= 1e6; }
    return { ...embedded, starts, lengths, count: starts.length, ...byLane(embedded.lanes) };
  }
  // Tens of thousands: plain loops take a tenth of the time of a function for each.
  function cells(embedded) {
    const at = summed(embedded.at);
    const count = at.length;
    const first = new Int32Array(laneCount + 1);
    const stretch = new Int32Array(count);
    const part = new Float32Array(count);
    for (let i = 0; i < count; i++) {
      const lane = Math.floor(at[i] / raw.cellsALane);
      first[lane + 1]++;
      stretch[i] = at[i] - lane * raw.cellsALane;
      part[i] = embedded.steps[i] / raw.steps;
    }
    for (let lane = 0; lane < laneCount; lane++) first[lane + 1] += first[lane];
    return { first, stretch, part, kinds: embedded.kinds, count };
  }
  let bars, transfers, marks, short, shortTransfers;
  function readLanes(embedded) {
    bars = spans(embedded.bars);
    transfers = spans(embedded.transfers);
    marks = spans({ ...embedded.marks, lengths: embedded.marks.starts.map(() => 0) });
    short = cells(embedded.cells);
    shortTransfers = cells(embedded.transferCells);
  }
  const NO_SPANS = { lanes: [], starts: [], lengths: [] };
  const NO_CELLS = { at: [], kinds: [], steps: [] };
  readLanes({ bars: NO_SPANS, transfers: NO_SPANS, marks: NO_SPANS, cells: NO_CELLS, transferCells: NO_CELLS });
  const processesOf = Array.from({ length: rowCount }, () => []);
  for (const [row, begin, end, came, ended] of raw.processes) {
    processesOf[row].push({ begin: begin / 1e6, end: end / 1e6, came, ended });
  }
  const hasPrefixes = raw.prefixes.length > 0;

  // ---- State -----------------------------------------------------------------------------
  const state = {
    from: 0, to: spanSeconds, // what is in sight, in seconds since the start
    prefix: "all", dataset: "all", worker: "all",
    failed: false, // only attempts that failed
    colour: hasPrefixes ? "prefix" : "dataset",
    brush: null, // the stretch that is being dragged
    cursor: null, // what was clicked at
  };
  let colours = {};
  let mapImages = null; // of these colours
  let wantedKind = new Uint8Array(0);
  let kindColour = [];
  let shownRows = [];
  let rowTop = []; // of shown rows, and the end of the last
  let lanePx = MOST_LANE_PX;
  let computing = null; // by stretch of the curve, of what is chosen; null: of everything
  let width = 220; // looked up in `place`: the browser takes its time to tell
  let gutter = 100;

  const isZoomed = () => state.from > 0 || state.to < spanSeconds;
  const isFiltered = () => state.prefix !== "all" || state.dataset !== "all" || state.worker !== "all" || state.failed;
  const plot = () => Math.max(width - gutter - 8, 60);
  const xOf = (seconds) => gutter + ((seconds - state.from) / (state.to - state.from)) * plot();
  const secondsAt = (x) => state.from + ((x - gutter) / plot()) * (state.to - state.from);

  function readColours() {
    mapImages = null;
    const style = getComputedStyle(document.documentElement);
    const css = (name) => style.getPropertyValue(name).trim();
    colours = {
      ink: css("--ink"), soft: css("--soft"), line: css("--line"), faint: css("--faint"),
      raised: css("--raised"), accent: css("--accent"), there: css("--timeline-there"),
      transfer: css("--timeline-transfer"), bad: css("--timeline-bad"), area: css("--timeline-area"),
      computing: css("--timeline-computing"), brush: css("--timeline-brush"), sans: css("--sans"),
    };
  }

  function choose() {
    const wants = (chosen, number) => chosen === "all" || Number(chosen) === number;
    wantedKind = Uint8Array.from([...raw.kinds, [-1, -1]],
      ([prefix, dataset]) => (wants(state.prefix, prefix) && wants(state.dataset, dataset) ? 1 : 0));
    kindColour = [...raw.kinds, [-1, -1]].map(([prefix, dataset]) => (
      state.colour === "dataset" ? raw.datasets[dataset]?.[1] : raw.prefixes[prefix]?.[1]) ?? raw.others);
    shownRows = state.worker === "all" ? [...raw.lanes.keys()] : [Number(state.worker)];
    place();
    computing = isFiltered() ? computingOfChosen() : null;
  }

  function place() {
    width = Math.max(scroller.clientWidth, 220);
    const lanes = shownRows.reduce((sum, row) => sum + raw.lanes[row], 0);
    lanePx = Math.max(LEAST_LANE_PX, Math.min(MOST_LANE_PX, Math.floor(LANES_PX / Math.max(lanes, 1)) - 1));
    rowTop = [0];
    for (const row of shownRows) {
      rowTop.push(rowTop[rowTop.length - 1] + Math.max(raw.lanes[row] * lanePx, 7) + ROW_GAP_PX);
    }
    const context = canvas.getContext("2d");
    context.font = `12px ${colours.sans}`;
    const widest = raw.workers.reduce((most, name) => Math.max(most, name.length), 0);
    const longest = raw.workers.find((name) => name.length === widest) ?? "";
    gutter = Math.min(Math.ceil(context.measureText(longest).width) + 14, width * 0.28, 170);
    gutter = Math.max(gutter, 46);
  }

  const isShownBar = (i) => wantedKind[bars.kinds[i]] && (!state.failed || (bars.outcomes[i] >= ERRED && bars.outcomes[i] <= LOST));
  const isShownMark = (i) => wantedKind[marks.kinds[i]];

  // How many tasks of what is chosen computed, by the stretches of the curve.
  function computingOfChosen() {
    const { begin, seconds, computing: whole } = raw.curve;
    const sums = new Float64Array(whole.length);
    const add = (start, stop, amount) => {
      const low = Math.max(0, Math.floor((start - begin) / seconds));
      const high = Math.min(sums.length - 1, Math.floor((stop - begin) / seconds));
      for (let i = low; i <= high; i++) {
        const inside = Math.min(stop, begin + (i + 1) * seconds) - Math.max(start, begin + i * seconds);
        if (inside > 0) sums[i] += amount * inside / seconds;
      }
    };
    for (const row of shownRows) {
      for (let lane = firstLane[row]; lane < firstLane[row + 1]; lane++) {
        for (let k = bars.first[lane]; k < bars.first[lane + 1]; k++) {
          const i = bars.order[k];
          if (isShownBar(i)) add(bars.starts[i], bars.starts[i] + bars.lengths[i], 1);
        }
        if (state.failed) continue;
        for (let i = short.first[lane]; i < short.first[lane + 1]; i++) {
          if (wantedKind[short.kinds[i]]) add(short.stretch[i] * raw.stretch, (short.stretch[i] + 1) * raw.stretch, short.part[i]);
        }
      }
    }
    return sums;
  }

  // ---- Drawing ---------------------------------------------------------------------------
  function prepared(target, wide, high) {
    target.style.width = `${wide}px`;
    const context = sizedContext(target, wide, high);
    context.font = `12px ${colours.sans}`;
    return context;
  }

  const mapRowPx = () => (raw.map.length ? Math.max(2, Math.min(10, Math.floor(MAP_PX / raw.map.length))) : 0);
  const mapPx = () => raw.map.length * mapRowPx();
  const topPx = () => CURVE_PX + (raw.map.length ? GAP_PX + mapPx() : 0) + AXIS_PX;

  function drawTop() {
    const context = prepared(top, width, topPx());
    drawTicks(context, topPx() - AXIS_PX, true);
    drawCurve(context);
    drawMap(context);
    if (state.brush) drawBrush(context, topPx() - AXIS_PX);
  }

  function drawBrush(context, high) {
    const [low, upper] = [Math.min(...state.brush), Math.max(...state.brush)];
    context.fillStyle = colours.brush;
    context.fillRect(xOf(low), 0, Math.max(xOf(upper) - xOf(low), 1), high);
  }

  function drawCurve(context) {
    const { begin, seconds, computing: whole, threads } = raw.curve;
    if (!whole.length) return;
    const most = Math.max(...whole, ...threads.map((count) => count ?? 0), 1);
    const base = CURVE_PX - 1;
    const yOf = (value) => base - (value / most) * (CURVE_PX - 14);
    context.save();
    context.beginPath();
    context.rect(gutter, 0, plot(), CURVE_PX);
    context.clip();
    const path = (values) => {
      context.beginPath();
      context.moveTo(xOf(begin), base);
      values.forEach((value, i) => {
        context.lineTo(xOf(begin + i * seconds), yOf(value ?? 0));
        context.lineTo(xOf(Math.min(begin + (i + 1) * seconds, spanSeconds)), yOf(value ?? 0));
      });
      context.lineTo(xOf(Math.min(begin + values.length * seconds, spanSeconds)), base);
    };
    path(computing ?? whole);
    context.fillStyle = colours.area;
    context.fill();
    context.strokeStyle = colours.computing;
    context.lineWidth = 1.2;
    context.stroke();
    context.setLineDash([3, 3]);
    context.strokeStyle = colours.soft;
    path(threads);
    context.stroke();
    context.restore();
    context.fillStyle = colours.soft;
    context.textAlign = "right";
    context.textBaseline = "middle";
    // The threads that there are make a round number; where they are not known, the most tasks.
    const mark = Math.max(...threads.map((count) => count ?? 0)) || most;
    context.fillText(digits(mark), gutter - 6, yOf(mark));
    context.fillText("0", gutter - 6, base - 4);
    context.fillText("running", gutter - 6, (yOf(mark) + base) / 2);
  }

  // A pixel a share, of one colour.
  function mapImage(alphaOf, colour) {
    const image = document.createElement("canvas");
    [image.width, image.height] = [raw.curve.computing.length, raw.map.length];
    const context = image.getContext("2d");
    const pixels = context.createImageData(image.width, image.height);
    raw.map.forEach(({ shares }, row) => shares.forEach((share, i) => {
      pixels.data[4 * (row * image.width + i) + 3] = share < 0 ? 0 : alphaOf(share);
    }));
    context.putImageData(pixels, 0, 0);
    context.globalCompositeOperation = "source-in";
    context.fillStyle = colour;
    context.fillRect(0, 0, image.width, image.height);
    return image;
  }

  function drawMap(context) {
    const { begin, seconds, computing: { length } } = raw.curve;
    if (!raw.map.length || !length) return;
    mapImages ??= [
      mapImage(() => 255, colours.there),
      mapImage((share) => Math.round(2.55 * Math.min(share, 100)), colours.computing),
    ];
    const height = mapRowPx();
    context.save();
    context.beginPath();
    context.rect(gutter, CURVE_PX, Math.min(plot(), xOf(spanSeconds) - gutter), GAP_PX + mapPx());
    context.clip();
    const low = Math.max(0, Math.floor((state.from - begin) / seconds));
    const high = Math.min(length - 1, Math.floor((state.to - begin) / seconds));
    const x = xOf(begin + low * seconds);
    const wide = xOf(begin + (high + 1) * seconds) - x;
    // Edges of shares are edges, however wide they are drawn.
    context.imageSmoothingEnabled = false;
    for (let row = 0; row < raw.map.length; row++) {
      const y = CURVE_PX + GAP_PX + row * height;
      for (const image of mapImages) {
        context.drawImage(image, low, row, high - low + 1, 1, x, y, wide, height - (height > 3 ? 1 : 0));
      }
    }
    context.restore();
    context.fillStyle = colours.soft;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillText("busy", gutter - 6, CURVE_PX + GAP_PX + mapPx() / 2);
  }

  // ---- Times -----------------------------------------------------------------------------
  const UNITS = [
    [1e-6, "µs"], [1e-3, "ms"], [1, "s"], [60, "min"], [3600, "h"], [86400, "d"],
  ];
  function ticks() {
    const wanted = (state.to - state.from) / Math.max(plot() / 90, 2);
    const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500];
    const candidates = [
      ...steps.map((n) => n * 1e-6), ...steps.map((n) => n * 1e-3),
      1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
      ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000].map((n) => n * 86400),
    ];
    const step = candidates.find((size) => size >= wanted) ?? wanted;
    const [size, unit] = UNITS.findLast(([length]) => length <= (step >= 60 ? step : Math.min(step, 1)) * 1.0000001) ?? UNITS[0];
    const shown = step < 1 && state.to >= 1 ? [1, "s"] : [size, unit];
    const places = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / shown[0] * 1.0000001))));
    const at = [];
    for (let i = Math.ceil(state.from / step - 1e-9); i * step <= state.to * (1 + 1e-12) && at.length < 200; i++) {
      at.push([i * step, (i * step / shown[0]).toFixed(places)]);
    }
    return { at, unit: shown[1] };
  }

  function drawTicks(context, high, named) {
    const { at, unit } = ticks();
    context.strokeStyle = colours.line;
    context.lineWidth = 1;
    context.fillStyle = colours.soft;
    context.textBaseline = "top";
    context.textAlign = "center";
    const words = `since the start (${unit})`;
    // What the axis is stands at its right end, where no number may run into it.
    const free = named ? width - context.measureText(words).width - 24 : width;
    for (const [seconds, text] of at) {
      const x = Math.round(xOf(seconds)) + 0.5;
      context.beginPath();
      context.moveTo(x, 0);
      context.lineTo(x, high + (named ? 4 : 0));
      context.stroke();
      if (named && x + context.measureText(text).width / 2 < free) context.fillText(text, x, high + 7);
    }
    if (!named) return;
    context.textAlign = "right";
    context.fillText(words, width - 8, high + 7);
  }

  // ---- Lanes -----------------------------------------------------------------------------
  const rowAt = (y) => {
    let [low, high] = [0, shownRows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rowTop[middle + 1] <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const lanesHeight = () => Math.max(rowTop[rowTop.length - 1], 20);
  // The canvas is as high as what is in sight of it, and stays there while it is scrolled.
  const sightHeight = () => Math.min(lanesHeight(), Math.max(scroller.clientHeight, 1) || 560);

  function drawLanes() {
    content.style.height = `${lanesHeight()}px`;
    const high = sightHeight();
    const context = prepared(canvas, width, high);
    const y0 = Math.min(scroller.scrollTop, Math.max(lanesHeight() - high, 0));
    drawTicks(context, high, false);
    context.save();
    context.beginPath();
    context.rect(gutter, 0, plot() + 8, high);
    context.clip();
    const last = Math.min(rowAt(y0 + high), shownRows.length - 1);
    for (let place = rowAt(y0); place <= last; place++) drawRow(context, shownRows[place], rowTop[place] - y0, rowTop[place + 1] - rowTop[place] - ROW_GAP_PX);
    for (let place = rowAt(y0); place <= last; place++) drawSigns(context, shownRows[place], rowTop[place] - y0, rowTop[place + 1] - rowTop[place] - ROW_GAP_PX);
    if (state.brush) drawBrush(context, high);
    context.restore();
    drawNames(context, y0, high);
  }

  function drawNames(context, y0, high) {
    context.textAlign = "right";
    context.textBaseline = "middle";
    let free = -1e9;
    for (let place = 0; place < shownRows.length; place++) {
      const middle = (rowTop[place] + rowTop[place + 1] - ROW_GAP_PX) / 2 - y0;
      // From the first row on, so that the same rows have names wherever it is scrolled to.
      if (middle < free || middle > high + LABEL_PX) continue;
      free = middle + LABEL_PX + 1;
      if (middle < -LABEL_PX) continue;
      context.fillStyle = colours.soft;
      context.fillText(fitted(context, raw.workers[shownRows[place]], gutter - 12), gutter - 6, middle);
    }
  }

  function fitted(context, text, most) {
    if (context.measureText(text).width <= most) return text;
    let keep = text.length - 1;
    while (keep > 1 && context.measureText(`${text.slice(0, keep)}…`).width > most) keep--;
    return `${text.slice(0, keep)}…`;
  }

  function drawRow(context, row, y, high) {
    context.fillStyle = colours.there;
    for (const { begin, end } of processesOf[row]) {
      if (end < state.from || begin > state.to) continue;
      context.fillRect(xOf(begin), y, Math.max(xOf(end) - xOf(begin), 1), high);
    }
    const each = high / raw.lanes[row];
    for (let slot = 0; slot < raw.lanes[row]; slot++) {
      const lane = firstLane[row] + slot;
      drawLane(context, lane, y + slot * each, each);
    }
  }

  function drawLane(context, lane, y, high) {
    const inner = high > 6 ? high - 1 : high;
    if (!state.failed) drawShort(context, lane, y, inner);
    for (let k = bars.first[lane]; k < bars.first[lane + 1]; k++) {
      const i = bars.order[k];
      const start = bars.starts[i];
      if (start > state.to) break;
      const stop = start + bars.lengths[i];
      if (stop < state.from || !isShownBar(i)) continue;
      const x = xOf(start);
      const wide = Math.max(xOf(stop) - x, 1);
      context.fillStyle = kindColour[bars.kinds[i]];
      // A hair of distance keeps long neighbours apart.
      context.fillRect(x, y, wide > 4 ? wide - 0.7 : wide, inner);
      if (state.cursor?.bar === i) {
        context.strokeStyle = colours.ink;
        context.lineWidth = 2;
        context.strokeRect(x - 1, y - 1, wide + 2, inner + 2);
      }
    }
    if (!state.failed && state.prefix === "all" && state.dataset === "all") drawTransfers(context, lane, y, inner);
  }

  // As high as the part of the stretch that was computed, kind upon kind.
  function drawShort(context, lane, y, high) {
    let stretch = -1;
    let base = 0;
    for (let i = short.first[lane]; i < short.first[lane + 1]; i++) {
      const start = short.stretch[i] * raw.stretch;
      if (start > state.to) break;
      if (start + raw.stretch < state.from || !wantedKind[short.kinds[i]]) continue;
      if (short.stretch[i] !== stretch) { stretch = short.stretch[i]; base = 0; }
      const from = Math.min(base, 1) * high;
      base += short.part[i];
      const to = Math.min(base, 1) * high;
      const x = xOf(start);
      const wide = xOf(Math.min(start + raw.stretch, spanSeconds)) - x;
      context.fillStyle = kindColour[short.kinds[i]];
      context.fillRect(x, y + high - to, Math.max(wide + 0.3, 0.5), to - from);
    }
  }

  // Transfers run beside computing: a thin line at the foot of the lane.
  function drawTransfers(context, lane, y, high) {
    const thin = Math.max(1, Math.min(4, high * 0.3));
    context.fillStyle = colours.transfer;
    for (let i = shortTransfers.first[lane]; i < shortTransfers.first[lane + 1]; i++) {
      const start = shortTransfers.stretch[i] * raw.stretch;
      if (start > state.to) break;
      if (start + raw.stretch < state.from) continue;
      context.globalAlpha = Math.min(1, shortTransfers.part[i]);
      const x = xOf(start);
      context.fillRect(x, y + high - thin, xOf(Math.min(start + raw.stretch, spanSeconds)) - x + 0.3, thin);
    }
    context.globalAlpha = 1;
    for (let k = transfers.first[lane]; k < transfers.first[lane + 1]; k++) {
      const i = transfers.order[k];
      if (transfers.starts[i] > state.to) break;
      if (transfers.starts[i] + transfers.lengths[i] < state.from) continue;
      const x = xOf(transfers.starts[i]);
      context.fillRect(x, y + high - thin, Math.max(xOf(transfers.starts[i] + transfers.lengths[i]) - x, 1), thin);
    }
  }

  function drawSigns(context, row, y, high) {
    const each = high / raw.lanes[row];
    context.lineWidth = 2;
    for (let slot = 0; slot < raw.lanes[row]; slot++) {
      const lane = firstLane[row] + slot;
      for (let k = marks.first[lane]; k < marks.first[lane + 1]; k++) {
        const i = marks.order[k];
        const x = xOf(marks.starts[i]);
        if (x < gutter - 6 || x > width || !isShownMark(i)) continue;
        sign(context, marks.outcomes[i], x, y + (slot + 0.5) * each, state.cursor?.mark === i);
      }
    }
    for (const { begin, end, came, ended } of processesOf[row]) {
      if (came) { context.fillStyle = colours.soft; context.fillRect(xOf(begin) - 1, y - 1, 2, high + 2); }
      if (!ended) continue;
      context.fillStyle = ended === 2 ? colours.bad : colours.soft;
      const wide = ended === 2 ? 4 : 2;
      context.fillRect(xOf(end) - wide / 2, y - 1, wide, high + 2);
    }
  }

  function sign(context, outcome, x, y, chosen) {
    const path = new Path2D();
    const r = chosen ? 7 : 4.5;
    if (outcome === ERRED) {
      path.moveTo(x - r, y - r); path.lineTo(x + r, y + r);
      path.moveTo(x + r, y - r); path.lineTo(x - r, y + r);
    } else if (outcome === RETRIED) {
      path.moveTo(x, y - r); path.lineTo(x + r, y + r); path.lineTo(x - r, y + r); path.closePath();
    } else {
      path.moveTo(x, y - r); path.lineTo(x + r, y); path.lineTo(x, y + r); path.lineTo(x - r, y); path.closePath();
    }
    context.strokeStyle = colours.raised;
    context.lineWidth = 4;
    context.stroke(path);
    context.strokeStyle = colours.bad;
    context.lineWidth = 2;
    context.stroke(path);
    if (outcome === RETRIED) { context.fillStyle = colours.bad; context.fill(path); }
  }

  // ---- Words -----------------------------------------------------------------------------
  // As on the axis, to a thousandth of what is in sight.
  function instant(seconds) {
    const places = Math.max(0, Math.min(6, Math.ceil(-Math.log10((state.to - state.from) / 1000))));
    const since = seconds < 119.5 || !isZoomed() && spanSeconds < 600
      ? `${seconds.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places })} s`
      : duration(seconds);
    return `${since} (${clock(seconds)})`;
  }
  function clock(seconds) {
    const zone = raw.zone ?? 0;
    const there = new Date((raw.begin + seconds + zone) * 1000).toISOString().slice(11, 19);
    const minutes = Math.round(Math.abs(zone) / 60);
    const offset = zone === 0 ? "UTC" : `UTC${zone < 0 ? "−" : "+"}${Math.floor(minutes / 60)}${minutes % 60 ? `:${String(minutes % 60).padStart(2, "0")}` : ""}`;
    return `${there} ${offset}`;
  }
  const prefixOf = (kind) => raw.prefixes[raw.kinds[kind]?.[0]]?.[0];
  const datasetOf = (kind) => raw.datasets[raw.kinds[kind]?.[1]]?.[0];
  const kindName = (kind) => prefixOf(kind) ?? datasetOf(kind) ?? "(others)";
  const wordsOf = (outcome) => WORDS[raw.outcomes[outcome]] ?? "";
  const threadOf = (lane) => {
    const row = rowOf[lane];
    const name = raw.workers[row];
    const where = raw.addresses[row] && !raw.addresses[row].endsWith(name) ? `${name}, ${raw.addresses[row]}` : raw.addresses[row] || name;
    return raw.lanes[row] > 1 ? `${where}, thread ${lane - firstLane[row] + 1}` : where;
  };

  function factsOfBar(i) {
    const kind = bars.kinds[i];
    const lines = [bars.keys[i]];
    if (bars.files && bars.files[i] >= 0) {
      const entries = bars.entryStarts[i] === null ? "" : `, entries ${bars.entryStarts[i].toLocaleString("en")} to ${bars.entryStops[i].toLocaleString("en")}`;
      const dataset = prefixOf(kind) ? datasetOf(kind) : null;
      lines.push(`${dataset ? `${dataset}: ` : ""}${bars.filenames[bars.files[i]]}${entries}`);
    }
    const ended = wordsOf(bars.outcomes[i]);
    lines.push(`computed ${duration(bars.lengths[i])} from ${instant(bars.starts[i])}, attempt ${bars.attempts[i]}${ended ? `: ${ended}` : ""}`);
    lines.push(threadOf(bars.lanes[i]));
    return { name: kindName(kind), lines };
  }
  function factsOfMark(i) {
    return { name: `${kindName(marks.kinds[i])}: ${wordsOf(marks.outcomes[i])}`,
      lines: [marks.keys[i], `at ${instant(marks.starts[i])}, attempt ${marks.attempts[i]}`, threadOf(marks.lanes[i])] };
  }
  function factsOfShort(lane, stretch) {
    const parts = [];
    for (let i = short.first[lane]; i < short.first[lane + 1]; i++) {
      if (short.stretch[i] === stretch && wantedKind[short.kinds[i]]) parts.push([short.part[i], short.kinds[i]]);
    }
    parts.sort((a, b) => b[0] - a[0]);
    const from = stretch * raw.stretch;
    const lines = parts.slice(0, 5).map(([share, kind]) => `${kindName(kind)}${datasetOf(kind) && prefixOf(kind) ? ` (${datasetOf(kind)})` : ""}: ${(100 * share).toFixed(share < 0.1 ? 1 : 0)} % of the time`);
    if (parts.length > 5) lines.push(`and ${parts.length - 5} more`);
    return { name: `Short tasks from ${instant(from)} for ${duration(Math.min(raw.stretch, spanSeconds - from))}`,
      lines: [...lines, threadOf(lane)] };
  }
  function factsOfTop(seconds, y) {
    const { begin, seconds: wide, computing: whole, threads } = raw.curve;
    const i = Math.floor((seconds - begin) / wide);
    if (i < 0 || i >= whole.length) return null;
    const row = raw.map[Math.floor((y - CURVE_PX - GAP_PX) / mapRowPx())];
    if (y > CURVE_PX && row) {
      if (row.shares[i] < 0) return null;
      const several = row.workers > 1 ? ` and ${row.workers - 1} more` : "";
      return { name: `${row.name}${several}: ${row.shares[i]} % busy`, lines: [`from ${instant(begin + i * wide)} for ${duration(wide)}`] };
    }
    if (y > CURVE_PX) return null;
    const there = threads[i] === null ? "" : ` on ${digits(threads[i])} threads`;
    const chosen = computing ? [`${digits(computing[i])} of those chosen`] : [];
    return { name: `${digits(whole[i])} tasks computed${there}`, lines: [...chosen, `from ${instant(begin + i * wide)} for ${duration(wide)}`] };
  }

  function sayShown() {
    const words = [];
    if (isZoomed()) words.push(`From ${instant(state.from)} to ${instant(state.to)}, ${duration(state.to - state.from)}`);
    if (isFiltered()) {
      const { seconds } = raw.curve;
      const total = computing.reduce((sum, value, i) => sum + value * Math.min(seconds, spanSeconds - i * seconds), 0);
      const whole = raw.curve.computing.reduce((sum, value, i) => sum + value * Math.min(seconds, spanSeconds - i * seconds), 0);
      const all = state.worker === "all" && !state.failed;
      const runs = raw.kinds.reduce((sum, kind, i) => sum + (wantedKind[i] ? kind[2] : 0), 0);
      words.push(`${all ? `${runs.toLocaleString("en")} attempts, ` : ""}${duration(total)} of computing, ${whole > 0 ? (100 * total / whole).toFixed(total < 0.1 * whole ? 1 : 0) : 0} % of all, are chosen`);
    }
    if (!words.length) words.push(`The whole run: ${raw.runs.toLocaleString("en")} computations in ${duration(spanSeconds)}`);
    part(".timeline-shown").textContent = `${words.join("; ")}.`;
  }

  // ---- From the state to the screen ------------------------------------------------------
  let frame = 0;
  function redraw() {
    if (frame) return;
    frame = requestAnimationFrame(() => { frame = 0; drawTop(); drawLanes(); });
  }
  function renew() { choose(); redraw(); sayShown(); hide(); }
  function show(from, to) {
    const least = Math.max(spanSeconds * MOST_ZOOM, 1e-5);
    const long = Math.min(Math.max(to - from, least), spanSeconds);
    const begin = Math.max(0, Math.min(from, spanSeconds - long));
    state.from = begin;
    state.to = Math.min(begin + long, spanSeconds);
    for (const button of figure.querySelectorAll('[data-zoom="all"], [data-zoom="out"]')) button.disabled = !isZoomed();
    redraw();
    sayShown();
    hide();
  }
  function zoom(factor, around = (state.from + state.to) / 2) {
    const long = (state.to - state.from) * factor;
    const share = (around - state.from) / (state.to - state.from);
    show(around - share * long, around + (1 - share) * long);
  }
  function keep(cursor) {
    state.cursor = cursor;
    const facts = cursor === null ? null : cursor.bar !== undefined ? factsOfBar(cursor.bar)
      : cursor.mark !== undefined ? factsOfMark(cursor.mark) : cursor.facts;
    detail.textContent = facts ? `${facts.name}: ${facts.lines.join("; ")}.` : HINT;
    redraw();
  }

  // ---- Pointer ---------------------------------------------------------------------------
  function placeOf(event, target) {
    const there = target.getBoundingClientRect();
    const scale = there.width / width || 1;
    return { x: (event.clientX - there.left) / scale, y: (event.clientY - there.top) / scale };
  }
  function hit({ x, y }) {
    if (x < gutter) return null;
    const inside = y + Math.min(scroller.scrollTop, Math.max(lanesHeight() - sightHeight(), 0));
    const at = rowAt(inside);
    if (at >= shownRows.length) return null;
    const row = shownRows[at];
    const high = rowTop[at + 1] - rowTop[at] - ROW_GAP_PX;
    const slot = Math.min(Math.floor((inside - rowTop[at]) / (high / raw.lanes[row])), raw.lanes[row] - 1);
    const near = (distance) => distance <= 6;
    for (let lane = firstLane[row]; lane < firstLane[row + 1]; lane++) {
      for (let k = marks.first[lane]; k < marks.first[lane + 1]; k++) {
        const i = marks.order[k];
        const middle = rowTop[at] + (lane - firstLane[row] + 0.5) * high / raw.lanes[row];
        if (isShownMark(i) && near(Math.abs(xOf(marks.starts[i]) - x)) && near(Math.abs(middle - inside))) return { mark: i };
      }
    }
    const lane = firstLane[row] + slot;
    const seconds = secondsAt(x);
    const slack = secondsAt(x + 2) - seconds;
    let found = null;
    for (let k = bars.first[lane]; k < bars.first[lane + 1]; k++) {
      const i = bars.order[k];
      if (bars.starts[i] > seconds + slack) break;
      if (!isShownBar(i)) continue;
      const stop = bars.starts[i] + bars.lengths[i];
      if (bars.starts[i] <= seconds && seconds <= stop) return { bar: i };
      if (stop >= seconds - slack) found = { bar: i };
    }
    if (found) return found;
    for (const { begin, end, came, ended } of processesOf[row]) {
      if (came && near(Math.abs(xOf(begin) - x))) return { facts: { name: `${raw.workers[row]} arrived`, lines: [`at ${instant(begin)}`, raw.addresses[row]] } };
      if (ended && near(Math.abs(xOf(end) - x))) return { facts: { name: `${raw.workers[row]} ${ended === 2 ? "was lost" : "left"}`, lines: [`at ${instant(end)}`, raw.addresses[row]] } };
    }
    if (state.failed) return null;
    const stretch = Math.floor(seconds / raw.stretch);
    for (let i = short.first[lane]; i < short.first[lane + 1]; i++) {
      if (short.stretch[i] === stretch && wantedKind[short.kinds[i]]) return { facts: factsOfShort(lane, stretch) };
    }
    return null;
  }
  function hide() { tip.hidden = true; }
  function showTip(event, facts) {
    tip.hidden = !facts;
    if (!facts) return;
    fillTip(tip, facts.name, facts.lines);
    placeTip(tip, figure, event);
  }

  let drag = null;
  for (const target of [top, canvas]) {
    target.addEventListener("pointerdown", (event) => {
      const { x } = placeOf(event, target);
      if (event.button !== 0 || x < gutter - 4) return;
      drag = { x, seconds: secondsAt(x), from: state.from, to: state.to, pans: event.shiftKey, moved: false };
      target.setPointerCapture?.(event.pointerId);
    });
    target.addEventListener("pointermove", (event) => {
      const at = placeOf(event, target);
      if (!drag) {
        const found = target === canvas ? hit(at) : null;
        const facts = target === top ? factsOfTop(secondsAt(at.x), at.y)
          : found?.bar !== undefined ? factsOfBar(found.bar)
            : found?.mark !== undefined ? factsOfMark(found.mark) : found?.facts;
        target.style.cursor = found?.bar !== undefined || found?.mark !== undefined ? "pointer" : "crosshair";
        showTip(event, at.x < gutter ? null : facts);
        return;
      }
      drag.moved ||= Math.abs(at.x - drag.x) > 4;
      if (!drag.moved) return;
      hide();
      if (drag.pans) {
        const by = ((drag.x - at.x) / plot()) * (drag.to - drag.from);
        show(drag.from + by, drag.to + by);
      } else {
        state.brush = [drag.seconds, Math.max(0, Math.min(secondsAt(at.x), spanSeconds))];
        redraw();
      }
    });
    target.addEventListener("pointerup", (event) => {
      const brush = state.brush;
      const still = drag && !drag.moved;
      drag = null;
      state.brush = null;
      if (brush) show(Math.min(...brush), Math.max(...brush));
      else if (still && target === canvas) keep(hit(placeOf(event, target)));
    });
    target.addEventListener("pointercancel", () => { drag = null; state.brush = null; redraw(); });
    target.addEventListener("pointerleave", hide);
    target.addEventListener("dblclick", () => show(0, spanSeconds));
    target.addEventListener("wheel", (event) => {
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), secondsAt(placeOf(event, target).x));
      } else if (sideways && isZoomed()) {
        event.preventDefault();
        const by = ((event.deltaX || event.deltaY) / plot()) * (state.to - state.from);
        show(state.from + by, state.to + by);
      }
    }, { passive: false });
    target.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const by = 0.2 * (state.to - state.from);
      const keys = {
        ArrowLeft: () => show(state.from - by, state.to - by),
        ArrowRight: () => show(state.from + by, state.to + by),
        ArrowUp: () => { scroller.scrollTop -= 60; },
        ArrowDown: () => { scroller.scrollTop += 60; },
        "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
        0: () => show(0, spanSeconds), Home: () => show(0, spanSeconds),
        n: () => nextFailure(1), p: () => nextFailure(-1),
        Escape: () => { keep(null); show(0, spanSeconds); },
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
  }
  // The failed attempts one after the other, in order of time.
  function nextFailure(by) {
    if (!marks.count) return;
    let i = state.cursor?.mark ?? (by > 0 ? -1 : marks.count);
    do { i += by; } while (i >= 0 && i < marks.count && !(isShownMark(i) && shownRows.includes(rowOf[marks.lanes[i]])));
    if (i < 0 || i >= marks.count) return;
    const at = marks.starts[i];
    if (at < state.from || at > state.to) show(at - (state.to - state.from) / 2, at + (state.to - state.from) / 2);
    const row = shownRows.indexOf(rowOf[marks.lanes[i]]);
    if (rowTop[row] < scroller.scrollTop || rowTop[row + 1] > scroller.scrollTop + sightHeight()) scroller.scrollTop = rowTop[row] - 40;
    keep({ mark: i });
  }
  scroller.addEventListener("scroll", () => { hide(); redraw(); }, { passive: true });

  // ---- Controls --------------------------------------------------------------------------
  const selects = [...figure.querySelectorAll("[data-choose]")];
  const legend = [...figure.querySelectorAll("[data-legend]")];
  function showChosen() {
    for (const button of legend) button.setAttribute("aria-pressed", String(state[state.colour] === button.dataset.legend));
  }
  for (const select of selects) {
    // A browser that goes back to a page fills in what was chosen before.
    state[select.dataset.choose] = select.value;
    select.addEventListener("change", () => {
      state[select.dataset.choose] = select.value;
      if (select.dataset.choose === "worker") scroller.scrollTop = 0;
      keep(null);
      showChosen();
      renew();
    });
  }
  for (const button of legend) {
    const of = hasPrefixes ? "prefix" : "dataset";
    button.addEventListener("click", () => {
      state[of] = state[of] === button.dataset.legend ? "all" : button.dataset.legend;
      const select = selects.find((one) => one.dataset.choose === of);
      if (select) select.value = state[of];
      keep(null);
      showChosen();
      renew();
    });
  }
  part('[data-toggle="failed"]')?.addEventListener("click", (event) => {
    state.failed = !state.failed;
    event.currentTarget.setAttribute("aria-pressed", String(state.failed));
    renew();
  });
  const ZOOMS = { in: () => zoom(0.5), out: () => zoom(2), all: () => show(0, spanSeconds) };
  for (const button of figure.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", ZOOMS[button.dataset.zoom]);
  }

  // What a download has: everything that is chosen and in sight, in the order of the lanes;
  // then the curve and the map above them.
  figure.shownRows = () => {
    const at = (seconds) => (raw.begin + seconds).toFixed(6);
    const rows = [["what", "worker", "thread", "prefix", "dataset", "key", "attempt", "outcome",
      "start_t", "stop_t", "seconds", "filename", "entry_start", "entry_stop", "value"]];
    const { begin, seconds, computing: whole, threads } = raw.curve;
    const overTime = (what, name, values) => values.forEach((value, i) => {
      const [start, stop] = [begin + i * seconds, Math.min(begin + (i + 1) * seconds, spanSeconds)];
      if (value === null || value < 0 || stop < state.from || start > state.to) return;
      rows.push([what, name, "", "", "", "", "", "", at(start), at(stop), stop - start, "", "", "", value]);
    });
    const isIn = (start, stop) => stop >= state.from && start <= state.to;
    const told = (from, i) => [prefixOf(from.kinds[i]) ?? "", datasetOf(from.kinds[i]) ?? "", from.keys[i], from.attempts[i], raw.outcomes[from.outcomes[i]] ?? ""];
    const of = (i) => (bars.files && bars.files[i] >= 0 ? [bars.filenames[bars.files[i]], bars.entryStarts[i] ?? "", bars.entryStops[i] ?? ""] : ["", "", ""]);
    for (const row of shownRows) {
      for (let lane = firstLane[row]; lane < firstLane[row + 1]; lane++) {
        const where = [raw.addresses[row], lane - firstLane[row] + 1];
        for (let k = bars.first[lane]; k < bars.first[lane + 1]; k++) {
          const i = bars.order[k];
          const [start, stop] = [bars.starts[i], bars.starts[i] + bars.lengths[i]];
          if (isShownBar(i) && isIn(start, stop)) rows.push(["computation", ...where, ...told(bars, i), at(start), at(stop), bars.lengths[i], ...of(i)]);
        }
        for (let i = short.first[lane]; !state.failed && i < short.first[lane + 1]; i++) {
          const start = short.stretch[i] * raw.stretch;
          const kind = short.kinds[i];
          if (wantedKind[kind] && isIn(start, start + raw.stretch)) rows.push(["short tasks", ...where, prefixOf(kind) ?? "", datasetOf(kind) ?? "", "", "", "", at(start), at(Math.min(start + raw.stretch, spanSeconds)), short.part[i] * raw.stretch, "", "", ""]);
        }
        for (let k = marks.first[lane]; k < marks.first[lane + 1]; k++) {
          const i = marks.order[k];
          if (isShownMark(i) && isIn(marks.starts[i], marks.starts[i])) rows.push(["failure", ...where, ...told(marks, i), at(marks.starts[i]), at(marks.starts[i]), 0, "", "", ""]);
        }
        for (let k = transfers.first[lane]; k < transfers.first[lane + 1]; k++) {
          const i = transfers.order[k];
          const [start, stop] = [transfers.starts[i], transfers.starts[i] + transfers.lengths[i]];
          if (isIn(start, stop)) rows.push(["transfer", ...where, "", "", "", "", "", at(start), at(stop), transfers.lengths[i], "", "", ""]);
        }
      }
    }
    overTime("tasks computing", "", [...(computing ?? whole)]);
    overTime("threads", "", threads);
    for (const { name, shares } of raw.map) overTime("percent busy", name, shares);
    return rows.map((row) => (row.length === rows[0].length ? row : [...row, ""]));
  };

  document.addEventListener("roast-theme", () => { readColours(); place(); drawTop(); drawLanes(); });
  new ResizeObserver(() => { place(); drawTop(); drawLanes(); }).observe(scroller);

  readColours();
  choose();
  keep(null);
  show(0, spanSeconds);
  showChosen();
  drawTop();
  part(".timeline-top").dataset.state = "drawn";

  const lanes = await elementRead("timeline-lanes");
  readLanes(await unpacked(lanes));
  lanes.remove();
  // What is chosen already, which a browser may have filled in, is told of the lanes only now.
  choose();
  sayShown();
  drawTop();
  drawLanes();
  figure.dataset.state = "drawn";
})();
drawings.push(() => timelineDrawn);
