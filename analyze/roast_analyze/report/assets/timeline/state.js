import { ERRED, LOST, SEVERAL } from "./data.js";

const MAX_ZOOM = 1e-6; // the smallest visible share of the run

const accepts = (chosen, index) => chosen === "all" || Number(chosen) === index;

/** What the reader has chosen: time range, filters and colors; and what follows from the filters. */
export class State {
  constructor(data, color) {
    this.data = data;
    this.start = 0; // the visible time range, in seconds since the start of the recording
    this.stop = data.seconds;
    this.prefix = "all"; // an index as text, as the value of a <select>
    this.dataset = "all";
    this.worker = "all";
    this.failedOnly = false;
    this.file = "all"; // chosen in the legend
    this.outcome = "all";
    this.status = "all";
    this.color = color;
    this.brush = null; // [start, stop] of the time range that is being dragged
    this.selected = null; // the result of hitTest for what was clicked
  }

  get isZoomed() { return this.start > 0 || this.stop < this.data.seconds; }

  get isFiltered() {
    return this.prefix !== "all" || this.dataset !== "all" || this.worker !== "all" || this.areAttemptsFiltered;
  }

  /** Whether a filter is of single attempts, so that it selects nothing that is added up. */
  get areAttemptsFiltered() { return this.failedOnly || [this.file, this.outcome, this.status].some((chosen) => chosen !== "all"); }

  /** Set the visible time range, cut to the run and to the maximum zoom. */
  setRange(start, stop) {
    const { seconds } = this.data;
    const length = Math.min(Math.max(stop - start, seconds * MAX_ZOOM, 1e-5), seconds);
    this.start = Math.max(0, Math.min(start, seconds - length));
    this.stop = Math.min(this.start + length, seconds);
  }

  /** Apply the filters and the color scheme: `rows`, `isKindShown`, `kindColors`, `computing`. */
  applyFilters() {
    const { kinds, prefixes, datasets, others, hiddenWorkers, lanes } = this.data;
    this.isKindShown = Uint8Array.from(kinds,
      ([prefix, dataset]) => (accepts(this.prefix, prefix) && accepts(this.dataset, dataset) ? 1 : 0));
    this.kindColors = kinds.map(([prefix, dataset]) => (
      this.color === "dataset" ? datasets[dataset]?.[1]
        : this.color === "prefix" ? prefixes[prefix]?.[1] : undefined) ?? others);
    this.rows = this.worker === "all" ? [...lanes.keys()] : [Number(this.worker)];
    // Whether kinds that are not shown may have attempts of the chosen dataset.
    this.areKindsPartial = this.dataset !== "all"
      && kinds.some(([prefix, dataset]) => dataset === SEVERAL && accepts(this.prefix, prefix));
    // Whether attempts that pass the filters are missing in `computing`.
    this.isComputingPartial = this.areKindsPartial || (this.worker === "all" && hiddenWorkers > 0);
    // Tasks computing that pass the filters, by bucket of the curve; null without a filter.
    this.computing = this.isFiltered ? this.#computing() : null;
  }

  // Transfers have no prefix, dataset and outcome.
  get areTransfersShown() { return !this.areAttemptsFiltered && this.prefix === "all" && this.dataset === "all"; }

  isBarShown(i) {
    const { kinds, outcomes, files, statuses } = this.data.bars;
    return this.isKindShown[kinds[i]] && (!this.failedOnly || (outcomes[i] >= ERRED && outcomes[i] <= LOST))
      && accepts(this.file, files?.[i]) && accepts(this.outcome, outcomes[i]) && accepts(this.status, statuses[i]);
  }

  isMarkShown(i) {
    const { kinds, outcomes, files } = this.data.marks;
    return this.isKindShown[kinds[i]] && accepts(this.file, files?.[i]) && accepts(this.outcome, outcomes[i]);
  }

  /** Return the dependencies of the selected bar and its dependents that are in view, as pairs of bars. */
  linksInView() {
    const { bars, dependencies: { targets, sources }, rowOfLane } = this.data;
    const bar = this.selected?.bar;
    const isInView = (i) => bars.starts[i] <= this.stop && bars.starts[i] + bars.lengths[i] >= this.start
      && this.isBarShown(i) && this.rows.includes(rowOfLane[bars.lanes[i]]);
    const links = [];
    if (bar === undefined || !isInView(bar)) return links;
    for (let i = 0; i < sources.length; i++) {
      const other = targets[i] === bar ? sources[i] : sources[i] === bar ? targets[i] : -1;
      if (other >= 0 && isInView(other)) links.push([sources[i], targets[i]]);
    }
    return links;
  }

  colorOf(i) {
    const { bars, outcomeColors, ranked, others } = this.data;
    switch (this.color) {
      case "file": return ranked[bars.files[i]] ?? others;
      case "outcome": return outcomeColors[bars.outcomes[i]] ?? others;
      case "status": return ranked[bars.statuses[i]] ?? others;
      default: return this.kindColors[bars.kinds[i]];
    }
  }

  #computing() {
    const { bars, bucketSeconds, cells, curve, firstLane } = this.data;
    const { begin, seconds } = curve;
    const sums = new Float64Array(curve.computing.length);
    const add = (start, stop, amount) => {
      const low = Math.max(0, Math.floor((start - begin) / seconds));
      const high = Math.min(sums.length - 1, Math.floor((stop - begin) / seconds));
      for (let i = low; i <= high; i++) {
        const inside = Math.min(stop, begin + (i + 1) * seconds) - Math.max(start, begin + i * seconds);
        if (inside > 0) sums[i] += amount * inside / seconds;
      }
    };
    for (const row of this.rows) {
      for (let lane = firstLane[row]; lane < firstLane[row + 1]; lane++) {
        for (let k = bars.first[lane]; k < bars.first[lane + 1]; k++) {
          const i = bars.order[k];
          if (this.isBarShown(i)) add(bars.starts[i], bars.starts[i] + bars.lengths[i], 1);
        }
        for (let i = cells.first[lane]; i < cells.first[lane + 1]; i++) {
          if (!this.isKindShown[cells.kinds[i]]) continue;
          // Cells do not record outcomes and files.
          if (this.areAttemptsFiltered) this.isComputingPartial = true;
          else add(cells.buckets[i] * bucketSeconds, (cells.buckets[i] + 1) * bucketSeconds, cells.shares[i]);
        }
      }
    }
    return sums;
  }
}
