const MAX_CRUMBS = 6;

/** Show the path to the focus; its buttons zoom out to a caller. */
export function showBreadcrumbs(flame) {
  const { data, state, elements } = flame;
  const path = state.sandwich ? [state.center] : [0, ...state.focus];
  const hidden = path.length > MAX_CRUMBS ? path.length - MAX_CRUMBS + 1 : 0;
  const items = path.map((frame, depth) => {
    if (depth > 1 && depth <= hidden) return null;
    const item = document.createElement("li");
    if (hidden && depth === 1) {
      item.textContent = "…";
      return item;
    }
    const isLast = depth === path.length - 1;
    const name = document.createElement(isLast ? "span" : "button");
    name.textContent = data.names[frame];
    name.title = data.fullLabels[frame];
    if (isLast) {
      name.setAttribute("aria-current", "true");
    } else {
      name.type = "button";
      name.addEventListener("click", () => flame.zoom(state.focus.slice(0, depth)));
    }
    item.append(name);
    return item;
  });
  elements.crumbs.replaceChildren(...items.filter(Boolean));
}
