// The stage: it has the shape of the camera image, mirrors front cameras, and frames the part that the model sees.

import { find, subscribe } from "./parts.js";

const picture = find("picture"), video = find("video"), frame = find("crop");
/** The width of the part that the model sees, relative to its height; `undefined` if it sees whole images. */
let cropAspectRatio;
let isFront = false;

/** Returns whether the stage shows a mirror image of the camera. The model and saved photos get the image as it is. */
export const isMirrored = () => isFront && !video.hidden;

/** Returns a box of the camera image as the stage shows it. */
export const onStage = (box) => (isMirrored() ? { ...box, x: 1 - box.x - box.width } : box);

function layOut() {
  const { videoWidth: width, videoHeight: height } = video, isOn = !video.hidden && width > 0 && height > 0;
  if (isOn) picture.style.setProperty("--ratio", width / height);
  else picture.style.removeProperty("--ratio");
  video.classList.toggle("mirrored", isMirrored());
  const scale = Math.min(picture.clientWidth / width, picture.clientHeight / height), ratio = cropAspectRatio;
  frame.hidden = !isOn || ratio === undefined || Math.abs(width / height - ratio) < 0.01;
  find("crop-note").hidden = frame.hidden;
  if (frame.hidden) return;
  const frameWidth = Math.min(width, height * ratio) * scale;
  frame.style.width = `${frameWidth}px`;
  frame.style.height = `${frameWidth / ratio}px`;
}

/** Shows the camera image; `isFrontCamera` means that the camera shows its user. */
export function showCamera(isFrontCamera) {
  isFront = isFrontCamera;
  layOut();
}

new ResizeObserver(layOut).observe(picture);
new MutationObserver(layOut).observe(video, { attributeFilter: ["hidden"] });
for (const name of ["loadedmetadata", "resize"]) video.addEventListener(name, layOut);
subscribe("model", (model) => {
  cropAspectRatio = model.cropAspectRatio;
  layOut();
});
