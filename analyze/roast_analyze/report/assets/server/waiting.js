// The wait for a report.
import { startTheme } from "../page/theme.js";
import { renew } from "./answers.js";

const INTERVAL_MS = 250;
const id = document.getElementById("waiting").dataset.run;

function use({ stage, share, is_done: isDone, error, report }) {
  const bar = document.getElementById("share");
  if (share === null) bar.removeAttribute("value");
  else bar.value = share;
  document.getElementById("stage").textContent = stage;
  if (!isDone) return true;
  document.getElementById("waiting").removeAttribute("aria-busy");
  if (!error) location.replace(report);
  else {
    document.querySelector(".stage").hidden = true;
    document.querySelector(".when").textContent = "The report could not be written.";
    const trouble = document.getElementById("trouble");
    trouble.textContent = error;
    trouble.hidden = false;
  }
  return false;
}

startTheme();
renew(() => `report-${id}.json`, use, INTERVAL_MS);
