// Saves the examples as a ZIP file with one folder per class, and reads such a file or another ZIP file of folders with photos.

import { isPhoto, labelled, photosIn } from "./files.js";
import { download, quoted } from "./parts.js";
import { server } from "./server.js";
import { entriesOf, extract, safeName, zip } from "./zip.js";

/** The file with the names of the classes in their order, because not every name can be that of a folder. */
const listName = "imprint-examples.json";

/** Returns the name extension of a photo from its first byte. */
const extensionOf = (bytes) => ({ 0xff: "jpg", 0x89: "png", 0x52: "webp" })[bytes[0]] ?? "heic";

/** Returns a folder name for each label. They differ also if upper and lower case do not count, as in some file systems. */
function foldersFor(labels) {
  const used = new Set();
  return labels.map((label) => {
    const name = safeName(label);
    let folder = name;
    for (let number = 2; used.has(folder.toLowerCase()); number += 1) folder = `${name} ${number}`;
    used.add(folder.toLowerCase());
    return folder;
  });
}

/** Downloads all examples as a ZIP file, and returns a message. */
export async function saveExamples() {
  const name = "imprint-examples.zip", date = new Date();
  const { classes } = await server.examples(), folders = foldersFor(classes.map(({ label }) => label));
  const list = classes.map(({ label }, index) => ({ folder: folders[index], label }));
  const files = [{ name: listName, blob: new Blob([JSON.stringify(list, null, 2)]), date }];
  for (const [index, { ids }] of classes.entries()) {
    for (const [number, id] of ids.entries()) {
      const blob = await server.example(id), extension = extensionOf(new Uint8Array(await blob.slice(0, 1).arrayBuffer()));
      files.push({ name: `${folders[index]}/${number + 1}.${extension}`, blob, date });
    }
  }
  download(await zip(files), name);
  return `Saved ${files.length === 2 ? "1 example" : `${files.length - 1} examples`} as ${name}.`;
}

/** Returns the names of classes by their folders, from the content of the file that lists them. */
function namesIn(content, archive) {
  try {
    const list = JSON.parse(new TextDecoder().decode(content));
    if (list.every(({ folder, label }) => typeof folder === "string" && typeof label === "string")) {
      return new Map(list.map(({ folder, label }) => [folder, label]));
    }
  } catch {
    // The error below also describes this one.
  }
  throw new Error(`${quoted(archive.name)} has a damaged list of classes. Remove ${listName} to use the names of the folders.`);
}

/**
 * Reads all photos in the folders of a ZIP file, at most `byteLimit` bytes in `classLimit` classes.
 *
 * Returns the photos of each class by its name, in the order of the classes, and the number of other files.
 */
export async function readExamples(archive, { byteLimit, classLimit }) {
  const entries = await entriesOf(archive), { photos } = labelled(entries.some(isPhoto) ? photosIn(entries) : []);
  if (!photos.length) {
    throw new Error(`${quoted(archive.name)} has no folders with JPEG, PNG, WebP or HEIC files. The name of a folder is the class of its photos.`);
  }
  const lists = entries.filter(({ name }) => name === listName).slice(0, 1);
  const contents = await extract(archive, [...lists, ...photos.map(({ file }) => file)], byteLimit);
  const names = lists.length ? namesIn(contents[0], archive) : new Map();
  const classes = new Map([...names.values()].map((label) => [label, []]));
  for (const [index, { file, label: folder }] of photos.entries()) {
    const label = names.get(folder) ?? folder;
    if (!classes.has(label)) classes.set(label, []);
    classes.get(label).push(new File([contents[index + lists.length]], file.path));
  }
  if (classes.size > classLimit) {
    throw new Error(`${quoted(archive.name)} has ${classes.size} classes, but at most ${classLimit} are possible. Choose fewer folders.`);
  }
  // Archiving programs add hidden files.
  const visible = entries.filter(({ name }) => !name.startsWith("."));
  return { classes, ignored: visible.length - lists.length - photos.length };
}
