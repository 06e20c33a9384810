// The view in the address of the page, so that a copied link shows the same one:
// "#timeline:from=1.5&to=3&dataset=2". Only what differs from the first view is written.

const PREFIX = "#timeline:";
const CHOICES = ["prefix", "dataset", "worker", "color", "file", "outcome", "status"];
const WAIT_MS = 300; // browsers limit how often the address may change

const readAddress = () => new URLSearchParams(location.hash.startsWith(PREFIX) ? location.hash.slice(PREFIX.length) : "");

/** Take the view of the address, but for the selection; return whether it has one. */
export function readView(timeline) {
  const { data, state, elements: { figure } } = timeline;
  const given = readAddress();
  if (!given.size) return false;
  for (const name of CHOICES) {
    // The choices of files, outcomes and states are those of the legend.
    const options = [...figure.querySelectorAll(`[data-choose="${name}"] option, [data-legend="${name}"]`)];
    const chosen = given.get(name) ?? timeline.firstView[name];
    if (options.some(({ value }) => value === chosen) || chosen === timeline.firstView[name]) state[name] = chosen;
  }
  state.failedOnly = given.get("failed") === "1";
  const [from, to] = ["from", "to"].map((name) => Number(given.get(name) ?? NaN));
  if (to > from) state.setRange(from, to);
  else state.setRange(0, data.seconds);
  return true;
}

/** Return the bar or mark that the address selects, as hitTest would; else null. */
export function readSelection({ data }) {
  for (const [name, { count }] of [["bar", data.bars], ["mark", data.marks]]) {
    const i = Number(readAddress().get(name) ?? NaN);
    if (Number.isInteger(i) && i >= 0 && i < count) return { [name]: i };
  }
  return null;
}

let waiting = 0;

/** Write the view into the address, soon. */
export function writeView(timeline) {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    const { state, firstView } = timeline;
    const view = new URLSearchParams(CHOICES.filter((name) => state[name] !== firstView[name]).map((name) => [name, state[name]]));
    if (state.failedOnly) view.set("failed", "1");
    if (state.isZoomed) for (const [name, seconds] of [["from", state.start], ["to", state.stop]]) view.set(name, seconds);
    for (const name of ["bar", "mark"]) if (state.selected?.[name] !== undefined) view.set(name, state.selected[name]);
    if (!view.size && !location.hash.startsWith(PREFIX)) return;
    // A page inside of another one, as in a notebook, may have no address of its own.
    try { history.replaceState(null, "", view.size ? `${PREFIX}${view}` : "#timeline"); } catch { /* no link */ }
  }, WAIT_MS);
}
