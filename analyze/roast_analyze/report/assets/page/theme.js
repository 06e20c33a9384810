// Light or dark colors: those of the system until the reader chooses.

const root = document.documentElement;
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const STORAGE_KEY = "roast-theme";

// Some browsers forbid storage to pages opened from a file.
function storedTheme() {
  try { return localStorage.getItem(STORAGE_KEY); } catch { return null; }
}
function storeTheme(theme) {
  try { localStorage.setItem(STORAGE_KEY, theme); } catch { /* the choice holds until the page is closed */ }
}

const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);

export const cssVariable = (name) => getComputedStyle(root).getPropertyValue(name).trim();

/** Restore the theme and connect its button. Figures redraw themselves on the event "roast-theme". */
export function startTheme() {
  const button = document.getElementById("theme");
  const apply = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colors`);
    document.dispatchEvent(new Event("roast-theme"));
  };
  if (["light", "dark"].includes(storedTheme())) root.dataset.theme = storedTheme();
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    storeTheme(root.dataset.theme);
    apply();
  });
  systemDark.addEventListener("change", apply);
  apply();
}
