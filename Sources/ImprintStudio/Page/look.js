// The classification result: the top five labels, an alternative text, the bounding box, and the content filter.

import { asTyped, fill, find, focusOn, hear, make, percent, quoted, write } from "./parts.js";

let sight = null;
/** Whether the picture could not be classified. */
let hasFailed = false;
/** The labels of the content filter, stored for this tab so that they survive a reload. */
const gated = new Set(JSON.parse(sessionStorage.getItem("gate") ?? "[]"));
/** The labels of the model; `null` until there is an answer. */
let known = null;

/** The labels of the filter that the model has; all of them while the model is unknown. */
const active = () => [...gated].filter((label) => known?.has(label) ?? true);

/** The filtered label with the highest confidence at or above the threshold; `undefined` if the picture passes. */
export function held(observations = sight?.observations ?? []) {
  const least = Number(find("gate-threshold").value);
  return observations.find((seen) => gated.has(seen.label) && seen.confidence >= least);
}

function showTop() {
  const top = sight?.observations.slice(0, 5) ?? [];
  find("top").replaceChildren(...top.map((seen) => {
    const bar = make("span", { className: "bar" });
    bar.style.setProperty("--share", seen.confidence);
    return make("li", {},
      make("bdi", { className: "name", textContent: seen.label }),
      make("span", { className: "number", textContent: percent(seen.confidence) }), bar);
  }));
  if (!top.length) find("top").append(make("li", { className: "soft", textContent: "No results yet." }));
}

function showText() {
  const least = Number(find("alt-threshold").value);
  const sure = sight?.observations.filter((seen) => seen.confidence >= least).slice(0, 3).map((seen) => seen.label) ?? [];
  const last = sure.pop();
  find("alt").textContent = !sight ? "–" : !last ? `No label with a confidence of at least ${Math.round(least * 100)} %.`
    : `Picture that may show ${sure.length ? `${sure.join(", ")} and ${last}` : last}.`;
  find("copy").disabled = !last;
}

function showBox() {
  const box = sight?.observations[0]?.box;
  find("box").toggleAttribute("hidden", !box || isCovered());
  if (!box) return;
  for (const name of ["x", "y", "width", "height"]) find("box").firstElementChild.setAttribute(name, box[name]);
  // The box covers only the picture, which may be smaller than its container.
  const shown = ["video", "photo"].map(find).find((element) => !element.hidden);
  const width = shown?.videoWidth || shown?.naturalWidth || 4, height = shown?.videoHeight || shown?.naturalHeight || 3;
  find("box").style.aspectRatio = `${width} / ${height}`;
  find("box").classList.toggle("wide", width / height > 4 / 3);
}

/** Whether pictures may be saved only after a check by the content filter. */
export const isGated = () => active().length > 0;

/** Whether the picture is covered, which includes the time before its classification. */
const isCovered = () => isGated() && (!sight || Boolean(held()));

function showGate() {
  const seen = held();
  find("picture").classList.toggle("held", isCovered());
  find("curtain").hidden = !isCovered();
  find("curtain").textContent = seen ? `Blocked: ${seen.label} ${percent(seen.confidence)}`
    : hasFailed ? "Could not be classified" : "Classifying …";
  const labels = active(), foreign = [...gated].filter((label) => !labels.includes(label));
  const state = !labels.length ? `The content filter is off: it has no labels${gated.size ? " of this model" : ""}.`
    : seen ? `Blocked: the model detected ${quoted(seen.label)}.`
      : sight ? "The picture passes the content filter."
        : hasFailed ? "The picture is covered because it could not be classified."
          : "The picture is covered until it is classified.";
  write("gate-state", foreign.length ? `${state} Unknown to this model: ${foreign.map(quoted).join(", ")}.` : state);
  fill(find("gated"), [...gated], chip);
}

/** Changes the labels of the content filter and stores them. */
function regate(change) {
  change();
  sessionStorage.setItem("gate", JSON.stringify([...gated]));
  show();
}

const chip = (label) => make("li", {},
  make("bdi", { textContent: label }),
  make("button", {
    textContent: "×", "aria-label": `Remove ${label} from the filter`,
    onclick: () => { regate(() => gated.delete(label)); focusOn(find("gate-label")); },
  }));

function show() {
  showTop();
  showText();
  showGate();
  showBox();
}

for (const name of ["alt-threshold", "gate-threshold"]) {
  const slider = find(name), showValue = () => { find(`${name}-value`).textContent = `${Math.round(Number(slider.value) * 100)} %`; };
  slider.value = sessionStorage.getItem(name) ?? slider.value;
  showValue();
  slider.addEventListener("input", () => {
    sessionStorage.setItem(name, slider.value);
    showValue();
    show();
  });
}
find("gate-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = find("gate-label"), label = asTyped(field.value, [...known ?? []]);
  field.setCustomValidity(label !== undefined ? "" : "The model has no such label.");
  if (!field.reportValidity()) return;
  regate(() => gated.add(label));
  field.value = "";
});
find("gate-label").addEventListener("input", (event) => event.target.setCustomValidity(""));
find("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(find("alt").textContent);
    find("copied").textContent = "Copied.";
  } catch {
    find("copied").textContent = "The browser does not allow the page to copy; select the text.";
  }
});
hear("seen", (next) => {
  [sight, hasFailed] = [next, false];
  show();
});
hear("failed", () => {
  hasFailed = true;
  show();
});
hear("model", (model) => {
  find("labels").replaceChildren(...model.labels.map((label) => new Option(label, label)));
  known = new Set(model.labels);
  [sight, hasFailed] = [null, false];
  show();
});
