// The saved photos as a grid, by category: filter, export, delete, and undo.

import { moveFocus } from "./examples.js";
import { sentence } from "./overlay.js";
import { attempt, download, find, focusOn, make, percent, setText, showMessage, updateList } from "./parts.js";
import { store } from "./store.js";
import { isViewerOpen, openViewer, updateViewer } from "./viewer.js";
import { safeName, zip } from "./zip.js";

/** The time in which a deletion can be undone, in milliseconds. */
const undoTime = 10 * 60 * 1000;
/** The saved photos, newest first. */
let photos = [];
/** The object URLs of the thumbnails, by id. */
const objectURLs = new Map();
/** The photos of each deletion in this tab that can be undone, oldest first. */
let deletions = [];
/** The number of reads of the store; only the result of the latest read is used. */
let readCount = 0;

const grid = find("pictures");
const buttons = () => [...grid.querySelectorAll(".picture")];
const countOf = (list) => (list.length === 1 ? "1 photo" : `${list.length} photos`);
const chosenPhotos = () => photos.filter((photo) => !find("category").value || photo.category === find("category").value);

/** Reads the photos from the store, which other tabs also change, and shows them. */
async function refresh() {
  const read = readCount += 1;
  try {
    const stored = (await store.all()).reverse();
    if (read !== readCount) return;
    photos = stored;
    const ids = new Set(photos.map(({ id }) => id));
    for (const [id, url] of objectURLs) {
      if (ids.has(id)) continue;
      URL.revokeObjectURL(url);
      objectURLs.delete(id);
    }
    show();
  } catch (error) {
    setText("history-state", error.message);
  }
}

function showUndo() {
  const latest = deletions.at(-1);
  find("history-undo").hidden = find("viewer-undo").hidden = !latest;
  setText("history-undo-text", latest ? `Deleted ${countOf(latest)}.` : "");
}

/** Deletes photos. Undo adds them again, in this tab and for some minutes, because they stay in its memory. */
async function remove(photosToDelete) {
  await attempt(async () => {
    const deleted = await store.remove(photosToDelete.map(({ id }) => id));
    if (!deleted.length) return;
    deletions.push(deleted);
    setTimeout(() => {
      deletions = deletions.filter((one) => one !== deleted);
      showUndo();
    }, undoTime);
    showUndo();
  });
  await refresh();
}

/** Undoes the latest deletion, and returns its first photo. */
async function undo() {
  const deleted = deletions.pop();
  if (!deleted) return undefined;
  try {
    await store.restore(deleted);
  } catch (error) {
    deletions.push(deleted);
    throw error;
  } finally {
    showUndo();
  }
  await refresh();
  return deleted.at(-1);
}

const undoInGrid = () => attempt(async () => {
  const photo = await undo();
  focusOn(buttons().find((button) => button.closest("li").key === photo?.id) ?? buttons()[0] ?? find("category"));
});

/** Deletes a photo of the grid, and moves the focus to the next one. */
async function removeInGrid(photo) {
  const index = buttons().findIndex((button) => button.closest("li").key === photo.id);
  await remove([photo]);
  focusOn(buttons()[index] ?? buttons()[index - 1] ?? find("restore"));
}

/** Returns the label of a photo with its confidence and the number of further objects. */
const caption = ({ label, confidence, objects }) =>
  `${label}${confidence === null ? "" : ` ${percent(confidence)}`}${objects?.length > 1 ? ` and ${objects.length - 1} more` : ""}`;

const describe = (photo) => `Photo: ${photo.label}, ${photo.date.toLocaleString()}${photo.objects?.length ? `. ${sentence(photo.objects)}` : ""}`;

function item(photo) {
  const url = objectURLs.get(photo.id) ?? URL.createObjectURL(photo.thumbnail ?? photo.blob);
  objectURLs.set(photo.id, url);
  return make("li", {}, make("button", {
    className: "picture", tabIndex: -1, title: photo.date.toLocaleString(), "aria-label": describe(photo), onclick: () => view(photo.id),
    onkeydown: (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Delete" || event.key === "Backspace") removeInGrid(photo);
      else if (!moveFocus(buttons(), event.currentTarget, event.key)) return;
      event.preventDefault();
    },
  }, make("img", { src: url, alt: "", loading: "lazy", draggable: false }), make("bdi", { className: "small", textContent: caption(photo) })));
}

/** Returns the local date and time for a file name, such as "2026-05-04 17-03-09". */
function localTime(date) {
  const [year, ...rest] = [date.getFullYear(), date.getMonth() + 1, date.getDate(), date.getHours(), date.getMinutes(), date.getSeconds()];
  const [month, day, hours, minutes, seconds] = rest.map((number) => String(number).padStart(2, "0"));
  return `${year}-${month}-${day} ${hours}-${minutes}-${seconds}`;
}
const baseName = (photo) => `${localTime(photo.date)} ${safeName(photo.label)}`;
const extensions = { "image/png": "png", "image/webp": "webp", "image/heic": "heic", "image/heif": "heif" };
const fileName = (photo) => `${baseName(photo)}.jpg`;
const originalName = (photo) => `${baseName(photo)} original.${extensions[photo.original.type] ?? "jpg"}`;

function show() {
  const filter = find("category"), categories = [...new Set(photos.map((photo) => photo.category))].sort();
  const chosen = categories.includes(filter.value) ? filter.value : "";
  updateList(filter, ["", ...categories], (category) => new Option(category || "all", category));
  filter.value = chosen;
  updateList(find("categories"), categories, (category) => new Option(category, category));
  const shown = chosenPhotos(), hadFocus = grid.contains(document.activeElement);
  const index = buttons().indexOf(document.activeElement);
  updateList(grid, shown, item, (photo) => photo.id);
  const all = buttons();
  // Tab reaches one photo of the grid: the one that had the focus.
  if (all.length && !all.some(({ tabIndex }) => tabIndex === 0)) all[0].tabIndex = 0;
  // Another tab may have deleted the focused photo.
  if (hadFocus && !grid.contains(document.activeElement)) focusOn(all[Math.min(index, all.length - 1)] ?? filter);
  setText("history-state", photos.length === 0 ? "No photos yet: take one with the shutter."
    : shown.length === photos.length ? `${photos.length} saved.` : `${shown.length} of ${photos.length} saved.`);
  find("export").disabled = find("delete-all").disabled = shown.length === 0;
  find("delete-all").textContent = chosen ? "Delete these" : "Delete all";
  updateViewer(photos, shown);
}

async function updateCategory(photo, category) {
  if (!await store.update(photo.id, { category: category.trim() || photo.label })) throw new Error("The photo was deleted in another tab.");
}

/** Opens a photo in the viewer. */
function view(id) {
  openViewer(id, photos, chosenPhotos(), {
    caption, describe, fileName, originalName, remove, undo, updateCategory,
    hasUndo: () => deletions.length > 0,
    focusAfter: (current) => focusOn(buttons().find((button) => button.closest("li").key === current) ?? buttons()[0] ?? find(deletions.length ? "restore" : "category")),
  });
}

/** Exports the shown photos and their originals as one ZIP file, in folders by category, with a list of their labels. */
async function exportPhotos() {
  await refresh();
  const entries = chosenPhotos().map((photo, index) => {
    const prefix = `${safeName(photo.category)}/${index + 1} `;
    return { photo, file: prefix + fileName(photo), ...photo.original && { original: prefix + originalName(photo) } };
  });
  const files = entries.flatMap(({ photo, file, original }) => [
    { name: file, blob: photo.blob, date: photo.date }, ...original ? [{ name: original, blob: photo.original, date: photo.date }] : []]);
  const list = entries.map(({ photo: { label, confidence, category, date, objects }, file, original }) => (
    { file, ...original && { original }, label, confidence, category, date, ...objects?.length ? { objects } : {} }));
  const listing = { name: "pictures.json", blob: new Blob([JSON.stringify(list, null, 2)]), date: new Date() };
  download(await zip([...files, listing]), "imprint-pictures.zip");
  setText("history-state", `Exported ${entries.length} as imprint-pictures.zip.`);
}

grid.addEventListener("focusin", ({ target }) => {
  if (target.matches(".picture")) for (const one of buttons()) one.tabIndex = one === target ? 0 : -1;
});
find("category").addEventListener("change", show);
find("export").addEventListener("click", () => attempt(exportPhotos));
find("delete-all").addEventListener("click", async () => {
  await remove(chosenPhotos());
  focusOn(find("restore"));
});
find("restore").addEventListener("click", undoInGrid);
find("history").addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.shiftKey || event.key !== "z" || isViewerOpen() || !deletions.length) return;
  event.preventDefault();
  undoInGrid();
});

export function openHistory() {
  store.onChange(refresh);
  return refresh();
}
