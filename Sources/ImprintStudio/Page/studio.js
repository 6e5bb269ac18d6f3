// Sets up the page: tabs and the initial state.

import "./results.js";
import "./gauge.js";
import "./messages.js";
import "./source.js";
import "./shutter.js";
import "./detector.js";
import "./logo.js";
import { openPhotos } from "./photos.js";
import { openBoxes } from "./boxes.js";
import { openHistory } from "./history.js";
import { delay, find, handleFailure, showMessage } from "./parts.js";
import { wasRestarted } from "./server.js";
import { openTraining } from "./training.js";

const tabs = [...document.querySelectorAll("[role=tab]")];

function select(tab) {
  for (const other of tabs) {
    other.setAttribute("aria-selected", String(other === tab));
    other.tabIndex = other === tab ? 0 : -1;
    find(other.getAttribute("aria-controls")).hidden = other !== tab;
  }
  document.body.dataset.panel = tab.getAttribute("aria-controls");
  sessionStorage.setItem("tab", tab.id);
}

for (const [index, tab] of tabs.entries()) {
  tab.addEventListener("click", () => select(tab));
  tab.addEventListener("keydown", (event) => {
    const next = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const target = tabs.at(next % tabs.length);
    select(target);
    target.focus();
  });
}

// A message belongs to the latest action: the next one clears it.
const controls = "button, a, label, input, select, .box, .thumbnail";
const isPassive = ({ key, ctrlKey, metaKey, altKey }) => ctrlKey || metaKey || altKey || ["Tab", "Shift", "Control", "Alt", "Meta"].includes(key);
for (const name of ["pointerdown", "keydown"]) {
  document.addEventListener(name, (event) => { if (event.target.closest?.(controls) && !isPassive(event)) showMessage(""); }, { capture: true });
}

openHistory();
openBoxes();
openPhotos();
let status;
for (let failures = 1; ; failures += 1) {
  try {
    status = await openTraining();
    if (failures > 1) showMessage("");
    break;
  } catch (error) {
    await delay(handleFailure(error, failures));
  }
}
// A page that is loaded during training shows it; a page that is loaded again shows the same tab.
const earlier = tabs.find(({ id }) => id === sessionStorage.getItem("tab"));
if (status.stage === "running") select(find(`tab-${status.panel}`));
else if (earlier) select(earlier);
else if (document.body.dataset.model === "none") select(find("tab-teach"));
// The page of a phone is encrypted, and that of the studio's own machine is not.
if (location.protocol === "https:") {
  document.getElementById("privacy").textContent = "Photos go only to the machine of the studio, over an encrypted connection.";
}
if (wasRestarted()) showMessage("The studio was restarted; this page now shows the model of the new studio.");
document.body.dataset.ready = "true";
