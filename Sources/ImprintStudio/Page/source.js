// The image source: classifies the camera up to ten times a second, or a photo once. It does nothing while hidden or paused.

import { Camera } from "./camera.js";
import { find, handleFailure, publish, showMessage, subscribe } from "./parts.js";
import { server } from "./server.js";
import { showCamera } from "./stage.js";
import { steady } from "./steady.js";

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
/** The version of the model that the page has loaded. */
let modelVersion;
let isClassifying = false;
/** Increases with every change of the source or the model, so that outdated results are ignored. */
let generation = 0;
/** Increases with every change of the source, so that outdated camera requests are ignored. */
let sourceGeneration = 0;
let timer = 0;
/** The number of consecutive failures. */
let failures = 0;
/** Whether the studio has ended, so that the camera is off until a studio responds. */
let isLost = false;
/** The latest result of the camera as the page shows it; `null` before the first one. */
let liveResult = null;
/** The number of consecutive failures after which the studio has ended. */
const failureLimit = 3;
/** The shortest time between requests for the camera, in milliseconds. */
const liveInterval = 100;
/** The time between requests that check whether the studio runs, in milliseconds. */
const pingInterval = 5000;

/** Returns the current image, at full size or scaled down for the model; `null` if there is none. */
export async function currentImage(options) {
  if (photo) return photo;
  return camera.isOn ? camera.frame(options) : null;
}

/** Returns whether the camera is the source of images. */
export const isLive = () => !photo && camera.isOn;

/** Returns whether an error means that the studio has ended, or that another studio without this page's token has its address. */
const isEnd = ({ isRejection, status }) => isRejection === false || status === 403;

/** Turns the camera off because the studio has ended. */
function release() {
  isLost = true;
  open();
}

/** Checks whether the studio runs: while it has no model, and after its end. */
async function ping() {
  clearTimeout(timer);
  if (photo || isPaused || document.hidden || (hasModel && !isLost)) return;
  const startGeneration = sourceGeneration;
  let interval = pingInterval;
  try {
    const { version } = await server.model();
    if (modelVersion !== undefined && version !== modelVersion) publish("outdated");
    if (failures) showMessage("");
    failures = 0;
    if (isLost) {
      isLost = false;
      return open();
    }
  } catch (error) {
    failures += 1;
    interval = handleFailure(error, failures);
    if (isEnd(error) && failures >= failureLimit && !isLost && startGeneration === sourceGeneration) return release();
  }
  if (startGeneration === sourceGeneration) timer = setTimeout(ping, interval);
}

async function classify() {
  clearTimeout(timer);
  if (!hasModel && camera.isOn && !photo) timer = setTimeout(ping, pingInterval);
  if (isClassifying || !hasModel || document.hidden || !(photo || camera.isOn)) return;
  isClassifying = true;
  const start = performance.now(), startGeneration = generation;
  let interval = liveInterval, isFinal = !isLive();
  try {
    const blob = await currentImage();
    const result = blob && await server.classify(blob);
    if (failures) showMessage("");
    failures = 0;
    const isCurrent = result && startGeneration === generation;
    if (isCurrent && result.modelVersion !== modelVersion) {
      // Another device has changed the model. Without the labels of the new one, the image could pass the content filter.
      isFinal = false;
      publish("outdated");
    } else if (isCurrent) {
      if (photo) showReadability(true);
      else liveResult = steady(result, liveResult);
      isLost = false;
      publish("result", photo ? result : liveResult);
    }
  } catch (error) {
    failures += 1;
    // A rejected photo is not sent again. The camera has new images, and a missing response may be temporary.
    isFinal = Boolean(photo) && error.isRejection === true;
    if (startGeneration === generation) {
      if (isFinal) {
        showReadability(false);
        showMessage(error.message, { kind: "error", isAboutImage: true });
      } else interval = handleFailure(error, failures);
      // Another device has deleted the model.
      if (error.status === 409) publish("outdated");
      liveResult = null;
      publish("result", null);
      publish("failed");
      if (isLive() && isEnd(error) && failures >= failureLimit) release();
    }
  }
  isClassifying = false;
  if (startGeneration !== generation) classify();
  else if (!isFinal) {
    // At least a fifth of the time is free for training and for the page.
    const elapsed = performance.now() - start;
    timer = setTimeout(classify, Math.max(elapsed / 4, interval - elapsed));
  }
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
  if (!isLive()) find("camera-choice").hidden = true;
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
  showCamera(camera.isFront);
  document.body.dataset.source = photo ? "photo" : camera.isOn ? "live" : isPaused || document.hidden ? "paused" : "none";
}

/** Starts the camera, unless there is a photo, the page is paused, or it is hidden. */
async function open() {
  generation += 1;
  const startGeneration = sourceGeneration += 1;
  // The next image has no result yet.
  liveResult = null;
  publish("result", null);
  if (photo || isPaused || document.hidden) {
    camera.stop();
    show(photo ? photoNotice() : "Paused: the camera is off.");
    if (photo) classify();
    return;
  }
  if (isLost) {
    camera.stop();
    show("The studio has ended, so the camera is off. It starts again when the studio responds.");
    return ping();
  }
  show("Starting the camera …");
  document.body.dataset.source = "starting";
  try {
    await camera.start();
  } catch (error) {
    if (startGeneration === sourceGeneration) show(`${error.message} Choose a photo, or drop one here.`);
    return;
  }
  if (startGeneration !== sourceGeneration) return;
  show();
  showCameras();
  classify();
}

/** Offers the cameras of this machine, if there are several. */
async function showCameras() {
  const cameras = await camera.list(), select = find("camera-select");
  find("camera-choice").hidden = cameras.length < 2 || !isLive();
  select.replaceChildren(...cameras.map(({ label, deviceId }, index) => new Option(label || `Camera ${index + 1}`, deviceId)));
  select.value = camera.id ?? "";
}

function onDisconnect() {
  generation += 1;
  sourceGeneration += 1;
  liveResult = null;
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
find("camera-select").addEventListener("change", ({ target }) => {
  camera.choose(target.value);
  camera.stop();
  open();
});
navigator.mediaDevices?.addEventListener("devicechange", () => { if (isLive()) showCameras(); });
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
  modelVersion = model.version;
  generation += 1;
  liveResult = null;
  classify();
});
open();
