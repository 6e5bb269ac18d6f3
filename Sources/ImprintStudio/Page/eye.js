// The picture source: classifies the camera once a second, or a photo once. It does nothing while hidden or paused.

import { Camera } from "./camera.js";
import { find, hear, patience, say, tell } from "./parts.js";
import { server } from "./server.js";

const camera = new Camera(find("video"), lost);
const pause = find("pause");
/** The photo that replaces the camera, if any. */
let photo = null;
let isPaused = false;
let hasModel = false;
let isLooking = false;
/** Increases with every change of picture or model, so that outdated results are ignored. */
let turn = 0;
/** Increases with every change of the picture, so that outdated camera requests are ignored. */
let opening = 0;
let timer = 0;
/** The number of consecutive failures. */
let failures = 0;

/** The current picture, at full size or scaled down for the model; `null` if there is none. */
export async function picture(options) {
  if (photo) return photo;
  return camera.isOn ? camera.frame(options) : null;
}

/** Whether the camera delivers pictures. */
export const isLive = () => !photo && camera.isOn;

async function look() {
  clearTimeout(timer);
  if (isLooking || !hasModel || document.hidden || !(photo || camera.isOn)) return;
  isLooking = true;
  const began = performance.now(), mine = turn;
  let wait = 1000, isFinal = !isLive();
  try {
    const blob = await picture();
    const sight = blob && await server.classify(blob);
    if (failures) say("");
    failures = 0;
    if (sight && mine === turn) tell("seen", sight);
  } catch (error) {
    failures += 1;
    // A rejected photo is not sent again; the camera has new pictures, and a missing answer may be temporary.
    isFinal = Boolean(photo) && error.isAnswer === true;
    if (mine === turn) {
      if (isFinal) say(error.message);
      else wait = patience(error, failures);
      tell("seen", null);
      tell("failed");
    }
  }
  isLooking = false;
  if (mine !== turn) look();
  else if (!isFinal) timer = setTimeout(look, Math.max(0, wait - (performance.now() - began)));
}

/** Updates the controls, and shows a notice if there is no picture. */
function show(notice = "") {
  find("photo").hidden = !photo;
  find("camera").hidden = !photo;
  pause.hidden = Boolean(photo);
  pause.textContent = isPaused ? "Resume" : "Pause";
  pause.setAttribute("aria-pressed", String(isPaused));
  find("notice").textContent = notice;
  find("notice").hidden = !notice;
  find("shutter").disabled = !(photo || camera.isOn);
  const badge = find("badge");
  badge.hidden = !(photo || camera.isOn);
  badge.textContent = photo ? "Photo" : "Live";
  badge.classList.toggle("live", !photo);
  document.body.dataset.eye = photo ? "photo" : camera.isOn ? "live" : isPaused || document.hidden ? "paused" : "none";
}

/** Starts the camera, unless there is a photo, the page is paused, or it is hidden. */
async function open() {
  turn += 1;
  const mine = opening += 1;
  // The next picture has no result yet.
  tell("seen", null);
  if (photo || isPaused || document.hidden) {
    camera.stop();
    show(photo ? "" : "Paused: the camera is off.");
    if (photo) look();
    return;
  }
  show("Starting the camera …");
  try {
    await camera.start();
  } catch (error) {
    if (mine === opening) show(`${error.message} Choose a photo, or drop one here.`);
    return;
  }
  if (mine !== opening) return;
  show();
  look();
}

/** Handles a disconnected camera. */
function lost() {
  turn += 1;
  opening += 1;
  tell("seen", null);
  show("The camera was disconnected. Choose a photo, or drop one here; or connect the camera again and reload the page.");
}

function choose(file) {
  if (!file) return;
  URL.revokeObjectURL(find("photo").src);
  photo = file;
  failures = 0;
  find("photo").src = URL.createObjectURL(file);
  say("");
  open();
}

find("photo").addEventListener("error", () => {
  if (photo) show("This browser cannot show the picture; the model may still read it.");
  find("photo").hidden = true;
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
pause.addEventListener("click", () => {
  isPaused = !isPaused;
  open();
});
document.addEventListener("visibilitychange", open);
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dropping");
});
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("dropping");
});
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  if (event.dataTransfer.items[0]?.webkitGetAsEntry()?.isDirectory) return say("That is a folder: drop one of its photos.");
  choose(event.dataTransfer.files[0]);
});
hear("model", (model) => {
  hasModel = model.name !== undefined;
  turn += 1;
  look();
});
open();
