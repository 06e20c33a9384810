// Wide tables and code scroll. The keyboard scrolls only what can have the focus.
for (const element of document.querySelectorAll(".table-wrapper, div.highlight > pre")) {
  element.tabIndex = 0;
}
// The theme has two complementary landmarks without names.
document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "Pages");
document.querySelector(".toc-drawer")?.setAttribute("aria-label", "Sections of this page");
