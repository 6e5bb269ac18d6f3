// Searches several photos with the model in use, and draws the detected objects on them.

import { describePosition, drawObjects, sentence } from "./overlay.js";
import { make, percent, quoted, setText } from "./parts.js";
import { blockedPart } from "./results.js";
import { server } from "./server.js";
import { figure } from "./steady.js";

/** The long side of a shown photo, in pixels. */
const longSide = 480;
/** The maximum number of photos that stay visible. */
const limit = 24;
/** The maximum number of objects and labels in a sentence. */
const wordLimit = 6;

/** Draws a photo with its objects; returns null if the browser cannot show the photo. */
async function picture(file, objects) {
  let image;
  try {
    image = await createImageBitmap(file);
  } catch {
    return null;
  }
  const scale = Math.min(longSide / Math.max(image.width, image.height), 1);
  const canvas = make("canvas", { width: Math.max(Math.round(image.width * scale), 1), height: Math.max(Math.round(image.height * scale), 1) });
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  image.close();
  drawObjects(context, objects, { width: canvas.width, height: canvas.height }, 15);
  return canvas;
}

/** Joins the first texts, and adds the number of the others. */
const joined = (texts, separator) => [...texts.slice(0, wordLimit), ...texts.length > wordLimit ? [`and ${texts.length - wordLimit} more`] : []].join(separator);

/** Returns the detected objects as they are read: "leaf 95 %, centre". */
const objectText = (objects) => (objects.length ? joined(objects.map((one) => `${one.label} ${figure(one)}, ${describePosition(one.box)}`), "; ") : "Not found");

/** Returns the result in words, as a screen reader speaks it. */
function describe(result) {
  if (result.objects) return sentence(result.objects);
  const [best] = result.observations;
  return result.rejected || !best ? "None of these." : `${best.label}, ${percent(best.confidence)}.`;
}

async function trial(file) {
  const result = await server.classify(file);
  // The content filter covers such images everywhere.
  const isBlocked = blockedPart(result) !== undefined;
  const text = isBlocked ? "Blocked by the content filter." : describe(result);
  const shown = isBlocked ? null : await picture(file, result.objects ?? []);
  if (shown) {
    shown.setAttribute("role", "img");
    shown.setAttribute("aria-label", `${file.name}: ${text}`);
  }
  const caption = isBlocked || !result.objects ? text : `${objectText(result.objects)}.`;
  return {
    labels: new Set(isBlocked ? [] : (result.objects ?? []).map(({ label }) => label)),
    item: make("li", {}, ...shown ? [shown] : [],
      make("p", { className: "small" }, make("bdi", { className: "soft", textContent: file.name }), make("br"), caption)),
  };
}

/** Returns in how many photos each label was found. */
function summary(count, found) {
  const photos = `Searched ${count === 1 ? "1 photo" : `${count} photos`}`;
  if (!found.size) return `${photos}, and found nothing.`;
  return `${photos}: found ${joined([...found].map(([label, number]) => `${quoted(label)} in ${number}`), ", ")}.`;
}

/** The number of searches. */
let searches = 0;

/** Searches photos one after the other, and adds their results at the top of a list. A new search ends the previous one. */
export async function tryPhotos(files, list, stateID) {
  const search = searches += 1, errors = [], found = new Map();
  let count = 0, previous = null;
  for (const [index, file] of files.entries()) {
    setText(stateID, `Searching photo ${index + 1} of ${files.length} …`);
    try {
      const { item, labels } = await trial(file);
      if (search !== searches) return;
      count += 1;
      for (const label of labels) found.set(label, (found.get(label) ?? 0) + 1);
      if (previous?.isConnected) previous.after(item);
      else list.prepend(item);
      previous = item;
      while (list.children.length > limit) list.lastElementChild.remove();
    } catch (error) {
      if (search !== searches) return;
      errors.push(`${file.name}: ${error.message}`);
      if (error.isRejection === false) break;
    }
  }
  setText(stateID, [count ? summary(count, found) : "", ...errors.slice(0, 3),
    errors.length > 3 ? `And ${errors.length - 3} more.` : ""].join(" ").trim());
}
