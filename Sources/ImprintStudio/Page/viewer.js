// The viewer of saved photos: one photo at a time, with its original, and actions for it.

import { find, focusOn, matchLabel, quoted, setText, subscribe, updateList } from "./parts.js";
import { checkFilter } from "./results.js";
import { server } from "./server.js";

const viewer = find("viewer"), images = find("viewer-images"), compare = find("viewer-compare");
/** The photos between which the viewer moves, newest first. */
let photos = [];
let index = 0;
let actions = null;
let labels = [];
/** The object URLs of the images that are shown, by image. */
const urls = new Map();
/** The number of the photo whose texts are in the fields. */
let filledID;
/** Notifies this page and the other tabs of new examples. */
const tabs = new BroadcastChannel("imprint-studio");

export const isViewerOpen = () => viewer.open;
const current = () => photos[index];
const report = (text, kind = "info") => {
  setText("viewer-state", text);
  find("viewer-state").dataset.kind = kind;
};

/** Runs an action of the viewer; a failure is reported in the viewer, because the page behind it is not accessible. */
async function act(work) {
  report("");
  try {
    await work();
  } catch (error) {
    report(error.message, "error");
  }
}

/** Shows an image; the previous one is released. */
function setImage(id, blob, alt) {
  const image = find(id);
  image.alt = alt;
  if (urls.get(id)?.blob === blob) return;
  if (urls.has(id)) URL.revokeObjectURL(urls.get(id).url);
  urls.delete(id);
  if (!blob) return image.removeAttribute("src");
  urls.set(id, { blob, url: URL.createObjectURL(blob) });
  image.src = urls.get(id).url;
}

function setDownload(id, url, name) {
  const link = find(id);
  link.hidden = url === undefined;
  if (link.hidden) return;
  [link.href, link.download] = [url, name];
}

function show() {
  const photo = current(), isCompared = compare.checked && photo.original !== undefined;
  setText("viewer-title", actions.caption(photo));
  setText("viewer-position", `${index + 1} of ${photos.length}`);
  setText("viewer-date", photo.date.toLocaleString());
  setImage("viewer-marked", photo.blob, actions.describe(photo));
  setImage("viewer-original", photo.original, "The original without label and boxes");
  find("viewer-original-area").hidden = !isCompared;
  images.classList.toggle("compared", isCompared);
  find("viewer-compare-field").hidden = find("viewer-example").hidden = photo.original === undefined;
  find("viewer-previous").disabled = index === 0;
  find("viewer-next").disabled = index === photos.length - 1;
  setDownload("viewer-save", urls.get("viewer-marked")?.url, actions.fileName(photo));
  setDownload("viewer-save-original", urls.get("viewer-original")?.url, photo.original && actions.originalName(photo));
  find("viewer-undo").hidden = !actions.hasUndo();
  const category = find("viewer-category");
  // A field that is being edited keeps its text.
  if (filledID !== photo.id || category !== document.activeElement) category.value = photo.category;
  if (filledID !== photo.id) find("viewer-class").value = photo.confidence === null ? "" : photo.label;
  filledID = photo.id;
}

/** Moves to another photo. */
function move(next) {
  if (next < 0 || next >= photos.length || next === index) return;
  commitCategory();
  report("");
  index = next;
  const focused = document.activeElement;
  show();
  // A disabled button loses the focus.
  if (focused?.disabled) focusOn(find(focused.id === "viewer-next" ? "viewer-previous" : "viewer-next"));
  if (document.activeElement === document.body || document.activeElement?.disabled) focusOn(find("viewer-title"));
}

/** Shows the classes of the studio as suggestions. */
async function loadClasses() {
  const { classes } = await server.examples();
  const names = classes.map(({ label }) => label);
  updateList(find("example-classes"), [...new Set([...names, ...labels])], (label) => new Option(label, label));
  return names;
}

/** Stores an edited category. */
function commitCategory() {
  const photo = current(), text = find("viewer-category").value;
  if (!photo || filledID !== photo.id || text === photo.category) return;
  act(() => actions.updateCategory(photo, text));
}

/**
 * Opens the viewer.
 * @param id The number of the photo.
 * @param all All photos, newest first.
 * @param shown The photos of the grid.
 * @param nextActions The functions of the grid that the viewer calls.
 */
export function openViewer(id, all, shown, nextActions) {
  actions = nextActions;
  photos = shown;
  index = Math.max(0, photos.findIndex((photo) => photo.id === id));
  filledID = undefined;
  report("");
  show();
  viewer.showModal();
  focusOn(find("viewer-title"));
  loadClasses().catch(() => {});
}

/** Shows changes of the photos, also those in other tabs. The current photo stays, even if its category has changed. */
export function updateViewer(all, shown) {
  if (!viewer.open) return;
  const { id } = current();
  const next = all.filter((photo) => photo.id === id || shown.includes(photo));
  const position = next.findIndex((photo) => photo.id === id);
  photos = next;
  if (!photos.length) return viewer.close();
  if (position < 0) report("The photo was deleted.");
  index = position < 0 ? Math.min(index, photos.length - 1) : position;
  show();
  if (document.activeElement?.disabled || document.activeElement === document.body) focusOn(find("viewer-title"));
}

async function useAsExample() {
  const photo = current(), text = find("viewer-class").value.trim();
  if (!text) return focusOn(find("viewer-class"));
  await act(async () => {
    await checkFilter(photo.original);
    const names = await loadClasses(), label = matchLabel(text, [...names, ...labels], { ignoresCase: true }) ?? text;
    if (!names.includes(label)) await server.addClass(label);
    await server.addExample(label, photo.original, "file");
    tabs.postMessage("taught");
    report(`The photo is now an example of ${quoted(label)}.`);
  });
}

find("viewer-previous").addEventListener("click", () => move(index - 1));
find("viewer-next").addEventListener("click", () => move(index + 1));
find("viewer-close").addEventListener("click", () => viewer.close());
find("viewer-category").addEventListener("change", commitCategory);
find("viewer-example").addEventListener("submit", (event) => {
  event.preventDefault();
  useAsExample();
});
find("viewer-delete").addEventListener("click", () => act(async () => {
  const photo = current();
  await actions.remove([photo]);
}));
find("viewer-undo").addEventListener("click", () => act(undo));
compare.checked = sessionStorage.getItem("compare") === "yes";
compare.addEventListener("change", () => {
  sessionStorage.setItem("compare", compare.checked ? "yes" : "no");
  show();
});

/** Undoes the latest deletion, and shows its photo. */
async function undo() {
  const photo = await actions.undo(), position = photos.findIndex(({ id }) => id === photo?.id);
  if (position >= 0) index = position;
  show();
  report("Undone.");
  focusOn(find("viewer-title"));
}

viewer.addEventListener("keydown", (event) => {
  const isText = event.target.matches("input:not([type=checkbox])");
  if ((event.ctrlKey || event.metaKey) && event.key === "z" && !event.shiftKey && !isText && actions.hasUndo()) {
    event.preventDefault();
    return act(undo);
  }
  if (isText || event.ctrlKey || event.metaKey || event.altKey) return undefined;
  const next = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: photos.length - 1 }[event.key];
  if (next !== undefined) move(next);
  else if (event.key === "Delete") find("viewer-delete").click();
  else return undefined;
  return event.preventDefault();
});
// A click beside the viewer closes it.
viewer.addEventListener("pointerdown", (event) => { if (event.target === viewer) viewer.close(); });
viewer.addEventListener("close", () => {
  commitCategory();
  const id = current()?.id;
  for (const name of ["viewer-marked", "viewer-original"]) setImage(name, undefined, "");
  filledID = undefined;
  actions.focusAfter(id);
});

// A horizontal swipe moves to the next or previous photo, unless the page is zoomed.
let swipe = null;
images.addEventListener("pointerdown", (event) => {
  swipe = event.isPrimary && event.pointerType !== "mouse" && (visualViewport?.scale ?? 1) < 1.05 ? { x: event.clientX, y: event.clientY } : null;
});
images.addEventListener("pointerup", (event) => {
  if (!swipe || !event.isPrimary) return;
  const x = event.clientX - swipe.x, y = event.clientY - swipe.y;
  swipe = null;
  if (Math.abs(x) > 40 && Math.abs(x) > 2 * Math.abs(y)) move(index + (x < 0 ? 1 : -1));
});
images.addEventListener("pointercancel", () => { swipe = null; });
subscribe("model", (model) => { labels = model.objectLabels ?? model.labels; });
