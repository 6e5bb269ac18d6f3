// Training: hold a button to collect examples of a class, train on them, and follow the training curves.

import { Addition } from "./addition.js";
import { readExamples, saveExamples } from "./archive.js";
import { onAccept, onChoice, showChoice, showComparison, showOffer } from "./base.js";
import { cardOf, showCards } from "./cards.js";
import { showCurves } from "./curves.js";
import { thumbnailOf } from "./examples.js";
import { attempt, delay, find, focusOn, handleFailure, isFocusLost, matchLabel, publish, quoted, setText, showMessage, subscribe } from "./parts.js";
import { checkFilter } from "./results.js";
import { server } from "./server.js";
import { currentImage, isLive } from "./source.js";

/** The time between examples while a button is held, in milliseconds. */
const interval = 200;

/** The current press of a class button. */
let currentPress = null;
/** The collected examples, as the studio reports them. */
let examples = { version: -1, classes: [], shortage: undefined };
let stage = "none";
let model = null;

/** Notifies the other tabs of this studio of changes. */
const tabs = new BroadcastChannel("imprint-studio");
export const notifyTabs = () => tabs.postMessage("taught");

/**
 * Returns the classes, with empty ones up to two if a new model is trained: the studio gets such a class with its first example
 * or when it is renamed.
 */
function shownClasses() {
  const classes = [...examples.classes];
  if (!model || model.personalizes) return classes;
  for (let number = classes.length + 1; classes.length < 2; number = classes.length + 1) {
    const label = [number, 1, 2].map((one) => `Class ${one}`).find((name) => !classes.some((other) => other.label === name));
    classes.push({ label, count: 0, ids: [], isPlaceholder: true });
  }
  return classes;
}

/** Adds a shown class to the studio, unless it has it, and the shown classes before it, so that their order stays. */
async function addShown(label) {
  const classes = shownClasses(), index = classes.findIndex((one) => one.label === label);
  for (const one of classes.slice(0, index + 1)) if (one.isPlaceholder) show(await server.addClass(one.label));
}

async function collect(label) {
  if (currentPress !== null) return;
  // A new object per press, because an earlier, released press may still wait for its next example.
  const press = currentPress = { label };
  find("classes").dataset.collecting = label;
  cardOf(label)?.classList.add("collecting");
  let isAdded;
  // A tap, and a photo instead of the camera, add one example.
  do {
    const start = performance.now();
    isAdded = await attempt(async () => {
      const source = isLive() ? "camera" : "file", image = await currentImage();
      if (!image) throw new Error("There is no image: start the camera or choose a photo.");
      await checkFilter(image);
      await addShown(label);
      show(await server.addExample(label, image, source));
      return true;
    });
    if (!isAdded || !isLive()) break;
    await delay(Math.max(0, interval - (performance.now() - start)));
  } while (currentPress === press);
  if (currentPress === press) release(label);
  if (isAdded) showMessage(`${quoted(label)}: ${countOf(label)}.`);
  notifyTabs();
}

/** Adds photos as examples of a class. */
async function addFiles(label, files) {
  const addition = new Addition(files.length, show);
  await addShown(label);
  await addition.add(label, files);
  showMessage(addition.text(label));
  notifyTabs();
}

/** Adds the examples in a ZIP file, and their classes. */
async function openExamples(archive) {
  const { classes, ignored } = await readExamples(archive, examples);
  const addition = new Addition([...classes.values()].flat().length, show);
  for (const [name, photos] of classes) {
    const label = matchLabel(name, model?.labels ?? []) ?? name;
    await addition.addClass(label, photos);
  }
  showMessage(addition.text(archive.name, ignored));
  notifyTabs();
}

/** Ends the press of a class button, but not a new press on another button. */
function release(label) {
  if (currentPress?.label !== label) return;
  currentPress = null;
  cardOf(label)?.classList.remove("collecting");
  delete find("classes").dataset.collecting;
}

function countOf(label) {
  const count = examples.classes.find((one) => one.label === label)?.count ?? 0;
  return count === 1 ? "1 example" : `${count} examples`;
}

/** Changes the classes or examples, and shows the result in all tabs. */
async function change(request) {
  show(await request());
  notifyTabs();
}

/** Gives a shown class another name. */
async function rename(label, text) {
  const name = matchLabel(text, model?.labels ?? []) ?? text.trim(), classes = shownClasses();
  const index = classes.findIndex((one) => one.label === label);
  if (!classes[index]?.isPlaceholder) return change(() => server.renameClass(label, name));
  if (index > 0) await addShown(classes[index - 1].label);
  await change(() => server.addClass(name));
}

/** Undoes the latest deletion or move, and moves the focus to what is back. */
async function undo() {
  const before = new Map(examples.classes.flatMap(({ label, ids }) => ids.map((id) => [id, label])));
  const labels = examples.classes.map(({ label }) => label);
  try {
    await change(() => server.undo());
  } catch (error) {
    // The studio has forgotten the removed examples.
    examples = await server.examples();
    show();
    throw error;
  }
  const added = examples.classes.find(({ label }) => !labels.includes(label));
  const [id] = examples.classes.flatMap(({ label, ids }) => ids.filter((one) => before.get(one) !== label));
  showMessage("Undone.");
  focusOn(added || id === undefined ? cardOf((added ?? examples.classes[0])?.label)?.querySelector(".hold") : thumbnailOf(id));
}

const actions = {
  addFiles, collect, release,
  isIdle: () => currentPress === null,
  show: () => show(),
  removeExample: (id) => change(() => server.removeExample(id)),
  moveExample: async (id, label) => {
    await addShown(label);
    await change(() => server.moveExample(id, label));
  },
  removeClass: (label) => attempt(async () => {
    await change(() => server.removeClass(label));
    focusOn(find("class-name"));
  }),
  rename: (label, text, keepsFocus) => attempt(async () => {
    const index = shownClasses().findIndex((one) => one.label === label);
    await rename(label, text);
    if (keepsFocus) focusOn(find("classes").children[index]?.querySelector(".rename"));
  }),
};

/** Shows what is missing before training can start. */
function shortageText(classes) {
  if (classes.some(({ isPlaceholder }) => isPlaceholder)) {
    return `Each class needs at least ${examples.minimumCount} examples. ${examples.recommendedCount} from several sides are better.`;
  }
  return examples.shortage ?? "There are enough examples for training.";
}

function show(next = examples) {
  // Responses can arrive in another order than the changes.
  if (next.version < examples.version) return;
  examples = next;
  const classes = shownClasses(), isRunning = stage === "running";
  showCards(classes, next.recommendedCount, actions);
  find("undo-area").hidden = next.undo === undefined || isRunning;
  setText("undo-text", next.undo ?? "");
  const megabytes = (next.byteCount / 2 ** 20).toFixed(1);
  find("room").textContent =
    `Examples use ${megabytes} of ${next.byteLimit / 2 ** 20} MB of memory, and are deleted when the studio ends. Save them to open them again later.`;
  find("examples-save").disabled = !next.classes.some(({ count }) => count > 0);
  find("shortage").textContent = isRunning ? "" : shortageText(classes);
  find("start").disabled = isRunning || next.shortage !== undefined;
  find("start").hidden = isRunning;
  find("stop").hidden = !isRunning;
  find("revert").hidden = find("learned").hidden = isRunning || model?.learned === undefined;
  showOffer(model?.offer, isRunning);
  showChoice(model, isRunning);
}

function introduction(model) {
  if (!model.personalizes) {
    const base = model.usesBuiltInBase ? "of Imprint" : model.base;
    const start = base === undefined ? "" : ` Training starts from the base model ${base}.`;
    return `Name two or more classes, collect examples of each, and train your own model.${start}`;
  }
  if (model.learnsNewLabels) {
    const shown = model.labels.slice(0, 6), rest = model.labels.length - shown.length;
    const names = shown.map(quoted).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
    return `Personalize the model with a few examples of its labels (${names}) or of new labels. Training takes about a second.`;
  }
  return `The model is a detector. Collect examples of its labels: ${model.labels.map(quoted).join(", ")}. It learns new labels from artwork or boxes: `
    + "train a new detector in the panel Boxes, or personalize the model outside of the studio with artwork or photos with boxes.";
}

/** Shows the name of the model in use. */
function showName() {
  const isPersonalized = model?.learned === "personalization" && !model.isMatching;
  const start = stage === "running" ? "No model yet: training is running" : "No model yet";
  if (model) setText("model", model.name === undefined ? start : model.name + (isPersonalized ? ", personalized" : ""));
}

/** Fetches the model in use, and notifies all parts of the page. */
export async function refreshModel() {
  model = await server.model();
  document.body.dataset.model = model.name === undefined ? "none" : "some";
  showName();
  find("start").textContent = model.personalizes ? "Personalize" : "Train a model";
  find("learned").download = find("detector-file").download = model.learnedFile;
  find("teach-intro").textContent = introduction(model);
  show();
  publish("model", model);
}

/** The request for a new model, if one is running. */
let refresh = null;
subscribe("outdated", (request) => {
  refresh ??= attempt(refreshModel).finally(() => { refresh = null; });
  // Some publishers do not wait for the model.
  if (request) request.loading = refresh;
});

/** The elements with the message of a run, in all panels that train. */
const statusIDs = ["training-status", "detector-status", "logo-status", "photos-status"];

/** Shows the stage, the curves and the progress of a training run, except its message. */
function showStatus(status) {
  // Each kind of training has a panel of its own.
  const isOwn = status.panel === "teach";
  for (const id of statusIDs) find(id).dataset.stage = stage;
  showCurves(find("curves"), isOwn ? status.points : []);
  showCurves(find("detector-curves"), status.panel === "annotate" ? status.points : [], "on the training images");
  showComparison(status.comparison);
  // Curves show the progress of training; the progress of a download or a comparison is not known.
  find("progress").hidden = stage !== "running" || (status.points.length > 1 && isOwn);
  find("detector-progress").hidden = stage !== "running";
  for (const id of ["progress", "detector-progress"]) {
    if (status.fraction === undefined) find(id).removeAttribute("value");
    else find(id).value = status.fraction;
  }
  publish("training", status);
  showName();
  show();
}

/** Returns a function of a status that estimates the remaining time of its run, as the end of a sentence: ", about 3 min left". */
function makeEstimate() {
  let first = null, end = Infinity;
  return ({ fraction, stage: current }) => {
    if (fraction === undefined || current !== "running") return "";
    const now = performance.now();
    first ??= { fraction, time: now };
    const progress = fraction - first.fraction, elapsed = (now - first.time) / 1000;
    // Earlier estimates vary too much.
    if (elapsed < 10 || progress < 0.02) return "";
    const left = elapsed * (1 - fraction) / progress, expected = end - now / 1000;
    // Small variations must not count upwards.
    if (left < expected || left > 1.5 * expected) end = now / 1000 + left;
    const minutes = (end - now / 1000) / 60;
    return minutes < 1 ? ", less than a minute left" : `, about ${Math.round(minutes)} min left`;
  };
}

/** Follows a training run to its end. */
async function follow(status) {
  const estimate = makeEstimate();
  // Training ends the time in which removed examples can come back.
  if (status.stage === "running") delete examples.undo;
  let announced = -Infinity, failures = 0, timer = 0;
  const announce = () => {
    for (const id of statusIDs) setText(id, status.message + estimate(status));
    announced = performance.now();
  };
  for (;;) {
    // Screen readers announce progress once a second, and changes of the stage immediately. The next status may take long.
    const rest = announced + 1000 - performance.now();
    clearTimeout(timer);
    if (status.stage !== stage || rest <= 0) announce();
    else timer = setTimeout(announce, rest);
    ({ stage } = status);
    showStatus(status);
    if (stage !== "running") break;
    try {
      status = await server.trainingStatus(status.version);
      if (failures) showMessage("");
      failures = 0;
    } catch (error) {
      failures += 1;
      await delay(handleFailure(error, failures));
    }
  }
  await attempt(refreshModel);
}

find("class-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = find("class-name"), label = matchLabel(field.value, model?.labels ?? []) ?? field.value.trim();
  if (!label) return focusOn(field);
  attempt(async () => {
    show(await server.addClass(label));
    notifyTabs();
    field.value = "";
    cardOf(label)?.querySelector(".hold").focus();
  });
});

/**
 * Starts a training run and follows it to its end. The focus moves to the button that stops it and, at the end, to the first possible one of
 * other elements, unless the user has moved the focus meanwhile.
 */
export async function followRun(start, stopButton, ...nextElements) {
  const status = await start();
  notifyTabs();
  const end = follow(status);
  focusOn(find(stopButton));
  await end;
  if (isFocusLost()) focusOn(nextElements.map(find).find((element) => element.checkVisibility() && !element.disabled));
}

find("start").addEventListener("click", () => attempt(() => followRun(() => server.startTraining(), "stop", "start")));
// After a failure, the offer is shown again.
onAccept((name) => attempt(() => followRun(() => server.installBaseModel(name), "stop", "base-open", "start", "class-name")));
onChoice((base) => attempt(async () => {
  try {
    await server.chooseBase(base);
    notifyTabs();
  } finally {
    await refreshModel();
  }
}));
find("examples-save").addEventListener("click", () => attempt(async () => {
  showMessage("Saving the examples …");
  showMessage(await saveExamples());
}));
find("examples-file").addEventListener("change", ({ target }) => {
  const [archive] = target.files;
  // The same file can be chosen again.
  target.value = "";
  if (archive) attempt(() => openExamples(archive));
});
// A card would take the ZIP file as a photo, so the panel takes it first.
find("teach").addEventListener("drop", (event) => {
  const { files } = event.dataTransfer;
  if (files.length !== 1 || !/\.zip$/iu.test(files[0].name)) return;
  event.preventDefault();
  event.stopPropagation();
  document.body.classList.remove("dropping");
  find("classes").querySelector(".target")?.classList.remove("target");
  attempt(() => openExamples(files[0]));
}, { capture: true });
find("stop").addEventListener("click", () => attempt(() => server.stopTraining()));
find("undo").addEventListener("click", () => attempt(undo));
find("teach").addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.shiftKey || event.key !== "z" || event.target.matches("input") || find("undo-area").hidden) return;
  event.preventDefault();
  attempt(undo);
});
/** Deletes the trained model after a confirmation, and returns whether it is deleted. */
export async function revert() {
  if (!confirm("Undo training? This deletes the new model, and also those of earlier training. Download it first to keep it.")) return false;
  await server.revert();
  notifyTabs();
  stage = "none";
  showStatus({ stage, points: [], panel: "teach" });
  await refreshModel();
  for (const id of statusIDs) setText(id, model.name === undefined ? "The new model is deleted." : "The original model is in use again.");
  focusOn(["class-name", "detector-start", "detector-length", "logo-start", "logo-files", "photos-start", "photos-folder"].map(find).find((element) => element.checkVisibility() && !element.disabled));
  return true;
}

find("revert").addEventListener("click", () => attempt(revert));
addEventListener("blur", () => release(currentPress?.label));

// A run that the page follows already shows its own status.
tabs.addEventListener("message", () => attempt(stage === "running" ? async () => show(await server.examples()) : openTraining));

/** Shows the current state, including a training run that was already running when the page was loaded, and returns its status. */
export async function openTraining() {
  examples = await server.examples();
  await refreshModel();
  const status = await server.trainingStatus(-1);
  // The page is ready before a run ends, which may take long.
  if (status.stage === "running") follow(status);
  else if (status.stage !== "none") await follow(status);
  else {
    ({ stage } = status);
    for (const id of statusIDs) setText(id, "");
    showStatus(status);
  }
  return status;
}
