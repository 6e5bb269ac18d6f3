// The shutter: saves the current image with its label and boxes, a thumbnail, and the original.

import { drawObjects } from "./overlay.js";
import { find, make, percent, quoted, showMessage, subscribe } from "./parts.js";
import { blockedPart, checkFilter, classifyKept, isFilterActive } from "./results.js";
import { currentImage } from "./source.js";
import { store } from "./store.js";

/** The short side of a thumbnail, in pixels. */
const thumbnailSide = 240;
let hasModel = false;

const jpeg = (canvas, quality) => new Promise((resolve, reject) => canvas.toBlob(
  (result) => (result ? resolve(result) : reject(new Error("The image is too large for this browser."))), "image/jpeg", quality));

/** Returns the image with the boxes of its objects and a caption: over its lower edge, or below if it would cover boxes. Adds a thumbnail. */
async function draw(blob, text, objects) {
  const image = await createImageBitmap(blob).catch(() => { throw new Error("This browser cannot read the image."); });
  // Small images are enlarged, so that the caption is legible.
  const short = Math.min(image.width, image.height), long = Math.max(image.width, image.height);
  const scale = Math.max(1, Math.min(320 / short, 1280 / long));
  const width = Math.round(image.width * scale), height = Math.round(image.height * scale);
  const size = Math.max(12, Math.round(short * scale / 16));
  const canvas = make("canvas", { width, height: height + (objects.length ? 2 * size : 0) }), context = canvas.getContext("2d");
  context.drawImage(image, 0, 0, width, height);
  drawObjects(context, objects, { width, height }, Math.max(12, Math.round(size * 0.6)));
  const reduction = Math.min(1, thumbnailSide / Math.min(width, height));
  const small = make("canvas", { width: Math.ceil(width * reduction), height: Math.ceil(height * reduction) });
  small.getContext("2d").drawImage(canvas, 0, 0, width, height, 0, 0, small.width, small.height);
  context.fillStyle = "rgb(22 25 29 / 85%)";
  context.fillRect(0, canvas.height - 2 * size, canvas.width, 2 * size);
  context.fillStyle = "#ffffff";
  context.font = `600 ${size}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.fillText(text, size * 0.7, canvas.height - size, canvas.width - 1.4 * size);
  image.close();
  return { blob: await jpeg(canvas, 0.92), thumbnail: await jpeg(small, 0.8) };
}

async function takePhoto() {
  showMessage("");
  try {
    const image = await currentImage({ isFullSize: true });
    if (!image) throw new Error("There is no image yet.");
    // The saved photo is classified again, because the camera may have moved since the last result.
    if (!hasModel && isFilterActive()) throw new Error("the content filter cannot check it before the model is loaded.");
    if (!hasModel) await checkFilter(image);
    const result = hasModel ? await classifyKept(image) : undefined;
    const classifications = result?.observations ?? [], objects = result?.objects ?? [], blocked = blockedPart(result ?? null);
    if (blocked) {
      return showMessage(`Blocked: the model detected ${quoted(blocked.label)}, so the photo is not saved.`, { kind: "error", isAboutImage: true });
    }
    // The best object of a detector; an image unlike the training photos has no label.
    const best = result?.rejected ? undefined : result?.objects ? objects[0] : classifications[0];
    const label = best?.label ?? (result?.rejected ? "None of these" : result?.objects ? "No objects" : "Unlabelled");
    const more = objects.length > 1 ? ` and ${objects.length - 1} more` : "";
    const text = best ? `${label}  ${percent(best.confidence)}${more}` : label;
    await store.add({
      label, confidence: best?.confidence ?? null, objects, date: new Date(),
      category: classifications.find((one) => one.label === best?.label)?.category ?? label,
      // The type of a file can be missing, and its name and folder are not stored.
      original: new Blob([image], { type: image.type }),
      ...await draw(image, text, objects),
    });
    showMessage(`Saved: ${text}.`, { isAboutImage: true });
  } catch (error) {
    showMessage(`The photo was not saved: ${error.message}`, { kind: "error", isAboutImage: true });
  }
}

find("shutter").addEventListener("click", takePhoto);
subscribe("model", (model) => { hasModel = model.name !== undefined; });
