// Draws, moves and resizes the boxes of a photo with mouse, touch and keyboard.

import { colorOf, placeLabels, describePosition } from "./overlay.js";
import { find, make } from "./parts.js";

const paper = find("paper"), list = find("box-list");
/** The boxes of the photo: label and box, relative to the photo. */
let boxes = [];
/** The selected box, if any. */
let selected = null;
let onEdit = () => {};
/** The label of the last edited box, which the next one gets. */
let lastLabel = "";
/** The current drag, if any. */
let drag = null;
/** The name of the photo. */
let photoName = null;
/** The states of the boxes before the current one, and those after it that were undone. */
let past = [], future = [];
/** The current state of the boxes in the history. */
let current = [];
/** The latest edit by key: a series of keys on one box is one step of the history. */
let keyEdit = { part: null, time: -Infinity };
/** The number of boxes that were made, which identifies them in the history. */
let madeCount = 0;

/** The maximum number of steps that can be undone. */
const historyLimit = 200;
/** The maximum time between two keys of a series, in milliseconds. */
const keyPause = 1000;

/** The minimum side of a box that is drawn, in pixels of the screen: less is a click. */
const minimumDrag = 6;
/** The minimum side of a box, as a fraction of the photo. */
const minimumSide = 0.004;

const clamp = (value, low, high) => Math.max(low, Math.min(value, high));

/** Returns a box of the same size inside the photo. */
const inside = (box) => ({ ...box, x: clamp(box.x, 0, 1 - box.width), y: clamp(box.y, 0, 1 - box.height) });

/** Returns the box between two points, as far as the photo reaches. */
function between(...points) {
  const [xs, ys] = ["x", "y"].map((axis) => points.map((point) => clamp(point[axis], 0, 1)));
  const [x, y] = [Math.min(...xs), Math.min(...ys)];
  return inside({ x, y, width: Math.max(Math.max(...xs) - x, minimumSide), height: Math.max(Math.max(...ys) - y, minimumSide) });
}

/** Returns a box with its sides moved; they stay inside the photo and in order. */
function resized(box, { left = 0, top = 0, right = 0, bottom = 0 }) {
  const x = clamp(box.x + left, 0, box.x + box.width - minimumSide), y = clamp(box.y + top, 0, box.y + box.height - minimumSide);
  return {
    x, y, width: clamp(box.x + box.width + right, x + minimumSide, 1) - x,
    height: clamp(box.y + box.height + bottom, y + minimumSide, 1) - y,
  };
}

let isLayoutPending = false;

/** Moves the labels in the photo before the next frame, so that they do not cover each other; the label of the selected box comes first. */
function layOutLabels() {
  if (isLayoutPending) return;
  isLayoutPending = true;
  requestAnimationFrame(() => {
    isLayoutPending = false;
    const { clientWidth: width, clientHeight: height } = paper, border = 2;
    const parts = selected ? [selected, ...boxes.filter((part) => part !== selected)] : boxes;
    const labels = parts.map(({ element }) => element.querySelector("bdi"));
    const areas = parts.map(({ box }) => ({ x: box.x * width, y: box.y * height, width: box.width * width, height: box.height * height }));
    const positions = placeLabels(areas, labels.map((label) => ({ width: label.offsetWidth, height: label.offsetHeight })), { width, height });
    for (const [index, label] of labels.entries()) {
      const origin = positions[index], { style } = label;
      style.visibility = origin ? "visible" : "hidden";
      if (origin) [style.left, style.top] = [`${origin.x - areas[index].x - border}px`, `${origin.y - areas[index].y - border}px`];
    }
  });
}
new ResizeObserver(layOutLabels).observe(paper);

/** Shows a box at its position. */
function updateElements(part) {
  const { x, y, width, height } = part.box, { style } = part.element;
  [style.left, style.top, style.width, style.height] = [x, y, width, height].map((value) => `${value * 100}%`);
  style.setProperty("--hue", part.label ? colorOf(part.label) : "#ffffff");
  part.element.querySelector("bdi").textContent = part.label || "no label";
  const percent = (value) => `${Math.round(value * 100)} %`;
  part.element.setAttribute("aria-label", `Box ${boxes.indexOf(part) + 1}, ${part.label || "no label"}: ${describePosition(part.box)}, `
    + `at ${percent(x)}, ${percent(y)}, ${percent(width)} wide, ${percent(height)} high`);
  part.row.querySelector(".size").textContent = `${describePosition(part.box)}, ${percent(width)} × ${percent(height)}`;
  part.row.querySelector(".mark").style.background = part.label ? colorOf(part.label) : "transparent";
  layOutLabels();
}

function select(part) {
  selected = part;
  for (const other of boxes) {
    other.element.classList.toggle("selected", other === part);
    other.row.classList.toggle("selected", other === part);
  }
  layOutLabels();
}

/** Returns the current state of the boxes for the history. Edits replace a box and never change it. */
const state = () => boxes.map(({ id, label, box, isCrowd }) => ({ id, label, box, isCrowd }));

const isEqual = (one, other) => one.length === other.length && one.every((part, index) => (
  part.id === other[index].id && part.label === other[index].label && part.box === other[index].box));

/** Returns whether two boxes differ only by rounding: the studio stores single-precision numbers. */
const isClose = (one, other) => ["x", "y", "width", "height"].every((key) => Math.abs(one[key] - other[key]) < 1e-6);

function showHistory() {
  find("box-undo").disabled = !past.length;
  find("box-redo").disabled = !future.length;
}

/** Adds the current state to the history. */
function record(part = null) {
  const next = state(), now = performance.now();
  if (isEqual(next, current)) return;
  if (!part || part !== keyEdit.part || now - keyEdit.time > keyPause) past = [...past, current].slice(-historyLimit);
  keyEdit = { part, time: now };
  [current, future] = [next, []];
  showHistory();
}

/** Records an edit and reports it; `part` is the box that a key has changed. */
function commit(part) {
  record(part);
  onEdit();
}

function detach(part) {
  boxes = boxes.filter((other) => other !== part);
  part.element.remove();
  part.row.remove();
  if (selected === part) select(null);
}

/** Puts elements into an order after the first `offset` ones of their parent; elements that are already in order keep the focus. */
function order(parent, elements, offset = 0) {
  for (const [index, element] of elements.entries()) {
    if (parent.children[index + offset] !== element) parent.insertBefore(element, parent.children[index + offset] ?? null);
  }
}

/** Shows a state of the history, and moves the focus if its element is gone. */
function restore(next) {
  const ids = new Set(next.map(({ id }) => id)), existing = new Map(boxes.map((part) => [part.id, part]));
  for (const part of boxes) if (!ids.has(part.id)) detach(part);
  boxes = [];
  for (const properties of next) {
    const part = existing.get(properties.id);
    if (part) boxes.push(Object.assign(part, properties));
    else attach({ ...properties });
  }
  order(list, boxes.map(({ row }) => row));
  // The photo is the first element.
  order(paper, boxes.map(({ element }) => element), 1);
  for (const part of boxes) {
    part.field.value = part.label;
    updateElements(part);
  }
  [current, keyEdit] = [next, { part: null, time: -Infinity }];
  showHistory();
  if (document.activeElement === document.body || document.activeElement.disabled) {
    ((selected ?? boxes.find(({ id }) => !existing.has(id)))?.element ?? find("box-add")).focus();
  }
  onEdit();
}

function remove(part) {
  const index = boxes.indexOf(part);
  detach(part);
  select(null);
  boxes.forEach(updateElements);
  (boxes[Math.min(index, boxes.length - 1)]?.element ?? find("box-add")).focus();
  commit();
}

/** The sides that an arrow key moves: by 1 % of the photo, or a tenth of it with Ctrl or Alt. */
function handleKey(event, part) {
  const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (direction) {
    const step = event.ctrlKey || event.altKey || event.metaKey ? 0.001 : 0.01, [x, y] = direction.map((one) => one * step);
    part.box = event.shiftKey ? resized(part.box, { right: x, bottom: y })
      : inside({ ...part.box, x: part.box.x + x, y: part.box.y + y });
    updateElements(part);
    commit(part);
  } else if (event.key === "Delete" || event.key === "Backspace") remove(part);
  else if (event.key === "Enter") part.row.querySelector("input").focus();
  else return;
  event.preventDefault();
}

/** Adds the elements of a box: the rectangle in the photo and the row in the list. */
function attach(part) {
  part.id ??= madeCount += 1;
  part.element = make("div", {
    className: "box", role: "application", tabIndex: 0, "aria-roledescription": "box", "aria-describedby": "editor-help",
    onfocus: () => select(part), onkeydown: (event) => handleKey(event, part),
  }, make("bdi"), ...["nw", "ne", "sw", "se"].map((corner) => make("span", { className: `corner ${corner}` })));
  const field = make("input", {
    value: part.label, list: "box-labels", maxLength: 100, placeholder: "Label", "aria-label": "Label of the box",
    onfocus: () => select(part),
    onchange: () => {
      part.label = lastLabel = field.value = field.value.trim();
      updateElements(part);
      commit();
    },
    onkeydown: (event) => { if (event.key === "Enter") part.element.focus(); },
  });
  part.field = field;
  part.row = make("li", {}, make("span", { className: "mark", "aria-hidden": "true" }), field,
    make("span", { className: "size soft small" }),
    make("button", { className: "quiet", textContent: "Delete", "aria-label": "Delete the box", onclick: () => remove(part) }));
  boxes.push(part);
  paper.append(part.element);
  list.append(part.row);
  updateElements(part);
  return part;
}

/** Adds a box that the user has drawn, and asks for its label if none is known. */
function create(box) {
  const part = attach({ label: lastLabel, box });
  select(part);
  if (part.label) part.element.focus();
  else part.row.querySelector("input").focus();
  commit();
}

/** Returns the position of a pointer, relative to the photo: outside of it, less than 0 or more than 1, so that a moved side follows the pointer. */
function position(event) {
  const { left, top, width, height } = paper.getBoundingClientRect();
  return { x: (event.clientX - left) / width, y: (event.clientY - top) / height };
}

paper.addEventListener("pointerdown", (event) => {
  if (event.button !== 0 || drag) return;
  event.preventDefault();
  const start = position(event), part = boxes.find(({ element }) => element.contains(event.target));
  const corner = event.target.closest(".corner")?.classList[1];
  // Only the selected box can be moved, so that boxes can be drawn inside others.
  const kind = corner ? "resize" : part && part === selected ? "move" : "draw";
  drag = { kind, part, corner, start, startEvent: event, box: part?.box, hasMoved: false };
  paper.setPointerCapture(event.pointerId);
});

paper.addEventListener("pointermove", (event) => {
  if (!drag || event.pointerId !== drag.startEvent.pointerId) return;
  const { kind, part, corner, start, startEvent, box } = drag, end = position(event);
  const distance = Math.max(Math.abs(event.clientX - startEvent.clientX), Math.abs(event.clientY - startEvent.clientY));
  if (!drag.hasMoved && distance < minimumDrag) return;
  drag.hasMoved = true;
  const [x, y] = [end.x - start.x, end.y - start.y];
  if (kind === "draw") {
    drag.frame ??= paper.appendChild(make("div", { className: "box drawn" }));
    const { style } = drag.frame, drawn = between(start, end);
    [style.left, style.top, style.width, style.height] = [drawn.x, drawn.y, drawn.width, drawn.height].map((one) => `${one * 100}%`);
    return;
  }
  part.box = kind === "move" ? inside({ ...box, x: box.x + x, y: box.y + y }) : resized(box, {
    ...corner.includes("w") ? { left: x } : { right: x }, ...corner.includes("n") ? { top: y } : { bottom: y },
  });
  updateElements(part);
});

/** Ends the current drag, and removes the frame of a box that is being drawn. */
function takeDrag() {
  const taken = drag;
  taken?.frame?.remove();
  drag = null;
  return taken;
}

function endDrag(event, isCancelled) {
  if (event.pointerId !== drag?.startEvent.pointerId) return;
  const { kind, part, start, box, hasMoved } = takeDrag();
  if (isCancelled) {
    if (part && kind !== "draw") {
      part.box = box;
      updateElements(part);
    }
    return;
  }
  if (kind === "draw" && hasMoved) return create(between(start, position(event)));
  if (part) part.element.focus();
  else {
    document.activeElement?.blur?.();
    select(null);
  }
  if (hasMoved) commit();
}
paper.addEventListener("pointerup", (event) => endDrag(event, false));
// The capture is also lost without a `pointerup`, for example if another panel hides the photo.
for (const name of ["pointercancel", "lostpointercapture"]) paper.addEventListener(name, (event) => endDrag(event, true));
// Browsers would drag the photo.
paper.addEventListener("dragstart", (event) => event.preventDefault());

export const editor = {
  /** Shows the boxes of a photo; `handler` is called after each edit. A change by another tab to the same photo can be undone. */
  open(objects, handler, name) {
    takeDrag();
    for (const part of boxes) detach(part);
    onEdit = handler;
    for (const { label, box, isCrowd } of objects) {
      const known = name === photoName && current.find((part) => part.label === label && isClose(part.box, box)
        && !boxes.some(({ id }) => id === part.id));
      attach(known ? { ...known } : { label, box: { ...box }, isCrowd });
    }
    if (name === photoName) record();
    else [photoName, past, future, current] = [name, [], [], state()];
    showHistory();
  },

  /** Returns whether a field is the label of a box, and its text is not being edited. */
  isUneditedLabel: (field) => boxes.some((part) => part.field === field && field.value === part.label),

  /** Undoes the last edit. */
  undo() {
    if (drag || !past.length) return;
    future.push(current);
    restore(past.pop());
  },

  /** Redoes the last edit that was undone. */
  redo() {
    if (drag || !future.length) return;
    past.push(current);
    restore(future.pop());
  },

  /** The labelled boxes. */
  get objects() {
    return boxes.filter(({ label }) => label).map(({ label, box, isCrowd }) => ({ label, box, ...isCrowd ? { isCrowd } : {} }));
  },

  /** The boxes without a label. */
  get drafts() { return boxes.filter(({ label }) => !label).map(({ box }) => box); },

  /** The number of boxes, with and without a label. */
  get count() { return boxes.length; },

  /** Adds a box in the middle of the photo, for the keyboard. */
  addInMiddle: () => create({ x: 0.35, y: 0.35, width: 0.3, height: 0.3 }),

  /** Adds detected objects, except those that resemble a box of the same label; returns the number of new boxes. */
  addDetections(objects) {
    const overlap = (one, other) => {
      const columns = Math.min(one.x + one.width, other.x + other.width) - Math.max(one.x, other.x);
      const rows = Math.min(one.y + one.height, other.y + other.height) - Math.max(one.y, other.y);
      const shared = Math.max(columns, 0) * Math.max(rows, 0);
      return shared / (one.width * one.height + other.width * other.height - shared);
    };
    const added = objects.filter(({ label, box }) => !boxes.some((part) => part.label === label && overlap(part.box, box) > 0.5));
    const first = boxes.length;
    for (const { label, box } of added) attach({ label, box: { ...box } });
    if (added.length) {
      commit();
      // The new boxes have to be checked.
      select(boxes[first]);
    }
    return added.length;
  },
};
