// Training curves: loss and accuracy.

import { make, makeSVG, percent } from "./parts.js";

const width = 320, height = 130, left = 40, bottom = 20, top = 8;

function chart(name, className, points, value, maximum, text, tick = text) {
  const steps = points[0]?.steps ?? 1;
  const x = (point) => left + (width - left - 8) * (point.step / steps);
  const y = (number) => top + (height - top - bottom) * (1 - number / maximum);
  const svg = makeSVG("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  for (const fraction of [0, 0.5, 1]) {
    const level = y(fraction * maximum);
    svg.append(
      makeSVG("line", { class: "grid", x1: left, x2: width - 8, y1: level, y2: level }),
      makeSVG("text", { class: "tick end", x: left - 6, y: level + 4 }, tick(fraction * maximum)));
  }
  svg.append(makeSVG("text", { class: "tick end", x: width - 8, y: height - 4 }, String(steps)));
  const line = points.map((point) => `${x(point).toFixed(1)},${y(value(point)).toFixed(1)}`).join(" ");
  svg.append(makeSVG("polyline", { class: "line", points: line }));
  const last = points.at(-1);
  if (last) svg.append(makeSVG("circle", { cx: x(last), cy: y(value(last)), r: 3.5 }));
  const current = last ? text(value(last)) : "–";
  svg.setAttribute("aria-label", `${name} by step: ${current} after ${last?.step ?? 0} of ${steps}`);
  return make("figure", { className: `chart ${className}`, "aria-label": name },
    make("figcaption", {}, make("span", { textContent: name }), make("b", { textContent: current })), svg);
}

/** Returns a format for losses up to a maximum, with which the maximum and its half differ: "0.30" up to 0.3, and "4e-5" up to 0.00004. */
function lossFormat(maximum) {
  const digits = Math.max(2, Math.ceil(-Math.log10(maximum)) + 1);
  return (loss) => (digits <= 4 ? loss.toFixed(digits) : loss === 0 ? "0" : loss.toExponential(0));
}

/** Draws the training curves of images that `subject` names; a run of a single step has none. */
export function showCurves(container, points, subject = "on the examples") {
  if (!points.length || points[0].steps === 1) return container.replaceChildren();
  const maximumLoss = Math.max(...points.map((point) => point.loss), 1e-6);
  container.replaceChildren(
    chart(`Loss ${subject}`, "loss", points, (point) => point.loss, maximumLoss, lossFormat(maximumLoss)),
    chart(`Accuracy ${subject}`, "accuracy", points, (point) => point.accuracy, 1, percent, (fraction) => `${fraction * 100} %`));
}
