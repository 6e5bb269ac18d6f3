// The detected objects: their boxes over the image, and their list.

import { colorOf, drawObjects, describePosition, sentence } from "./overlay.js";
import { find, make } from "./parts.js";
import { onStage } from "./stage.js";
import { figure } from "./steady.js";

const canvas = find("boxes");
let objects = [];
let isCovered = false;
/** The content of the list, so that the page changes it only if it differs. */
let listed = null;
/** The last announcement to screen readers and its time, so that it is not repeated with every result. */
let announcement = { key: null, time: -Infinity };

/** Draws the boxes over the image, which may be smaller than its container. */
function draw() {
  const shown = ["video", "photo"].map(find).find((element) => !element.hidden);
  const width = shown?.videoWidth || shown?.naturalWidth, height = shown?.videoHeight || shown?.naturalHeight;
  canvas.hidden = !objects.length || isCovered || !width || !height;
  if (canvas.hidden) return;
  const { clientWidth, clientHeight } = find("picture"), scale = Math.min(clientWidth / width, clientHeight / height);
  const image = { width: width * scale, height: height * scale }, density = window.devicePixelRatio || 1;
  canvas.width = Math.round(image.width * density);
  canvas.height = Math.round(image.height * density);
  canvas.style.width = `${image.width}px`;
  canvas.style.height = `${image.height}px`;
  const context = canvas.getContext("2d");
  context.scale(density, density);
  // The badge covers a corner of the image.
  const { offsetLeft, offsetTop, offsetWidth, offsetHeight } = find("badge");
  const badge = {
    x: offsetLeft - (clientWidth - image.width) / 2, y: offsetTop - (clientHeight - image.height) / 2,
    width: offsetWidth, height: offsetHeight,
  };
  drawObjects(context, objects, image, image.width < 420 ? 12 : 14, { ...image, taken: [badge] });
}

function announce() {
  const now = performance.now(), key = objects.map(({ label, box }) => `${label}/${describePosition(box)}`).join("\n");
  if (key === announcement.key || now - announcement.time < 4000) return;
  announcement = { key, time: now };
  find("spoken-objects").textContent = sentence(objects);
}

/** Lists the objects. */
function showList() {
  const rows = objects.map((object) => ({ label: object.label, position: describePosition(object.box), number: figure(object) }));
  if (listed === JSON.stringify(rows)) return;
  listed = JSON.stringify(rows);
  find("objects").replaceChildren(...rows.map(({ label, position, number }) => {
    const mark = make("span", { className: "mark", "aria-hidden": "true" });
    mark.style.background = colorOf(label);
    return make("li", {}, mark, make("bdi", { className: "name", textContent: label }),
      make("span", { className: "soft small", textContent: position }),
      make("span", { className: "number", textContent: number }));
  }));
  if (!rows.length) find("objects").append(make("li", { className: "soft", textContent: "No objects found." }));
}

/** Shows the objects of a result; `isHidden` means that the content filter covers the image. */
export function showObjects(result, isHidden) {
  [objects, isCovered] = [result?.objects?.map((object) => ({ ...object, box: onStage(object.box) })) ?? [], isHidden];
  find("found").hidden = !result?.objects;
  showList();
  if (result?.objects) announce();
  else announcement.key = null;
  draw();
}

new ResizeObserver(draw).observe(find("picture"));
// The size of an image may be known only after its result.
find("photo").addEventListener("load", draw);
for (const name of ["loadedmetadata", "resize"]) find("video").addEventListener(name, draw);
