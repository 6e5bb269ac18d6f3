// The confidence gauge: shows the confidence of one label. With a detector, it shows the confidence of the best object.

import { find, makeSVG, subscribe } from "./parts.js";
import { figure, shownConfidence, shownLabels } from "./steady.js";

const dial = find("dial"), shown = find("shown"), meter = find("meter");
const centre = { x: 160, y: 156 }, radius = 126;

/** Returns the point on the gauge for a fraction, at a distance from the centre. */
function pointAt(fraction, distance) {
  const angle = Math.PI * (1 - fraction);
  return [centre.x + distance * Math.cos(angle), centre.y - distance * Math.sin(angle)].map((value) => value.toFixed(2));
}

const arc = (from, to, distance) => `M${pointAt(from, distance)}A${distance} ${distance} 0 0 1 ${pointAt(to, distance)}`;
const filledArc = makeSVG("path", { class: "full", d: arc(0, 1, radius), pathLength: 1 });
const pointer = makeSVG("g", { class: "pointer" },
  makeSVG("path", { d: `M${centre.x - 5} ${centre.y}L${centre.x} ${centre.y - radius + 22}L${centre.x + 5} ${centre.y}z` }),
  makeSVG("circle", { cx: centre.x, cy: centre.y, r: 9 }));
dial.append(makeSVG("path", { class: "rim", d: arc(0, 1, radius) }), filledArc);
for (let tick = 0; tick <= 20; tick++) {
  const [x1, y1] = pointAt(tick / 20, radius - 12), [x2, y2] = pointAt(tick / 20, radius - (tick % 5 ? 17 : 22));
  dial.append(makeSVG("line", { class: tick % 5 ? "tick" : "tick main", x1, y1, x2, y2 }));
  if (tick % 5 === 0) {
    const [x, y] = pointAt(tick / 20, radius + 18);
    dial.append(makeSVG("text", { x, y: Number(y) + 4, class: "middle" }, String(tick * 5)));
  }
}
dial.append(pointer);

let result = null;
/** The last announcement to screen readers and its time, so that it is not repeated with every result. */
let announcement = { label: null, confidence: 0, time: -Infinity };

function announce(label, confidence, text) {
  const now = performance.now();
  const hasChanged = label !== announcement.label || Math.abs(confidence - announcement.confidence) >= 0.1;
  if (!hasChanged || now - announcement.time < 4000) return;
  announcement = { label, confidence, time: now };
  find("spoken").textContent = text;
}

/** Returns the label on the gauge with its confidence; `undefined` without a result, and if a detector finds no objects. */
function shownItem() {
  const labels = result ? shownLabels(result) : [];
  if (!shown.value) return labels[0];
  return labels.find(({ label }) => label === shown.value) ?? (result?.objects && { label: shown.value, confidence: 0, shown: 0 });
}

/** Returns the text on the gauge if it shows no label. */
function emptyText() {
  if (result?.objects) return "No objects found";
  return document.body.dataset.model === "none" ? "No model yet" : "No result yet";
}

function show() {
  const classification = shownItem();
  // A chosen label is always shown; the best label only if the image is like the training photos.
  const isRejected = Boolean(classification && result.rejected && !shown.value);
  const confidence = isRejected || !classification ? 0 : shownConfidence(classification);
  pointer.style.transform = `rotate(${confidence * 180 - 90}deg)`;
  filledArc.style.strokeDashoffset = String(1 - confidence);
  meter.classList.toggle("idle", !classification || isRejected);
  const noneOfThese = isRejected ? `None of these, closest: ${classification.label}` : "";
  find("label").textContent = isRejected ? noneOfThese : classification ? classification.label : emptyText();
  find("percent").textContent = classification && !isRejected ? figure(classification) : "–";
  meter.setAttribute("aria-valuenow", (confidence * 100).toFixed(1));
  meter.setAttribute("aria-valuetext", isRejected ? noneOfThese : classification ? `${classification.label}, ${figure(classification)}` : emptyText().toLowerCase());
  if (isRejected) announce("", 0, "None of these");
  else if (classification) announce(classification.label, confidence, `${classification.label}, ${Math.round(confidence * 100)} percent`);
}

shown.addEventListener("change", show);
subscribe("result", (next) => {
  result = next;
  show();
});
subscribe("model", (model) => {
  const chosen = shown.value;
  // A detector also has a label of the background.
  const labels = model.objectLabels ?? model.labels;
  shown.replaceChildren(new Option(model.objectLabels ? "the best object" : "the best label", ""), ...labels.map((label) => new Option(label, label)));
  shown.value = labels.includes(chosen) ? chosen : "";
  result = null;
  show();
});
