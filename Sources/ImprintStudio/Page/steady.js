// Steady results of the camera: averages over time, whose small changes change neither the figure of a confidence nor the order of the labels.

import { percent } from "./parts.js";

/** The change of a confidence from which its figure changes. */
const step = 0.015;
/** The lead with which another label becomes the best one. */
const lead = 0.03;
/** The time constant of the averages, and the time for which an object stays that is missing in a result, in milliseconds. */
const inertia = 300;

/** Rounds a confidence to whole percent; only from 99.95 % to 100 %. */
const whole = (confidence) => Math.min(Math.round(confidence * 100), confidence < 0.9995 ? 99 : 100) / 100;

/** Adds the average confidence and the shown one to an item. The shown one changes if the average differs from it by a step. */
function withFigure(item, before, weight) {
  const average = before ? before.average + weight * (item.confidence - before.average) : item.confidence;
  const isSteady = before && Math.abs(average - before.shown) < step;
  return { ...item, average, shown: isSteady ? before.shown : whole(average) };
}

/** Sorts items, given as [item, previous index], by the shown confidence; equal items stay in order, and the first one has a lead. */
function inOrder(pairs) {
  const score = ([{ shown }, index]) => shown + (index === 0 ? lead : 0);
  return pairs.toSorted((one, other) => score(other) - score(one) || one[1] - other[1]).map(([item]) => item);
}

/** Returns the intersection over union of two boxes. */
function iou(one, other) {
  const side = (start, length) => Math.max(0, Math.min(one[start] + one[length], other[start] + other[length]) - Math.max(one[start], other[start]));
  const common = side("x", "width") * side("y", "height");
  return common / (one.width * one.height + other.width * other.height - common) || 0;
}

/**
 * Pairs the objects with those of the previous result: the same label, and an intersection over union of at least 0.5. A previous object
 * that is missing stays for a moment, unless another object is at its position.
 */
function pairedObjects(objects, previous, weight, time) {
  const free = new Set(previous.keys());
  const pairs = objects.map((object, index) => {
    const match = [...free].filter((one) => previous[one].label === object.label && iou(previous[one].box, object.box) >= 0.5)
      .sort((one, other) => iou(previous[other].box, object.box) - iou(previous[one].box, object.box))[0];
    free.delete(match);
    return [{ ...withFigure(object, previous[match], weight), time }, match ?? previous.length + index];
  });
  // An object with a new position may have moved, so a previous one with the same label does not stay.
  const newLabels = pairs.filter(([, index]) => index >= previous.length).map(([{ label }]) => label);
  const isStaying = ({ label, box, time: seen }) => time - seen < inertia && !newLabels.includes(label) && !objects.some((other) => iou(other.box, box) >= 0.5);
  return [...pairs, ...[...free].filter((index) => isStaying(previous[index])).map((index) => [previous[index], index])];
}

/** Returns a result with the confidence to show for each item, given the previous steady result (`null` for the first one) and the time in milliseconds. */
export function steady(result, previous, time = performance.now()) {
  const weight = previous ? 1 - Math.exp((previous.time - time) / inertia) : 1;
  const before = new Map(previous?.observations.map((item, index) => [item.label, { ...item, index }]));
  const count = before.size;
  const labels = result.observations.map((item, index) => [withFigure(item, before.get(item.label), weight), before.get(item.label)?.index ?? count + index]);
  const objects = result.objects && inOrder(pairedObjects(result.objects, previous?.objects ?? [], weight, time));
  const isRejected = Number(Boolean(result.rejected)), rejection = previous ? previous.rejection + weight * (isRejected - previous.rejection) : isRejected;
  return { ...result, time, rejection, rejected: rejection >= 0.5, ["observations"]: inOrder(labels), ...objects && { objects } };
}

/** Returns the shown confidence of an item: whole percent for the camera, tenths for a photo. */
export const figure = ({ shown, confidence }) => (shown === undefined ? percent(confidence) : `${Math.round(shown * 100)} %`);

/** Returns the confidence that the page shows, as a fraction. */
export const shownConfidence = ({ shown, confidence }) => shown ?? confidence;

/** Returns the labels of a result, best first: those of the best objects if the model is a detector. */
export function shownLabels(result) {
  const { objects } = result;
  return objects?.filter(({ label }, index) => objects.findIndex((other) => other.label === label) === index) ?? result.observations;
}
