// The image source: classifies the camera once a second, or a photo once. It does nothing while hidden or paused.

import { Camera } from "./camera.js";
import { find, handleFailure, publish, showMessage, subscribe } from "./parts.js";
import { server } from "./server.js";

const camera = new Camera(find("video"), onDisconnect);
const pauseButton = find("pause");
/** The photo that replaces the camera, if any. */
let photo = null;
/** Whether the browser cannot show the photo. */
let isUnshown = false;
/** Whether the model can read the photo; `undefined` until it is known. */
let isReadable;
let isPaused = false;
let hasModel = false;
let isClassifying = false;
/** Increases with every change of the source or the model, so that outdated results are ignored. */
let generation = 0;
/** Increases with every change of the source, so that outdated camera requests are ignored. */
let sourceGeneration = 0;
let timer = 0;
/** The number of consecutive failures. */
let failures = 0;

/** Returns the current image, at full size or scaled down for the model; `null` if there is none. */
export async function currentImage(options) {
  if (photo) return photo;
  return camera.isOn ? camera.frame(options) : null;
}

/** Returns whether the camera is the source of images. */
export const isLive = () => !photo && camera.isOn;

async function classify() {
  clearTimeout(timer);
  if (isClassifying || !hasModel || document.hidden || !(photo || camera.isOn)) return;
  isClassifying = true;
  const start = performance.now(), startGeneration = generation;
  let interval = 1000, isFinal = !isLive();
  try {
    const blob = await currentImage();
    const result = blob && await server.classify(blob);
    if (failures) showMessage("");
    failures = 0;
    if (result && startGeneration === generation) {
      if (photo) showReadability(true);
      publish("result", result);
    }
  } catch (error) {
    failures += 1;
    // A rejected photo is not sent again. The camera has new images, and a missing response may be temporary.
    isFinal = Boolean(photo) && error.isRejection === true;
    if (startGeneration === generation) {
      if (isFinal) {
        showReadability(false);
        showMessage(error.message);
      } else interval = handleFailure(error, failures);
      publish("result", null);
      publish("failed");
    }
  }
  isClassifying = false;
  if (startGeneration !== generation) classify();
  else if (!isFinal) timer = setTimeout(classify, Math.max(0, interval - (performance.now() - start)));
}

/** Returns the notice for a photo that the browser cannot show. */
function photoNotice() {
  if (!isUnshown) return "";
  if (isReadable === undefined) return `This browser cannot show the photo.${hasModel ? " The model may still read it." : ""}`;
  return isReadable ? "This browser cannot show the photo, but the model can read it."
    : "Neither this browser nor the model can read the file. Choose a photo.";
}

/** Shows whether the model can read the photo. */
function showReadability(isRead) {
  isReadable = isRead;
  if (isUnshown) show(photoNotice());
}

/** Updates the controls, and shows a notice if there is no image. */
function show(notice = "") {
  find("photo").hidden = !photo || isUnshown;
  find("camera").hidden = !photo;
  pauseButton.hidden = Boolean(photo);
  pauseButton.textContent = isPaused ? "Resume" : "Pause";
  pauseButton.setAttribute("aria-pressed", String(isPaused));
  find("notice").textContent = notice;
  find("notice").hidden = !notice;
  find("shutter").disabled = !(photo || camera.isOn);
  const badge = find("badge");
  badge.hidden = !(photo || camera.isOn);
  badge.textContent = photo ? "Photo" : "Live";
  badge.classList.toggle("live", !photo);
  document.body.dataset.source = photo ? "photo" : camera.isOn ? "live" : isPaused || document.hidden ? "paused" : "none";
}

/** Starts the camera, unless there is a photo, the page is paused, or it is hidden. */
async function open() {
  generation += 1;
  const startGeneration = sourceGeneration += 1;
  // The next image has no result yet.
  publish("result", null);
  if (photo || isPaused || document.hidden) {
    camera.stop();
    show(photo ? photoNotice() : "Paused: the camera is off.");
    if (photo) classify();
    return;
  }
  show("Starting the camera …");
  try {
    await camera.start();
  } catch (error) {
    if (startGeneration === sourceGeneration) show(`${error.message} Choose a photo, or drop one here.`);
    return;
  }
  if (startGeneration !== sourceGeneration) return;
  show();
  classify();
}

function onDisconnect() {
  generation += 1;
  sourceGeneration += 1;
  publish("result", null);
  show("The camera was disconnected. Choose a photo, or drop one here; or connect the camera again and reload the page.");
}

function choose(file) {
  if (!file) return;
  URL.revokeObjectURL(find("photo").src);
  photo = file;
  [isUnshown, isReadable, failures] = [false, undefined, 0];
  find("photo").src = URL.createObjectURL(file);
  showMessage("");
  open();
}

find("photo").addEventListener("error", () => {
  find("photo").hidden = isUnshown = true;
  if (photo) show(photoNotice());
});
find("file").addEventListener("change", (event) => {
  choose(event.target.files[0]);
  event.target.value = "";
});
find("camera").addEventListener("click", () => {
  photo = null;
  find("file").focus();
  open();
});
pauseButton.addEventListener("click", () => {
  isPaused = !isPaused;
  open();
});
document.addEventListener("visibilitychange", open);
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  // Examples are dragged between classes only.
  if (event.dataTransfer?.types.includes("Files")) document.body.classList.add("dropping");
});
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("dropping");
});
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  if (event.dataTransfer.items[0]?.webkitGetAsEntry()?.isDirectory) return showMessage("This is a folder; drop one of its photos.");
  const { files } = event.dataTransfer;
  choose(files[0]);
  if (files.length > 1) {
    showMessage(`The page shows only the first of ${files.length} photos. To use them all, drop them on a class in the panel Train, or on the panel Boxes.`);
  }
});
subscribe("model", (model) => {
  hasModel = model.name !== undefined;
  generation += 1;
  classify();
});
open();
