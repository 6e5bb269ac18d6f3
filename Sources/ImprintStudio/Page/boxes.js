// Photos with boxes: adds photos, edits and stores their boxes.

import { editor } from "./editor.js";
import { attempt, find, focusOn, handleFailure, make, publish, setText, showMessage, subscribe, updateList } from "./parts.js";
import { checkFile } from "./results.js";
import { server } from "./server.js";
import { currentImage } from "./source.js";

/** The photos and the artwork, as the studio reports them. */
let content = { version: -1, photos: [], artwork: [], problems: [] };
/** The photo in the editor, if any. */
let open = null;
/** The time without further edits after which the page stores them, in milliseconds. */
const saveDelay = 300;
/** Whether the editor has changes that are not sent yet. */
let isChanged = false;
/** The timer of the next attempt to store the changes. */
let timer = 0;
/** The number of consecutive failed attempts. */
let failures = 0;
/** The request that stores the boxes, if one is running. */
let saving = null;
let modelLabels = [];
/** The boxes without a label, by the file path of their photo, stored for this tab so that they survive a reload. */
const drafts = new Map(Object.entries(JSON.parse(sessionStorage.getItem("box-drafts") ?? "{}")));

/** Notifies the other tabs of this studio of changes. */
const tabs = new BroadcastChannel("imprint-boxes");

const photoURL = (name, parameters = "") => `box-photo?name=${encodeURIComponent(name)}${parameters}`;
const indexOf = (name) => content.photos.findIndex((photo) => photo.name === name);
const boxCount = (count) => (count === 1 ? "1 box" : `${count} boxes`);

const draftKey = (name) => `${content.file}/${name}`;
const draftsOf = (name) => drafts.get(draftKey(name)) ?? [];

/** Changes the boxes without a label and stores them. */
function updateDrafts(change) {
  change();
  sessionStorage.setItem("box-drafts", JSON.stringify(Object.fromEntries(drafts)));
}

function summary(photo) {
  const count = draftsOf(photo.name).length;
  if (!photo.objects.length) return count ? `${boxCount(count)} without a label` : photo.isBackground ? "no objects" : "no boxes yet";
  return `${boxCount(photo.objects.length)}${count ? `, ${count} without a label` : ""}`;
}

function thumbnail({ name }) {
  return make("li", {}, make("button", { onclick: () => attempt(async () => showMessage(await show(name))) },
    make("img", { src: photoURL(name, "&size=small"), alt: "", loading: "lazy" }), make("span", { className: "small" })));
}

function showList() {
  updateList(find("box-photos"), content.photos, thumbnail, ({ name }) => name);
  for (const [index, photo] of content.photos.entries()) {
    const button = find("box-photos").children[index].firstElementChild;
    button.lastElementChild.textContent = summary(photo);
    button.setAttribute("aria-label", `Photo ${index + 1}: ${summary(photo)}`);
    button.setAttribute("aria-current", String(photo.name === open?.name));
  }
  const labels = new Set([...modelLabels, ...content.photos.flatMap(({ objects }) => objects.map(({ label }) => label)),
    ...content.artwork.map(({ label }) => label)]);
  updateList(find("box-labels"), [...labels], (label) => new Option(label, label));
  const boxed = content.photos.filter(({ objects }) => objects.length);
  const boxes = boxed.reduce((sum, { objects }) => sum + objects.length, 0);
  const background = content.photos.filter(({ isBackground }) => isBackground).length;
  setText("boxes-state", content.photos.length === 0 ? "No photos yet."
    : `${boxCount(boxes)} in ${boxed.length} of ${content.photos.length} photos${background ? `; ${background} without objects` : ""}.`);
  find("boxes-file").textContent = content.file ?? "";
  find("boxes-location").hidden = !boxed.length && !background;
  find("boxes-problems").replaceChildren(...content.problems.map((textContent) => make("li", { textContent })));
}

function showEditorState() {
  const unnamed = editor.count - editor.objects.length;
  find("background-field").hidden = editor.count > 0;
  setText("editor-state", failures ? "Not saved."
    : unnamed ? `${boxCount(unnamed)} without a label: type a label to save.` : saving || isChanged ? "Saving …" : editor.count ? `Saved: ${boxCount(editor.count)}.` : "");
}

/** Shows a response of the studio, and the boxes of the open photo if another tab has changed them. */
function update(next) {
  if (next.version < content.version) return;
  content = next;
  const names = new Set(content.photos.map(({ name }) => draftKey(name)));
  const deleted = [...drafts.keys()].filter((key) => key.startsWith(draftKey("")) && !names.has(key));
  if (deleted.length) updateDrafts(() => { for (const key of deleted) drafts.delete(key); });
  publish("boxes", content);
  if (open) {
    const photo = content.photos[indexOf(open.name)];
    if (!photo) close();
    else if (photo.revision !== open.revision && !isChanged && !saving) load(photo);
  }
  showList();
}

/** Shows the response to an edit, which has only the edited photo. */
async function updatePhoto({ photo, version, shortage }) {
  // The response lacks the changes of other tabs.
  if (version !== content.version + 1) return refresh();
  return update({ ...content, version, shortage, photos: content.photos.map((other) => (other.name === photo.name ? photo : other)) });
}

/** Stores the edits after a pause. */
function scheduleSave(delay = saveDelay) {
  clearTimeout(timer);
  timer = setTimeout(() => attempt(save), delay);
}

function handleEdit() {
  isChanged = true;
  if (editor.count) find("background").checked = false;
  const key = draftKey(open.name), unnamed = editor.drafts;
  if (unnamed.length) updateDrafts(() => drafts.set(key, unnamed));
  else if (drafts.has(key)) updateDrafts(() => drafts.delete(key));
  scheduleSave();
  showEditorState();
}

/** The edited properties as JSON, to detect changes. */
const editedText = () => JSON.stringify([editor.objects, find("background").checked]);

/** Shows a photo and its boxes in the editor. */
function load(photo) {
  open = { name: photo.name, revision: photo.revision };
  [isChanged, failures] = [false, 0];
  const image = find("paper-image");
  if (image.dataset.name !== photo.name) {
    image.dataset.name = photo.name;
    image.src = photoURL(photo.name);
  }
  image.alt = `Photo ${indexOf(photo.name) + 1}`;
  find("paper").style.aspectRatio = `${photo.width} / ${photo.height}`;
  find("paper").style.setProperty("--ratio", photo.width / photo.height);
  find("editor-title").textContent = `Photo ${indexOf(photo.name) + 1} of ${content.photos.length}`;
  find("background").checked = photo.isBackground;
  find("editor").hidden = false;
  editor.open([...photo.objects, ...draftsOf(photo.name).map((box) => ({ label: "", box }))], handleEdit, open.name);
  open.storedText = editedText();
  showEditorState();
}

/**
 * Shows another photo after the edits of the open one are stored: if that fails, the open one stays with its edits.
 * Returns a message about the boxes of the previous photo that are not stored, or an empty text.
 */
async function show(name) {
  await save();
  const photo = content.photos[indexOf(name)];
  if (!photo) throw new Error("The photo was deleted in another tab.");
  const count = open && open.name !== name ? draftsOf(open.name).length : 0;
  load(photo);
  showList();
  focusOn(find("editor-title"));
  return count ? `The photo that you left has ${boxCount(count)} without a label. This tab keeps ${count === 1 ? "it" : "them"}, `
    + "but the studio stores only boxes with a label." : "";
}

function close() {
  open = null;
  [isChanged, failures] = [false, 0];
  find("editor").hidden = true;
  editor.open([], () => {}, null);
  delete find("paper-image").dataset.name;
}

/** Stores the boxes of the open photo; changes during a request are stored after it. */
async function save() {
  clearTimeout(timer);
  showEditorState();
  if (saving) return saving;
  saving = (async () => {
    while (isChanged && open) {
      isChanged = false;
      const { name, revision, storedText } = open, text = editedText();
      if (text === storedText) {
        failures = 0;
        continue;
      }
      const edit = { revision, objects: editor.objects, isBackground: find("background").checked };
      try {
        const next = await server.editBoxes(name, edit);
        if (open?.name === name) Object.assign(open, { revision: next.photo.revision, storedText: text });
        if (failures) showMessage("");
        failures = 0;
        tabs.postMessage("changed");
        await updatePhoto(next);
      } catch (error) {
        [isChanged, failures] = [true, failures + 1];
        // Another tab or program has changed or deleted the photo: show the stored boxes. Boxes that are not valid stay in the editor.
        if (error.status === 404 || error.status === 409) {
          await refresh(true);
          if (open?.name === name) error.message += " Undo brings back your edit.";
        } else if (!error.isRejection) scheduleSave(handleFailure(error, failures));
        throw error;
      }
    }
  })();
  try {
    await saving;
  } finally {
    saving = null;
    showEditorState();
  }
  // Another tab may have changed the boxes meanwhile.
  update(content);
}

/** Stores the edits of the open photo now, for example before training. */
export const saveBoxes = () => save();

/** Reads the photos; `discards` shows the stored boxes in the editor instead of the edited ones. */
async function refresh(discards = false) {
  const next = await server.boxes();
  update(next);
  const photo = discards && open ? content.photos[indexOf(open.name)] : undefined;
  if (photo) load(photo);
}

/** Adds photos, and shows the first one. */
async function add(files) {
  const errors = [];
  let first, count = 0;
  for (const [index, file] of files.entries()) {
    setText("boxes-state", `Adding photo ${index + 1} of ${files.length} …`);
    try {
      await checkFile(file);
      const next = await server.addBoxPhoto(file);
      first ??= next.added;
      count += 1;
      update(next);
    } catch (error) {
      errors.push(file.name ? `${file.name}: ${error.message}` : error.message);
    }
  }
  tabs.postMessage("changed");
  showList();
  let note = "";
  try {
    if (first !== undefined) note = await show(first);
  } catch (error) {
    errors.push(error.message);
  }
  showMessage([count ? `Added ${count === 1 ? "1 photo" : `${count} photos`}.` : "", ...errors, note].join(" ").trim());
}

/** Adds the objects that the model detects in the open photo as boxes. */
async function detect() {
  const { name } = open;
  setText("editor-state", "Detecting …");
  try {
    const response = await fetch(photoURL(name));
    if (!response.ok) throw new Error("The photo cannot be read. It may have been deleted in another tab.");
    const { objects = [] } = await server.classify(await response.blob());
    if (open?.name !== name) return;
    const count = editor.addDetections(objects);
    showMessage(count ? `Added ${boxCount(count)} from ${objects.length === 1 ? "1 detected object" : `${objects.length} detected objects`}. Correct ${count === 1 ? "it" : "them"}.`
      : objects.length ? "There are boxes for all detected objects already." : "The model detects no objects in this photo.");
  } finally {
    showEditorState();
  }
}

find("box-files").addEventListener("change", (event) => {
  const files = [...event.target.files];
  event.target.value = "";
  attempt(() => add(files));
});
find("box-current").addEventListener("click", () => attempt(async () => {
  const image = await currentImage({ isFullSize: true });
  if (!image) throw new Error("There is no image: start the camera or choose a photo.");
  await add([image]);
}));
find("annotate").addEventListener("drop", (event) => {
  // Elsewhere, a dropped photo replaces the camera.
  event.preventDefault();
  event.stopPropagation();
  document.body.classList.remove("dropping");
  attempt(() => add([...event.dataTransfer.files]));
});
find("box-add").addEventListener("click", () => editor.addInMiddle());
find("box-undo").addEventListener("click", () => editor.undo());
find("box-redo").addEventListener("click", () => editor.redo());
document.addEventListener("keydown", (event) => {
  if (!open || !find("editor").checkVisibility() || event.altKey || !(event.ctrlKey || event.metaKey)) return;
  // A text that is being edited has an undo of its own.
  if (event.target.matches?.("input:not([type=checkbox]), select") && !editor.isUneditedLabel(event.target)) return;
  const key = event.key.toLowerCase();
  if (key === "z" && !event.shiftKey) editor.undo();
  else if (key === "y" || key === "z") editor.redo();
  else return;
  event.preventDefault();
});
find("box-detect").addEventListener("click", () => attempt(detect));
find("background").addEventListener("change", handleEdit);
addEventListener("pagehide", () => { if (isChanged) attempt(save); });
document.addEventListener("visibilitychange", () => { if (document.hidden && isChanged) attempt(save); });
addEventListener("beforeunload", (event) => { if (failures) event.preventDefault(); });
find("box-delete").addEventListener("click", () => attempt(async () => {
  const { name } = open, index = indexOf(name);
  if (!confirm(`Delete this photo and its boxes permanently?`)) return;
  // Edits of a deleted photo are not sent.
  clearTimeout(timer);
  const hadChanges = isChanged;
  isChanged = false;
  await saving?.catch(() => {});
  try {
    update(await server.removeBoxPhoto(name));
  } catch (error) {
    // Another program has changed the boxes: show them before the photo can be deleted.
    if (error.status === 409) await refresh(true);
    else if (hadChanges && open?.name === name) handleEdit();
    throw error;
  }
  tabs.postMessage("changed");
  const next = content.photos[Math.min(index, content.photos.length - 1)];
  if (next) await show(next.name);
  else focusOn(find("box-files"));
}));
subscribe("model", (model) => {
  modelLabels = model.objectLabels ?? [];
  find("box-detect").hidden = model.objectLabels === undefined;
  showList();
});
subscribe("artwork", (next) => {
  update(next);
  tabs.postMessage("changed");
});
tabs.addEventListener("message", () => attempt(refresh));

/** Reads the photos with boxes at the start. */
export const openBoxes = () => attempt(refresh);
