// Photo files: those in a chosen folder or an archive, and those in dropped files and folders.

export const isPhoto = ({ name }) => /^[^.].*\.(jpe?g|png|webp|hei[cf])$/iu.test(name);
/** The paths of files in dropped folders, which browsers do not give to the files. */
const droppedPaths = new WeakMap();

/** Returns the path of a file from the chosen or dropped folder on, such as "pets/cat/1.jpg", its path in an archive, or its name. */
export const path = (file) => file.path ?? droppedPaths.get(file) ?? (file.webkitRelativePath || file.name);
const inOrder = (files) => files.toSorted((one, next) => path(one).localeCompare(path(next), undefined, { numeric: true }));

/** Returns the photos in a chosen folder and its sub-folders, in the order of their names. Throws if there are none. */
export function photosIn(files) {
  const photos = inOrder([...files].filter(isPhoto));
  if (!photos.length) throw new Error("The folder has no photos. Choose a folder with JPEG, PNG, WebP or HEIC files.");
  return photos;
}

/** Returns the images and SVG drawings in a folder and its sub-folders, in the order of their names. Throws if there are none. */
export function artworkIn(files) {
  const artwork = inOrder(files.filter((file) => isPhoto(file) || /^[^.].*\.svgz?$/iu.test(file.name)));
  if (!artwork.length) throw new Error("The folder has no artwork. Drop a folder with SVG, PNG, WebP, JPEG or HEIC files.");
  return artwork;
}

/**
 * Returns the photos with their labels and the names below the folder of the label.
 *
 * The sub-folders of a single folder are the labels, or the folder itself if it has photos but no sub-folders. Several dropped folders are
 * labels themselves.
 */
export function labelled(files) {
  const photos = files.map((file) => ({ file, parts: path(file).split("/") }));
  const folders = new Set(photos.map(({ parts }) => parts[0]));
  const hasLabels = photos.some(({ parts }) => parts.length > 2), depth = folders.size === 1 && hasLabels ? 1 : 0;
  const inside = photos.filter(({ parts }) => parts.length > depth + 1);
  return {
    outside: photos.length - inside.length,
    photos: inside.map(({ file, parts }) => ({ file, label: parts[depth], name: parts.slice(depth + 1).join("/") })),
  };
}

/** Returns the files in a dropped folder and its sub-folders. */
async function filesIn(folder) {
  const reader = folder.createReader(), files = [];
  for (;;) {
    // A reader returns at most about a hundred entries at a time.
    const entries = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!entries.length) return files;
    for (const entry of entries) {
      if (entry.isDirectory) files.push(...await filesIn(entry));
      else {
        const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
        droppedPaths.set(file, entry.fullPath.replace(/^\//u, ""));
        files.push(file);
      }
    }
  }
}

/** Returns the dropped files, with those files in dropped folders that `select` returns. Reads the drop before it waits, because it is empty after its event. */
export async function droppedFiles(transfer, select = photosIn) {
  const items = [...transfer.items].filter(({ kind }) => kind === "file")
    .map((item) => ({ entry: item.webkitGetAsEntry?.(), file: item.getAsFile() }));
  const files = [];
  for (const { entry, file } of items) {
    if (entry?.isDirectory) files.push(...select(await filesIn(entry)));
    else if (file) files.push(file);
  }
  return files;
}
