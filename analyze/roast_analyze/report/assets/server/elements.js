// Elements with text. Texts come from traces and are only ever set as text.
export function element(name, text = "", className = "") {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  if (className) made.className = className;
  return made;
}

export function progressBar(share) {
  const bar = element("progress");
  bar.value = share;
  bar.setAttribute("aria-label", "finished");
  return bar;
}
