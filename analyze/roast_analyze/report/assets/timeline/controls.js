/** Connect the selects, the legend and the buttons of the figure to a timeline. */
export function attachControls(timeline) {
  const { state, elements: { figure, scroller } } = timeline;
  const selects = [...figure.querySelectorAll("[data-choose]")];
  const legend = [...figure.querySelectorAll("[data-legend]")];
  const failed = figure.querySelector('[data-toggle="failed"]');

  /** Show the legend of the colors, which are those of prefixes, datasets or what else is chosen. */
  function markLegend() {
    for (const button of legend) {
      const { value, dataset: { legend: name } } = button;
      button.parentElement.hidden = name !== state.color;
      button.setAttribute("aria-pressed", String(state[name] === value));
    }
  }
  function apply() {
    timeline.showControls();
    timeline.select(null);
    timeline.update();
  }
  // A browser that returns to a page restores earlier choices before scripts run.
  for (const select of selects) state[select.dataset.choose] = select.value;
  timeline.showControls = () => {
    for (const select of selects) select.value = state[select.dataset.choose];
    failed?.setAttribute("aria-pressed", String(state.failedOnly));
    markLegend();
  };
  for (const select of selects) {
    const name = select.dataset.choose;
    select.addEventListener("change", () => {
      state[name] = select.value;
      if (name === "worker") scroller.scrollTop = 0;
      // These are only chosen in the legend, which now shows something else.
      if (name === "color") state.file = state.outcome = state.status = "all";
      apply();
    });
  }
  for (const button of legend) {
    button.addEventListener("click", () => {
      const { value, dataset: { legend: name } } = button;
      state[name] = state[name] === value ? "all" : value;
      apply();
    });
  }
  failed?.addEventListener("click", () => {
    state.failedOnly = !state.failedOnly;
    timeline.showControls();
    timeline.update();
  });
  const actions = { in: () => timeline.zoom(0.5), out: () => timeline.zoom(2), all: () => timeline.showAll() };
  for (const button of figure.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", actions[button.dataset.zoom]);
  }
  timeline.showControls();
}
