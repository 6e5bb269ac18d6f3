// The shutter and the saved photos, each with its label as a caption, by category.

import { drawObjects, sentence } from "./overlay.js";
import { attempt, find, focusOn, make, percent, quoted, setText, showMessage, subscribe, updateList } from "./parts.js";
import { blockedPart, isFilterActive } from "./results.js";
import { server } from "./server.js";
import { currentImage } from "./source.js";
import { store } from "./store.js";
import { zip } from "./zip.js";

/** The saved photos, newest first. */
let photos = [];
let hasModel = false;
/** The object URLs of the photos, by id. */
const objectURLs = new Map();

/** Returns the image with the boxes of its objects, and a caption: over its lower edge, or below if it would cover boxes. */
async function withCaption(blob, text, objects) {
  const image = await createImageBitmap(blob).catch(() => { throw new Error("This browser cannot read the image."); });
  // Small images are enlarged, so that the caption is legible.
  const short = Math.min(image.width, image.height), long = Math.max(image.width, image.height);
  const scale = Math.max(1, Math.min(320 / short, 1280 / long));
  const width = Math.round(image.width * scale), height = Math.round(image.height * scale);
  const size = Math.max(12, Math.round(short * scale / 16));
  const canvas = make("canvas", { width, height: height + (objects.length ? 2 * size : 0) }), context = canvas.getContext("2d");
  context.drawImage(image, 0, 0, width, height);
  drawObjects(context, objects, { width, height }, Math.max(12, Math.round(size * 0.6)));
  context.fillStyle = "rgb(22 25 29 / 85%)";
  context.fillRect(0, canvas.height - 2 * size, canvas.width, 2 * size);
  context.fillStyle = "#ffffff";
  context.font = `600 ${size}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.fillText(text, size * 0.7, canvas.height - size, canvas.width - 1.4 * size);
  image.close();
  return new Promise((resolve, reject) => canvas.toBlob(
    (result) => (result ? resolve(result) : reject(new Error("The image is too large for this browser."))), "image/jpeg", 0.92));
}

async function takePhoto() {
  showMessage("");
  try {
    const image = await currentImage({ isFullSize: true });
    if (!image) throw new Error("There is no image yet.");
    // The saved photo is classified again, because the camera may have moved since the last result.
    if (!hasModel && isFilterActive()) throw new Error("the content filter cannot check it before the model is loaded.");
    const result = hasModel ? await server.classify(image) : undefined;
    const classifications = result?.observations ?? [], objects = result?.objects ?? [], blocked = blockedPart(result ?? null);
    // The best object of a detector; an image unlike the training photos has no label.
    const best = result?.rejected ? undefined : objects[0] ?? classifications[0];
    if (blocked) return showMessage(`Blocked: the model detected ${quoted(blocked.label)}, so the photo is not saved.`);
    const label = best?.label ?? (result?.rejected ? "None of these" : "Unlabelled");
    const more = objects.length > 1 ? ` and ${objects.length - 1} more` : "";
    const text = best ? `${label}  ${percent(best.confidence)}${more}` : label;
    await store.add({
      label, confidence: best?.confidence ?? null, objects, date: new Date(),
      category: classifications.find((one) => one.label === best?.label)?.category ?? label,
      blob: await withCaption(image, text, objects),
    });
    showMessage(`Saved: ${text}.`);
  } catch (error) {
    showMessage(`The photo was not saved: ${error.message}`);
  }
  await refresh();
}

/** The number of reads of the store; only the result of the latest read is used. */
let readCount = 0;

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

async function remove(deleted) {
  await attempt(() => store.remove(deleted.map(({ id }) => id)));
  await refresh();
  focusOn(find("category"));
}

async function updateCategory(photo, field) {
  await attempt(async () => {
    if (!await store.update(photo.id, { category: field.value.trim() || photo.label })) {
      throw new Error("The photo was deleted in another tab.");
    }
  });
  await refresh();
}

function item(photo) {
  const url = objectURLs.get(photo.id) ?? URL.createObjectURL(photo.blob);
  objectURLs.set(photo.id, url);
  const name = `${photo.label}, ${photo.date.toLocaleString()}`;
  return make("li", {},
    make("img", { src: url, alt: `Photo: ${name}${photo.objects?.length ? `. ${sentence(photo.objects)}` : ""}`, loading: "lazy" }),
    make("p", {}, make("b", {}, make("bdi", { textContent: photo.label })),
      photo.confidence === null ? "" : ` ${percent(photo.confidence)}`,
      photo.objects?.length > 1 ? ` and ${photo.objects.length - 1} more` : ""),
    make("p", { className: "soft small", textContent: photo.date.toLocaleString() }),
    make("input", {
      value: photo.category, list: "categories", maxLength: 60, "aria-label": `Category of ${name}`,
      onchange: (event) => updateCategory(photo, event.target),
    }),
    make("div", { className: "row" },
      make("a", { className: "button", href: url, download: fileName(photo), textContent: "Save", "aria-label": `Save ${name}` }),
      make("button", {
        className: "quiet", textContent: "Delete", "aria-label": `Delete ${name}`,
        onclick: () => remove([photo]),
      })));
}

/** Returns a text as a name that all file systems allow: Windows reserves some names, and ignores spaces at the end. */
function safeName(text) {
  const name = [...text.replace(/[^\p{L}\p{N} _-]/gu, "_")].slice(0, 60).join("").trim() || "picture";
  return /^(con|prn|aux|nul|(com|lpt)\p{N})$/iu.test(name) ? `${name}_` : name;
}
const fileName = (photo) => `${photo.date.toISOString().slice(0, 19).replace(/:/g, "-")} ${safeName(photo.label)}.jpg`;

function show() {
  const filter = find("category"), categories = [...new Set(photos.map((photo) => photo.category))].sort();
  const chosen = categories.includes(filter.value) ? filter.value : "";
  updateList(filter, ["", ...categories], (category) => new Option(category || "all", category));
  filter.value = chosen;
  updateList(find("categories"), categories, (category) => new Option(category, category));
  const shown = chosenPhotos();
  // The focused item stays even if its category has changed, because the user may be about to click in it.
  const focused = document.activeElement?.closest("#pictures li")?.key;
  const listed = photos.filter((photo) => photo.id === focused || shown.includes(photo));
  updateList(find("pictures"), listed, item, (photo) => photo.id);
  for (const [index, { category }] of listed.entries()) {
    const field = find("pictures").children[index].querySelector("input");
    // Do not overwrite a field that is being edited, unless this tab has just stored its text.
    if (field !== document.activeElement || field.value.trim() === category || field.value.trim() === "") field.value = category;
  }
  setText("history-state", photos.length === 0 ? "No photos yet: take one with the shutter."
    : shown.length === photos.length ? `${photos.length} saved.` : `${shown.length} of ${photos.length} saved.`);
  find("export").disabled = find("delete-all").disabled = shown.length === 0;
  find("delete-all").textContent = chosen ? "Delete these" : "Delete all";
}

const chosenPhotos = () => photos.filter((photo) => !find("category").value || photo.category === find("category").value);

/** Exports the listed photos as one ZIP file, in folders by category, with a list of their labels. */
async function exportPhotos() {
  await refresh();
  const files = chosenPhotos().map((photo, index) => ({
    name: `${safeName(photo.category)}/${index + 1} ${fileName(photo)}`, blob: photo.blob, date: photo.date, photo,
  }));
  const list = files.map(({ name, photo: { label, confidence, category, date, objects } }) => (
    { file: name, label, confidence, category, date, ...objects?.length ? { objects } : {} }));
  const listing = { name: "pictures.json", blob: new Blob([JSON.stringify(list, null, 2)]), date: new Date() };
  const url = URL.createObjectURL(await zip([...files, listing]));
  make("a", { href: url, download: "imprint-pictures.zip" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
  setText("history-state", `Exported ${files.length} as imprint-pictures.zip.`);
}

find("shutter").addEventListener("click", takePhoto);
find("category").addEventListener("change", show);
find("export").addEventListener("click", () => attempt(exportPhotos));
find("delete-all").addEventListener("click", () => {
  const chosen = chosenPhotos();
  if (!confirm(`Delete ${chosen.length === 1 ? "this photo" : `these ${chosen.length} photos`} permanently?`)) return;
  remove(chosen);
});
subscribe("model", (model) => { hasModel = model.name !== undefined; });

export function openHistory() {
  store.onChange(refresh);
  return refresh();
}
