// Scripts run: styles show the controls that need them.
document.documentElement.classList.add("scripted");
