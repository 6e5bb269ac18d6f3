// Tries the model in use on several photos, and draws the detected objects on them.

import { drawObjects, sentence } from "./overlay.js";
import { make, percent, setText } from "./parts.js";
import { blockedPart } from "./results.js";
import { server } from "./server.js";

/** The long side of a shown photo, in pixels. */
const longSide = 480;
/** The maximum number of photos that stay visible. */
const limit = 24;

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

/** Returns the result in words. */
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
  return make("li", {}, ...shown ? [shown] : [], make("p", { className: "small" }, make("bdi", { className: "soft", textContent: file.name }), ` ${text}`));
}

/** Classifies photos one after the other, and adds their results at the top of a list. */
export async function tryPhotos(files, list, stateID) {
  const errors = [];
  let found = 0, previous = null;
  for (const [index, file] of files.entries()) {
    setText(stateID, `Trying photo ${index + 1} of ${files.length} …`);
    try {
      const item = await trial(file);
      found += 1;
      if (previous?.isConnected) previous.after(item);
      else list.prepend(item);
      previous = item;
      while (list.children.length > limit) list.lastElementChild.remove();
    } catch (error) {
      errors.push(`${file.name}: ${error.message}`);
      if (error.isRejection === false) break;
    }
  }
  setText(stateID, [found ? `Tried ${found === 1 ? "1 photo" : `${found} photos`}.` : "", ...errors.slice(0, 3),
    errors.length > 3 ? `And ${errors.length - 3} more.` : ""].join(" ").trim());
}
