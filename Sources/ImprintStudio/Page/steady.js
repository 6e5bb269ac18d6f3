// Steady results of the camera: small changes of a confidence change neither its figure nor the order of the labels.

import { percent } from "./parts.js";

/** The change of a confidence from which its figure changes. */
const step = 0.015;
/** The lead with which another label becomes the best one. */
const lead = 0.03;

/** Rounds a confidence to whole percent; only from 99.95 % to 100 %. */
const whole = (confidence) => Math.min(Math.round(confidence * 100), confidence < 0.9995 ? 99 : 100) / 100;

/** Adds the shown confidence to an item: that of the item before, unless it has changed by a step. */
function withFigure(item, before) {
  const isSteady = before?.shown !== undefined && Math.abs(item.confidence - before.shown) < step;
  return { ...item, shown: isSteady ? before.shown : whole(item.confidence) };
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

/** Pairs the objects with those of the previous result: the same label, and at least half of the area in common. */
function pairedObjects(objects, previous) {
  const free = new Set(previous.keys());
  return objects.map((object, index) => {
    const match = [...free].filter((one) => previous[one].label === object.label && iou(previous[one].box, object.box) >= 0.5)
      .sort((one, other) => iou(previous[other].box, object.box) - iou(previous[one].box, object.box))[0];
    free.delete(match);
    return [withFigure(object, previous[match]), match ?? previous.length + index];
  });
}

/** Returns a result with a shown confidence of each item, given the previous steady result, or `null` for the first one. */
export function steady(result, previous) {
  const before = new Map(previous?.observations.map((item, index) => [item.label, { ...item, index }]));
  const count = before.size;
  const labels = result.observations.map((item, index) => [withFigure(item, before.get(item.label)), before.get(item.label)?.index ?? count + index]);
  const objects = result.objects && inOrder(pairedObjects(result.objects, previous?.objects ?? []));
  return { ...result, ["observations"]: inOrder(labels), ...objects && { objects } };
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
