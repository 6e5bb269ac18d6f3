// The bounding boxes of objects: their colours, their labels, and the functions that draw them over an image.

import { figure, shownConfidence } from "./steady.js";

/** Colours that are bright on the dark outline of a box. */
const colors = ["#ffb454", "#59c2ff", "#9be36a", "#ff9ce0", "#ffe45c", "#c3b1ff", "#5ce8d0", "#ff9f8a"];
const colorOfLabel = new Map();
const night = "rgb(22 25 29 / 88%)";

/** Returns the colour of a label: the next one at its first use. */
export function colorOf(label) {
  if (!colorOfLabel.has(label)) colorOfLabel.set(label, colors[colorOfLabel.size % colors.length]);
  return colorOfLabel.get(label);
}

/** Returns the position of a box in the image, in words. */
export function describePosition({ x, y, width, height }) {
  const third = (centre) => Math.min(Math.max(Math.floor(centre * 3), 0), 2);
  const row = ["upper", "", "lower"][third(y + height / 2)], column = ["left", "", "right"][third(x + width / 2)];
  return row && column ? `${row} ${column}` : row ? `${row} centre` : column || "centre";
}

/** Returns the objects as a sentence for assistive technology. */
export function sentence(objects) {
  if (!objects.length) return "No objects found.";
  const named = objects.slice(0, 8).map((object) => `${object.label}, ${Math.round(shownConfidence(object) * 100)} percent, ${describePosition(object.box)}`);
  const rest = objects.length > named.length ? `; and ${objects.length - named.length} more` : "";
  return `${objects.length === 1 ? "1 object" : `${objects.length} objects`}: ${named.join("; ")}${rest}.`;
}

const overlap = (one, other) => one.x < other.x + other.width && other.x < one.x + one.width
  && one.y < other.y + other.height && other.y < one.y + one.height;
/** The maximum number of labels in an image: more cannot be read, and placing them takes long. */
const labelLimit = 40;
const clamp = (value, maximum) => Math.max(0, Math.min(value, maximum));

/**
 * Returns the position of the label of each box: the closest one to its box where it covers no other label.
 * @param boxes The boxes, most important first: x, y, width, height.
 * @param sizes The size of each label.
 * @param area The size of the area for labels, and the rectangles in it that are not available.
 * @returns A rectangle for each of the first boxes; `null` if the area has no space left, and for all other boxes.
 */
export function placeLabels(boxes, sizes, { taken = [], ...area }) {
  const placed = [...taken];
  return boxes.map((box, index) => {
    if (index >= labelLimit) return null;
    const { width, height } = sizes[index];
    const fits = ({ x, y }) => x >= 0 && y >= 0 && x + width <= area.width && y + height <= area.height;
    const columns = [clamp(box.x, area.width - width), clamp(box.x + box.width - width, area.width - width)];
    const rows = [box.y - height, box.y + box.height, box.y, box.y + box.height - height];
    const besides = rows.flatMap((y) => columns.map((x) => ({ x, y, width, height })));
    // Elsewhere, a label starts where another one ends, or at the edge.
    const distance = ({ x, y }) => (x + width / 2 - box.x - box.width / 2) ** 2 + (y + height / 2 - box.y - box.height / 2) ** 2;
    const elsewhere = () => {
      const free = [];
      for (const y of new Set([0, ...placed.flatMap((one) => [one.y + one.height, one.y - height])])) {
        for (const x of new Set([...columns, 0, ...placed.map((one) => one.x + one.width)])) free.push({ x, y, width, height });
      }
      return free.sort((one, other) => distance(one) - distance(other));
    };
    const isFree = (label) => fits(label) && !placed.some((other) => overlap(label, other));
    const label = besides.find(isFree) ?? elsewhere().find(isFree) ?? null;
    if (label) placed.push(label);
    return label;
  });
}

/** Returns a text that is truncated to a width. */
function truncated(context, text, width) {
  const characters = [...text];
  if (context.measureText(text).width <= width) return text;
  while (characters.length > 1 && context.measureText(`${characters.join("")}…`).width > width) characters.pop();
  return `${characters.join("")}…`;
}

/**
 * Draws objects with their labels: a bright line on a dark one, and light text on a dark strip, so that they are visible on any image.
 * @param context The context of a canvas.
 * @param objects The objects: label, confidence and box, relative to the image; most important first.
 * @param image The size of the image on the canvas.
 * @param size The size of the text.
 * @param area The area for labels, as for `placeLabels`.
 */
export function drawObjects(context, objects, image, size, area = image) {
  context.font = `600 ${size}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  const padding = size * 0.4, stripe = size * 0.3, line = size / 6;
  const boxes = objects.map(({ box }) => ({
    x: box.x * image.width, y: box.y * image.height, width: box.width * image.width, height: box.height * image.height,
  }));
  const texts = objects.map((object) => {
    const { label } = object, number = object.confidence === undefined ? "" : `  ${figure(object)}`;
    const room = Math.max(area.width * 0.6 - 2 * padding - stripe - context.measureText(number).width, size);
    // The isolates keep the number after the label, whatever its direction of writing.
    return `\u2068${truncated(context, label, room)}\u2069${number}`;
  });
  const labels = placeLabels(
    boxes, texts.map((text) => ({ width: context.measureText(text).width + 2 * padding + stripe, height: size * 1.5 })), area);
  for (const [color, width] of [[() => night, 2.6 * line], [colorOf, line]]) {
    context.lineWidth = width;
    for (const [index, { x, y, width: columns, height: rows }] of boxes.entries()) {
      context.strokeStyle = color(objects[index].label);
      context.strokeRect(x, y, columns, rows);
      const label = labels[index];
      // A line connects a box with a label elsewhere.
      if (!label || overlap({ x: x - 2, y: y - 2, width: columns + 4, height: rows + 4 }, label)) continue;
      context.beginPath();
      context.moveTo(Math.max(x, Math.min(label.x + label.width / 2, x + columns)), label.y < y ? y : y + rows);
      context.lineTo(label.x + label.width / 2, label.y + label.height / 2);
      context.stroke();
    }
  }
  for (const [index, label] of labels.entries()) {
    if (!label) continue;
    context.fillStyle = night;
    context.fillRect(label.x, label.y, label.width, label.height);
    context.fillStyle = colorOf(objects[index].label);
    context.fillRect(label.x, label.y, stripe, label.height);
    context.fillStyle = "#ffffff";
    context.fillText(texts[index], label.x + stripe + padding, label.y + label.height / 2);
  }
}
