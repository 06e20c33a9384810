/** Connect the selects, the search field and the buttons of the figure to a flame graph. */
export function attachControls(flame) {
  const { state, elements: { figure, input, prefixSelect } } = flame;
  for (const select of figure.querySelectorAll("[data-choose]")) {
    const name = select.dataset.choose;
    // A browser that returns to a page restores earlier choices before scripts run.
    if (select.options.length) state[name] = select.value;
    select.addEventListener("change", () => {
      state[name] = select.value;
      prefixSelect.disabled = state.worker === "scheduler" || state.isYappi;
      flame.update();
    });
  }
  for (const button of figure.querySelectorAll("[data-toggle]")) {
    const name = button.dataset.toggle;
    button.addEventListener("click", () => {
      state[name] = !state[name];
      button.setAttribute("aria-pressed", String(state[name]));
      if (name === "regex") flame.search();
      else if (name === "heavy") flame.update();
      else if (name === "sandwich") flame.toggleSandwich();
      else flame.reset();
    });
  }
  input.addEventListener("input", () => flame.search());
}
