// The shutter and the saved pictures, each with its label drawn into it, by category.

import { picture } from "./eye.js";
import { held, isGated } from "./look.js";
import { fill, find, focusOn, hear, make, percent, quoted, say, trying, write } from "./parts.js";
import { server } from "./server.js";
import { store } from "./store.js";
import { zip } from "./zip.js";

/** The saved pictures, newest first. */
let pictures = [];
let hasModel = false;
/** The object URLs of the pictures, by id. */
const addresses = new Map();

/** The picture with a strip at the bottom that shows the label. */
async function burnt(blob, text) {
  const image = await createImageBitmap(blob).catch(() => { throw new Error("This browser cannot read the picture."); });
  // Small pictures are enlarged, so that there is room for the strip.
  const short = Math.min(image.width, image.height), long = Math.max(image.width, image.height);
  const scale = Math.max(1, Math.min(320 / short, 1280 / long));
  const canvas = make("canvas", { width: Math.round(image.width * scale), height: Math.round(image.height * scale) });
  const context = canvas.getContext("2d"), size = Math.max(12, Math.round(short * scale / 16));
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  context.fillStyle = "rgb(22 25 29 / 85%)";
  context.fillRect(0, canvas.height - 2 * size, canvas.width, 2 * size);
  context.fillStyle = "#ffffff";
  context.font = `600 ${size}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.fillText(text, size * 0.7, canvas.height - size, canvas.width - 1.4 * size);
  image.close();
  return new Promise((done, fail) => canvas.toBlob(
    (result) => (result ? done(result) : fail(new Error("The picture is too large for this browser."))), "image/jpeg", 0.92));
}

async function shoot() {
  say("");
  try {
    const blob = await picture({ whole: true });
    if (!blob) throw new Error("There is no picture yet.");
    // The saved picture itself is classified, because the camera may have moved since the last result.
    if (!hasModel && isGated()) throw new Error("the content filter cannot check it before the model is loaded.");
    const observations = hasModel ? (await server.classify(blob)).observations : [];
    const reason = held(observations), seen = observations[0];
    if (reason) return say(`Blocked: the model detected ${quoted(reason.label)}, so the picture is not saved.`);
    const label = seen?.label ?? "Unlabelled";
    const text = seen ? `${label}  ${percent(seen.confidence)}` : label;
    const kept = {
      label, confidence: seen?.confidence ?? null, category: seen?.category ?? label, date: new Date(), blob: await burnt(blob, text),
    };
    await store.add(kept);
    say(`Saved: ${text}.`);
  } catch (error) {
    say(`The picture was not saved: ${error.message}`);
  }
  await refresh();
}

/** The number of times that the pictures were read; of two concurrent reads, the later one counts. */
let readings = 0;

/** Reads the pictures from the store, which other tabs change too, and shows them. */
async function refresh() {
  const mine = readings += 1;
  try {
    const kept = (await store.all()).reverse();
    if (mine !== readings) return;
    pictures = kept;
    const ids = new Set(pictures.map(({ id }) => id));
    for (const [id, address] of addresses) {
      if (ids.has(id)) continue;
      URL.revokeObjectURL(address);
      addresses.delete(id);
    }
    show();
  } catch (error) {
    write("history-state", error.message);
  }
}

async function remove(doomed) {
  await trying(() => store.remove(doomed.map(({ id }) => id)));
  await refresh();
  focusOn(find("category"));
}

async function categorise(kept, field) {
  await trying(async () => {
    if (!await store.update(kept.id, { category: field.value.trim() || kept.label })) {
      throw new Error("The picture was deleted in another tab.");
    }
  });
  await refresh();
}

function item(kept) {
  const address = addresses.get(kept.id) ?? URL.createObjectURL(kept.blob);
  addresses.set(kept.id, address);
  const name = `${kept.label}, ${kept.date.toLocaleString()}`;
  return make("li", {},
    make("img", { src: address, alt: `Picture: ${name}`, loading: "lazy" }),
    make("p", {}, make("b", {}, make("bdi", { textContent: kept.label })),
      kept.confidence === null ? "" : ` ${percent(kept.confidence)}`),
    make("p", { className: "soft small", textContent: kept.date.toLocaleString() }),
    make("input", {
      value: kept.category, list: "categories", maxLength: 60, "aria-label": `Category of ${name}`,
      onchange: (event) => categorise(kept, event.target),
    }),
    make("div", { className: "row" },
      make("a", { className: "button", href: address, download: fileName(kept), textContent: "Save", "aria-label": `Save ${name}` }),
      make("button", {
        className: "quiet", textContent: "Delete", "aria-label": `Delete ${name}`,
        onclick: () => remove([kept]),
      })));
}

const plain = (text) => text.replace(/[^\p{L}\p{N} _-]/gu, "_").slice(0, 60) || "picture";
const fileName = (kept) => `${kept.date.toISOString().slice(0, 19).replace(/:/g, "-")} ${plain(kept.label)}.jpg`;

function show() {
  const filter = find("category"), categories = [...new Set(pictures.map((kept) => kept.category))].sort();
  const chosen = categories.includes(filter.value) ? filter.value : "";
  fill(filter, ["", ...categories], (category) => new Option(category || "all", category));
  filter.value = chosen;
  fill(find("categories"), categories, (category) => new Option(category, category));
  const shown = chosenPictures();
  // The focused item stays even if its category has changed, because a click may be about to hit it.
  const focused = document.activeElement?.closest("#pictures li")?.key;
  const listed = pictures.filter((kept) => kept.id === focused || shown.includes(kept));
  fill(find("pictures"), listed, item, (kept) => kept.id);
  for (const [index, kept] of listed.entries()) {
    const field = find("pictures").children[index].querySelector("input");
    // Do not overwrite a field that is being edited, unless this tab has just stored its text.
    if (field !== document.activeElement || field.value.trim() === kept.category || field.value.trim() === "") field.value = kept.category;
  }
  write("history-state", pictures.length === 0 ? "No pictures yet: take one with the shutter."
    : shown.length === pictures.length ? `${pictures.length} saved.` : `${shown.length} of ${pictures.length} saved.`);
  find("export").disabled = find("delete-all").disabled = shown.length === 0;
  find("delete-all").textContent = chosen ? "Delete these" : "Delete all";
}

const chosenPictures = () => pictures.filter((kept) => !find("category").value || kept.category === find("category").value);

/** Exports the listed pictures as one ZIP file, in folders by category, with a list of their labels. */
async function exported() {
  await refresh();
  const files = chosenPictures().map((kept, index) => ({
    name: `${plain(kept.category)}/${index + 1} ${fileName(kept)}`, blob: kept.blob, date: kept.date, kept,
  }));
  const list = files.map(({ name, kept: { label, confidence, category, date } }) => ({ file: name, label, confidence, category, date }));
  const listing = { name: "pictures.json", blob: new Blob([JSON.stringify(list, null, 2)]), date: new Date() };
  const address = URL.createObjectURL(await zip([...files, listing]));
  make("a", { href: address, download: "imprint-pictures.zip" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
  write("history-state", `Exported ${files.length} as imprint-pictures.zip.`);
}

find("shutter").addEventListener("click", shoot);
find("category").addEventListener("change", show);
find("export").addEventListener("click", () => trying(exported));
find("delete-all").addEventListener("click", () => {
  const doomed = chosenPictures();
  if (!confirm(`Delete ${doomed.length === 1 ? "this picture" : `these ${doomed.length} pictures`} for good?`)) return;
  remove(doomed);
});
hear("model", (model) => { hasModel = model.name !== undefined; });

export function openHistory() {
  store.onChange(refresh);
  return refresh();
}
