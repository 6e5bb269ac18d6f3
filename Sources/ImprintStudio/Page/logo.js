// Find my logo: artwork, composites, matching without training, and training a detector from the artwork.

import { showCurves } from "./curves.js";
import { artworkIn, droppedFiles } from "./files.js";
import { attempt, find, focusOn, make, publish, quoted, setText, subscribe, updateList } from "./parts.js";
import { server } from "./server.js";
import { followRun, notifyTabs, refreshModel, revert } from "./training.js";
import { tryPhotos } from "./trials.js";

/** The artwork, as the studio reports it. */
let artwork = [];
let status = { stage: "none", points: [] };
let model = null;
/** The random seed of the composites. */
let seed = 1;
/** The preparation of matching, if it is running. */
let preparation = null;
/** Whether the artwork has changed since the latest preparation has begun. */
let hasNewArtwork = false;
/** Whether the studio prepares to match the artwork. */
let isPreparing = false;
/** The reason why the artwork cannot be matched, or an empty text. */
let matchError = "";
/** The photos that were searched last; a new model searches them again. */
let searched = [];

/** Returns the labels of the artwork in quotation marks, without repetitions. */
const labels = () => [...new Set(artwork.map(({ label }) => label))].map(quoted).join(", ");

function artworkItem({ id, name, notes }) {
  const field = make("input", { maxLength: 100, autocomplete: "off", "aria-label": `Label of ${name}`, onchange: () => rename(id, field) });
  return make("li", {},
    make("img", { src: `artwork?id=${id}`, alt: `Cut-out of ${name}` }),
    make("div", { className: "about" },
      make("div", { className: "row" }, field,
        make("button", { className: "quiet", textContent: "Delete", "aria-label": `Delete the artwork ${name}`, onclick: () => remove(id) })),
      make("span", { className: "soft small", textContent: name }),
      ...notes.map((note) => make("p", { className: "note small" }, make("b", { textContent: "Warning: " }), note))));
}

function showArtwork() {
  updateList(find("logo-list"), artwork, artworkItem, ({ id }) => id);
  for (const [index, { label }] of artwork.entries()) {
    const field = find("logo-list").children[index].querySelector("input");
    if (field !== document.activeElement) field.value = label;
  }
  find("logo-steps").hidden = find("logo-match-area").hidden = !artwork.length;
  showComposites();
}

function showComposites() {
  const image = find("logo-sheet");
  if (!artwork.length) return image.removeAttribute("src");
  // The address changes with the artwork, so the browser loads new composites.
  const source = `composites?seed=${seed}&artwork=${encodeURIComponent(artwork.map(({ id, label }) => `${id}:${label}`).join())}`;
  if (image.getAttribute("src") === source) return;
  image.setAttribute("aria-busy", "true");
  image.src = source;
}

/** Returns the state of matching, as a sentence. */
function matchText() {
  if (isPreparing) return "Preparing to match the artwork …";
  if (matchError) return matchError;
  if (model?.isMatching) return `Choose photos: matching searches them for ${labels()}, without training. A trained detector is faster and usually more accurate.`;
  return model?.name === undefined ? "" : "The model in use searches the photos. Matching would replace it.";
}

function show() {
  const isRunning = status.stage === "running", isOwn = status.panel === "logo";
  setText("logo-match-text", matchText());
  find("logo-match").hidden = !artwork.length || model?.isMatching === true;
  find("logo-match").disabled = isPreparing;
  find("logo-unmatch").hidden = !model?.isMatching;
  find("logo-start").hidden = isRunning;
  find("logo-start").disabled = !artwork.length;
  find("logo-length").disabled = isRunning;
  find("logo-stop").hidden = !isRunning;
  find("logo-keep").hidden = !isRunning || !status.canKeepBest;
  find("logo-progress").hidden = !isRunning;
  if (status.fraction === undefined) find("logo-progress").removeAttribute("value");
  else find("logo-progress").value = status.fraction;
  showCurves(find("logo-curves"), isOwn ? status.points : [], "on the training images");
  const hasDetector = !isRunning && model?.learned === "detector";
  find("logo-file").hidden = find("logo-revert").hidden = !hasDetector;
  find("logo-file").download = model?.learnedFile ?? "";
  // A loaded page keeps the controls of a run, even after its artwork was deleted.
  find("logo-run").hidden = !artwork.length && !hasDetector && !(isRunning && isOwn);
  find("logo-try").hidden = model?.objectLabels === undefined;
}

/** Matches the artwork if no model is in use. */
async function matchIfUnused() {
  if (model?.name === undefined) await match();
}

/** Uses matching of the latest artwork instead of the model in use, or the model again if there is no artwork. */
function match() {
  hasNewArtwork = true;
  preparation ??= prepare().finally(() => { preparation = null; });
  return preparation;
}

/** Prepares the artwork, and again if it has changed meanwhile. */
async function prepare() {
  while (hasNewArtwork) {
    [hasNewArtwork, isPreparing, matchError] = [false, artwork.length > 0, ""];
    show();
    try {
      await (artwork.length ? server.startMatching() : server.stopMatching());
    } catch (error) {
      matchError = error.message;
    }
    isPreparing = false;
    notifyTabs();
    await refreshModel();
  }
}

/** Searches the chosen photos with the model in use, if it finds objects. */
const search = () => tryPhotos(model?.objectLabels === undefined ? [] : searched, find("logo-results"), "logo-trial-state");

/** Returns the label of a file without a typed label: its name without the extension. */
const labelOf = ({ name }) => name.replace(/\.[^.]*$/u, "").replaceAll("_", " ").trim().slice(0, 100) || "Logo";

async function add(files) {
  if (!files.length) return;
  const label = find("logo-label").value.trim(), errors = [];
  let count = 0;
  for (const [index, file] of files.entries()) {
    setText("logo-state", `Reading ${index + 1} of ${files.length} …`);
    try {
      publish("artwork", await server.addArtwork(label || labelOf(file), file));
      count += 1;
    } catch (error) {
      errors.push(error.message.toLowerCase().includes(file.name.toLowerCase()) ? error.message : `${file.name}: ${error.message}`);
    }
  }
  setText("logo-state", [count ? `Added ${count === 1 ? "1 image" : `${count} images`} of artwork.` : "", ...errors].join(" ").trim());
  if (count) await matchIfUnused();
}

async function rename(id, field) {
  const old = artwork.find((one) => one.id === id)?.label, label = field.value.trim();
  if (label === old) return;
  try {
    publish("artwork", await server.renameArtwork(id, label));
    setText("logo-state", `Renamed ${quoted(old)} to ${quoted(label)}.`);
  } catch (error) {
    field.value = old ?? "";
    return setText("logo-state", error.message);
  }
  await matchIfUnused();
}

async function remove(id) {
  await attempt(async () => publish("artwork", await server.removeArtwork(id)));
  setText("logo-state", "Deleted the artwork.");
  focusOn(find("logo-files"));
}

find("logo-files").addEventListener("change", (event) => {
  const files = [...event.target.files];
  event.target.value = "";
  attempt(() => add(files));
});
find("logo").addEventListener("drop", (event) => {
  // Elsewhere, a dropped image replaces the camera.
  event.preventDefault();
  event.stopPropagation();
  document.body.classList.remove("dropping");
  attempt(async () => add(await droppedFiles(event.dataTransfer, artworkIn)));
});
find("logo-other").addEventListener("click", () => {
  seed += 1;
  showComposites();
});
for (const name of ["load", "error"]) {
  find("logo-sheet").addEventListener(name, () => find("logo-sheet").removeAttribute("aria-busy"));
}
find("logo-match").addEventListener("click", () => attempt(async () => {
  await match();
  focusOn([find("logo-unmatch"), find("logo-match")].find((element) => element.checkVisibility()));
}));
find("logo-unmatch").addEventListener("click", () => attempt(async () => {
  matchError = "";
  await server.stopMatching();
  notifyTabs();
  await refreshModel();
  focusOn(find("logo-match"));
}));
find("logo-start").addEventListener("click", () => attempt(
  () => followRun(() => server.startDetector(find("logo-length").value, "artwork"), "logo-stop", "logo-start")));
find("logo-stop").addEventListener("click", () => attempt(() => server.stopTraining()));
find("logo-keep").addEventListener("click", () => attempt(async () => {
  await server.stopTraining("best");
  focusOn(find("logo-stop"));
}));
find("logo-revert").addEventListener("click", () => attempt(async () => {
  if (await revert() && artwork.length) await matchIfUnused();
}));
find("logo-trials").addEventListener("change", (event) => {
  const files = [...event.target.files];
  event.target.value = "";
  searched = files;
  attempt(search);
});
// This panel or the panel Boxes has changed the artwork, and `boxes.js` has already published it.
subscribe("artwork", () => { if (preparation || model?.isMatching) attempt(match); });
subscribe("boxes", (next) => {
  const isChanged = JSON.stringify(artwork) !== JSON.stringify(next.artwork);
  ({ artwork } = next);
  if (isChanged) matchError = "";
  showArtwork();
  show();
});
subscribe("model", (next) => {
  // The results come from another model.
  const isOutdated = model && searched.length > 0 && model.version !== next.version;
  model = next;
  show();
  if (!isOutdated) return;
  find("logo-results").replaceChildren();
  attempt(search);
});
subscribe("training", (next) => {
  status = next;
  show();
});
