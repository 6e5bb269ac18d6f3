// The result: the top five labels, the detected objects, an alternative text, and the content filter.

import { showObjects } from "./objects.js";
import { find, focusOn, make, matchLabel, publish, quoted, setText, subscribe, updateList } from "./parts.js";
import { server } from "./server.js";
import { figure, shownConfidence, shownLabels } from "./steady.js";

let result = null;
/** Whether the image could not be classified. */
let hasFailed = false;
/** The labels of the content filter, stored for this tab so that they survive a reload. */
const filterLabels = new Set(JSON.parse(sessionStorage.getItem("filter") ?? "[]"));
/** The labels of the model; `null` until they are loaded. */
let modelLabels = null;
/** The version of the model that the page has loaded. */
let modelVersion;
let isDetector = false;
/** The content of the list of the top labels, so that the page changes it only if it differs. */
let listed = null;

/** Returns the labels of the filter that the model has; all of them until the model is loaded. */
const activeLabels = () => [...filterLabels].filter((label) => modelLabels?.has(label) ?? true);

/** Returns the best classification or object that the content filter blocks; `undefined` if the image passes. */
export function blockedPart(checked = result) {
  const threshold = Number(find("filter-threshold").value);
  // Several logos in one image share the confidence of the classifications, but not the confidences of the objects.
  return [...checked?.observations ?? [], ...checked?.objects ?? []].filter(({ label, confidence }) => filterLabels.has(label) && confidence >= threshold)
    .reduce((best, part) => (best && best.confidence >= part.confidence ? best : part), undefined);
}

function showTop() {
  const top = result?.observations.slice(0, 5) ?? [];
  // The objects of a detector have their own confidences; those of the whole image are not shown beside them.
  find("top-area").hidden = isDetector;
  const rows = top.map((item) => ({ label: item.label, number: figure(item), fraction: shownConfidence(item) }));
  if (listed === JSON.stringify(rows)) return;
  listed = JSON.stringify(rows);
  find("top").replaceChildren(...rows.map(({ label, number, fraction }) => {
    const bar = make("span", { className: "bar" });
    bar.style.setProperty("--fraction", fraction);
    return make("li", {},
      make("bdi", { className: "name", textContent: label }),
      make("span", { className: "number", textContent: number }), bar);
  }));
  if (!top.length) find("top").append(make("li", { className: "soft", textContent: "No results yet." }));
}

function showText() {
  const threshold = Number(find("alt-threshold").value);
  const confident = result ? shownLabels(result).filter((item) => shownConfidence(item) >= threshold) : [];
  const labels = confident.slice(0, 3).map(({ label }) => label), last = labels.pop();
  const text = !result ? "–" : result.rejected ? "The photo is unlike the training photos: none of the labels."
    : !last ? `No label reaches ${Math.round(threshold * 100)} %.`
      : `Photo that may show ${labels.length ? `${labels.join(", ")} and ${last}` : last}.`;
  // The clipboard has the previous text.
  if (text !== find("alt").textContent) setText("copied", "");
  find("alt").textContent = text;
  find("copy").disabled = !last || result.rejected;
}

/** Returns whether the content filter has labels of the model; if so, it must check photos before they are saved. */
export const isFilterActive = () => activeLabels().length > 0;

/**
 * Throws because another device has changed the model, which the page then loads. The property `loading` of the error is a promise that is
 * fulfilled after that. The error has no status: 409 would mean a copy of a photo.
 */
function rejectOutdated() {
  const request = {};
  publish("outdated", request);
  throw Object.assign(new Error("The model has changed. Try again."), request);
}

/** Classifies an image that the studio is about to keep. Throws if the studio uses another model than the page, or none. */
export async function classifyKept(image) {
  const checked = await server.classify(image).catch((error) => {
    if (error.status === 409) rejectOutdated();
    throw error;
  });
  if (checked.modelVersion !== modelVersion) rejectOutdated();
  return checked;
}

/** Checks an image that the studio is about to keep. Throws if the content filter blocks it or cannot check it. */
export async function checkFilter(image) {
  if (!filterLabels.size) return;
  if (modelLabels === null) throw new Error("The content filter cannot check the image before the model is loaded.");
  // The filter has only labels of other models, but perhaps of one that is in use by now.
  if (!isFilterActive()) {
    if ((await server.model()).version !== modelVersion) rejectOutdated();
    return;
  }
  const blocked = blockedPart(await classifyKept(image));
  if (blocked) throw new Error(`Blocked: the model detected ${quoted(blocked.label)}, so the studio does not keep the image.`);
}

/** The maximum number of models that `checkFile` waits for, so that it ends if the model changes all the time. */
const loadingLimit = 3;

/** Checks a file that the user adds, as `checkFilter` does. If the model has changed, it waits for the new one instead of rejecting the file. */
export async function checkFile(file) {
  for (let count = 0; ; count += 1) {
    try {
      return await checkFilter(file);
    } catch (error) {
      if (!error.loading || count === loadingLimit) throw error;
      await error.loading;
    }
  }
}

/** Returns whether the image is covered, because it is blocked or not yet classified. */
const isCovered = () => isFilterActive() && (!result || Boolean(blockedPart()));

function showFilter() {
  const blocked = blockedPart();
  find("picture").classList.toggle("covered", isCovered());
  find("curtain").hidden = !isCovered();
  find("curtain").textContent = blocked ? `Blocked: ${blocked.label} ${figure(blocked)}`
    : hasFailed ? "Could not be classified" : "Classifying …";
  const labels = activeLabels(), unknown = [...filterLabels].filter((label) => !labels.includes(label));
  const state = !labels.length ? `The content filter is off: it has no labels${filterLabels.size ? " of this model" : ""}.`
    : blocked ? `Blocked: the model detected ${quoted(blocked.label)}.`
      : result ? "The image passes the content filter."
        : hasFailed ? "The image is covered because it could not be classified."
          : "The image is covered until it is classified.";
  setText("filter-summary", labels.length === 0 ? "off" : labels.length === 1 ? "1 label" : `${labels.length} labels`);
  setText("filter-state", unknown.length ? `${state} Unknown to this model: ${unknown.map(quoted).join(", ")}.` : state);
  updateList(find("filter-labels"), [...filterLabels], filterItem);
}

/** Changes the labels of the content filter and stores them. */
function updateFilter(change) {
  change();
  sessionStorage.setItem("filter", JSON.stringify([...filterLabels]));
  show();
}

const filterItem = (label) => make("li", {},
  make("bdi", { textContent: label }),
  make("button", {
    textContent: "×", "aria-label": `Remove ${label} from the filter`,
    onclick: () => { updateFilter(() => filterLabels.delete(label)); focusOn(find("filter-label")); },
  }));

function show() {
  showTop();
  showText();
  showFilter();
  showObjects(result, isCovered());
}

// An area stays as the user leaves it; before that, the content filter is open only if it has labels.
for (const [id, isUsed] of [["alt-area", false], ["filter-area", filterLabels.size > 0]]) {
  const stored = sessionStorage.getItem(id);
  find(id).open = stored === null ? isUsed : stored === "open";
  find(`${id}-title`).addEventListener("click", () => sessionStorage.setItem(id, find(id).open ? "closed" : "open"));
}
for (const name of ["alt-threshold", "filter-threshold"]) {
  const slider = find(name), showValue = () => { find(`${name}-value`).textContent = `${Math.round(Number(slider.value) * 100)} %`; };
  slider.value = sessionStorage.getItem(name) ?? slider.value;
  showValue();
  slider.addEventListener("input", () => {
    sessionStorage.setItem(name, slider.value);
    showValue();
    show();
  });
}
find("filter-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = find("filter-label"), label = matchLabel(field.value, [...modelLabels ?? []], { ignoresCase: true });
  field.setCustomValidity(label !== undefined ? "" : "The model has no such label.");
  if (!field.reportValidity()) return;
  updateFilter(() => filterLabels.add(label));
  field.value = "";
});
find("filter-label").addEventListener("input", (event) => event.target.setCustomValidity(""));
find("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(find("alt").textContent);
    find("copied").textContent = "Copied.";
  } catch {
    find("copied").textContent = "The browser does not allow the page to copy; select the text.";
  }
});
subscribe("result", (next) => {
  [result, hasFailed] = [next, false];
  show();
});
subscribe("failed", () => {
  hasFailed = true;
  show();
});
subscribe("model", (model) => {
  find("labels").replaceChildren(...model.labels.map((label) => new Option(label, label)));
  modelLabels = new Set(model.labels);
  modelVersion = model.version;
  isDetector = model.objectLabels !== undefined;
  [result, hasFailed] = [null, false];
  show();
});
