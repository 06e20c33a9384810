/** Connect the selects, the legend and the buttons of the figure to a timeline. */
export function attachControls(timeline) {
  const { state, elements: { figure, scroller } } = timeline;
  const selects = [...figure.querySelectorAll("[data-choose]")];
  const legend = [...figure.querySelectorAll("[data-legend]")];

  /** Show the legend of the colors, which are those of prefixes or of datasets. */
  function markLegend() {
    for (const button of legend) {
      const { value, dataset: { legend: name } } = button;
      button.parentElement.hidden = name !== state.color;
      button.setAttribute("aria-pressed", String(state[name] === value));
    }
  }
  function apply() {
    markLegend();
    timeline.select(null);
    timeline.update();
  }
  for (const select of selects) {
    const name = select.dataset.choose;
    // A browser that returns to a page restores earlier choices before scripts run.
    state[name] = select.value;
    select.addEventListener("change", () => {
      state[name] = select.value;
      if (name === "worker") scroller.scrollTop = 0;
      apply();
    });
  }
  for (const button of legend) {
    button.addEventListener("click", () => {
      const { value, dataset: { legend: name } } = button;
      state[name] = state[name] === value ? "all" : value;
      const select = selects.find((one) => one.dataset.choose === name);
      if (select) select.value = state[name];
      apply();
    });
  }
  figure.querySelector('[data-toggle="failed"]')?.addEventListener("click", (event) => {
    state.failedOnly = !state.failedOnly;
    event.currentTarget.setAttribute("aria-pressed", String(state.failedOnly));
    timeline.update();
  });
  const actions = { in: () => timeline.zoom(0.5), out: () => timeline.zoom(2), all: () => timeline.showAll() };
  for (const button of figure.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", actions[button.dataset.zoom]);
  }
  markLegend();
}
