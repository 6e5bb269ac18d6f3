// What the studio looks at: the camera once a second, or a photo once. Hidden or paused, it does nothing.

import { Camera } from "./camera.js";
import { find, hear, patience, say, tell } from "./parts.js";
import { server } from "./server.js";

const camera = new Camera(find("video"), lost);
const pause = find("pause");
/** The photo in place of the camera, if any. */
let photo = null;
let isPaused = false;
let hasModel = false;
let isLooking = false;
/** Rises with every change of the picture or the model: what was seen before it is of no interest any more. */
let turn = 0;
/** Rises with every change of the picture: a camera that was asked for before it may not be wanted any more. */
let opening = 0;
let timer = 0;
/** How many looks in a row failed. */
let failures = 0;

/** The picture of now: at full size, or small as the model looks at it; `null` where there is none. */
export async function picture(options) {
  if (photo) return photo;
  return camera.isOn ? camera.frame(options) : null;
}

/** Whether pictures follow one another. */
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
    // A photo that was refused stays what it is; a camera has other pictures, and who did not answer may do so yet.
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

/** Shows what is looked at, and why nothing is. */
function show(notice = "") {
  find("photo").hidden = !photo;
  find("camera").hidden = !photo;
  pause.hidden = Boolean(photo);
  pause.textContent = isPaused ? "Go on" : "Pause";
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

/** Looks through the camera, unless there is a photo, a pause, or nobody who sees the page. */
async function open() {
  turn += 1;
  const mine = opening += 1;
  // Nothing is known of the next picture yet.
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

/** The camera is gone. */
function lost() {
  turn += 1;
  opening += 1;
  tell("seen", null);
  show("The camera is gone. Choose a photo, or drop one here; or plug it in, and load the page anew.");
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
