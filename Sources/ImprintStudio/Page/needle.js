// The confidence gauge: the confidence of one label, once a second.

import { draw, find, hear, percent } from "./parts.js";

const dial = find("dial"), shown = find("shown"), meter = find("meter");
const centre = { x: 160, y: 156 }, radius = 126;

/** The point on the gauge for a fraction, at a distance from the centre. */
function at(share, distance) {
  const angle = Math.PI * (1 - share);
  return [centre.x + distance * Math.cos(angle), centre.y - distance * Math.sin(angle)].map((value) => value.toFixed(2));
}

const arc = (from, to, distance) => `M${at(from, distance)}A${distance} ${distance} 0 0 1 ${at(to, distance)}`;
const full = draw("path", { class: "full", d: arc(0, 1, radius), pathLength: 1 });
const needle = draw("g", { class: "needle" },
  draw("path", { d: `M${centre.x - 5} ${centre.y}L${centre.x} ${centre.y - radius + 22}L${centre.x + 5} ${centre.y}z` }),
  draw("circle", { cx: centre.x, cy: centre.y, r: 9 }));
dial.append(draw("path", { class: "rim", d: arc(0, 1, radius) }), full);
for (let tick = 0; tick <= 20; tick++) {
  const [x1, y1] = at(tick / 20, radius - 12), [x2, y2] = at(tick / 20, radius - (tick % 5 ? 17 : 22));
  dial.append(draw("line", { class: tick % 5 ? "tick" : "tick main", x1, y1, x2, y2 }));
  if (tick % 5 === 0) {
    const [x, y] = at(tick / 20, radius + 18);
    dial.append(draw("text", { x, y: Number(y) + 4, class: "middle" }, String(tick * 5)));
  }
}
dial.append(needle);

let sight = null;
/** The last announcement to screen readers and its time, so that it is not repeated every second. */
let spoken = { label: "", confidence: 0, at: -Infinity };

function speak(label, confidence) {
  const now = performance.now();
  const isNews = label !== spoken.label || Math.abs(confidence - spoken.confidence) >= 0.1;
  if (!isNews || now - spoken.at < 4000) return;
  spoken = { label, confidence, at: now };
  find("spoken").textContent = `${label}, ${Math.round(confidence * 100)} percent`;
}

function show() {
  const seen = shown.value ? sight?.observations.find((one) => one.label === shown.value) : sight?.observations[0];
  const confidence = seen?.confidence ?? 0;
  needle.style.transform = `rotate(${confidence * 180 - 90}deg)`;
  full.style.strokeDashoffset = String(1 - confidence);
  meter.classList.toggle("idle", !seen);
  find("label").textContent = seen ? seen.label : document.body.dataset.model === "none" ? "No model yet" : "Nothing yet";
  find("percent").textContent = seen ? percent(confidence) : "–";
  meter.setAttribute("aria-valuenow", (confidence * 100).toFixed(1));
  meter.setAttribute("aria-valuetext", seen ? `${seen.label}, ${percent(confidence)}` : "nothing yet");
  if (seen) speak(seen.label, confidence);
}

shown.addEventListener("change", show);
hear("seen", (next) => {
  sight = next;
  show();
});
hear("model", (model) => {
  const chosen = shown.value;
  shown.replaceChildren(new Option("the best label", ""), ...model.labels.map((label) => new Option(label, label)));
  shown.value = model.labels.includes(chosen) ? chosen : "";
  sight = null;
  show();
});
