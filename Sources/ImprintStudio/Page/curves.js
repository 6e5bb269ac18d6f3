// Training curves: loss and accuracy on the examples.

import { draw, make, percent } from "./parts.js";

const width = 320, height = 130, left = 40, bottom = 20, top = 8;

function chart(name, className, points, value, highest, text, tick = text) {
  const steps = points[0]?.steps ?? 1;
  const x = (point) => left + (width - left - 8) * (point.step / steps);
  const y = (share) => top + (height - top - bottom) * (1 - share / highest);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  for (const share of [0, 0.5, 1]) {
    const level = y(share * highest);
    svg.append(
      draw("line", { class: "grid", x1: left, x2: width - 8, y1: level, y2: level }),
      draw("text", { class: "tick end", x: left - 6, y: level + 4 }, tick(share * highest)));
  }
  svg.append(draw("text", { class: "tick end", x: width - 8, y: height - 4 }, String(steps)));
  const line = points.map((point) => `${x(point).toFixed(1)},${y(value(point)).toFixed(1)}`).join(" ");
  svg.append(draw("polyline", { class: "line", points: line }));
  const last = points.at(-1);
  if (last) svg.append(draw("circle", { cx: x(last), cy: y(value(last)), r: 3.5 }));
  const now = last ? text(value(last)) : "–";
  svg.setAttribute("aria-label", `${name} by step: ${now} after ${last?.step ?? 0} of ${steps}`);
  return make("figure", { className: `chart ${className}`, "aria-label": name },
    make("figcaption", {}, make("span", { textContent: name }), make("b", { textContent: now })), svg);
}

/** Draws the training curves. */
export function showCurves(container, points) {
  if (!points.length) return container.replaceChildren();
  const highest = Math.max(...points.map((point) => point.loss), 1e-6);
  container.replaceChildren(
    chart("Loss on the examples", "loss", points, (point) => point.loss, highest, (value) => value.toFixed(2)),
    chart("Accuracy on the examples", "accuracy", points, (point) => point.accuracy, 1, percent, (share) => `${share * 100} %`));
}
