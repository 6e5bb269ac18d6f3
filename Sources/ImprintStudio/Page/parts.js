// Shared helpers of the page: elements, percentages, events and messages.

export const find = (id) => document.getElementById(id);

/** Creates an element with properties and children; text is always set as text, never as HTML. */
export function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("aria-") || key === "role" || key === "list" || key === "for") element.setAttribute(key, value);
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element[key] = value;
  }
  element.append(...children);
  return element;
}

/** Creates an SVG element. */
export function makeSVG(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Formats a fraction as a percentage: "93.4 %" for 0.934. */
export const percent = (fraction) => `${(fraction * 100).toFixed(1)} %`;

/** Returns a label in quotation marks for a sentence, truncated if it is long. */
export const quoted = (label) => `“${label.length > 80 ? `${label.slice(0, 79)}…` : label}”`;

/**
 * Returns the label that equals a typed text; ignores white space, because form fields change unusual white space.
 * With `ignoresCase`, a label that differs only in upper and lower case also matches if no other label does.
 */
export function matchLabel(text, labels, { ignoresCase = false } = {}) {
  const withoutSpaces = (label) => label.replace(/\s+/gu, ""), lowercase = (label) => withoutSpaces(label).normalize().toLowerCase();
  return labels.find((label) => label === text) ?? labels.find((label) => withoutSpaces(label) === withoutSpaces(text))
    ?? (ignoresCase ? labels.find((label) => lowercase(label) === lowercase(text)) : undefined);
}

/** Saves a file in the browser's folder of downloads. */
export function download(blob, name) {
  const url = URL.createObjectURL(blob);
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

const events = new EventTarget();

/**
 * Calls `handler` for each event of a name: "result", "failed", "model", "outdated", "training", "boxes", "artwork", "message". An object that is
 * published with "outdated" gets the property `loading`, a promise that is fulfilled when the page has requested the new model.
 */
export const subscribe = (name, handler) => events.addEventListener(name, (event) => handler(event.detail));
export const publish = (name, detail) => events.dispatchEvent(new CustomEvent(name, { detail }));

/** Sets the text of an element if it has changed, so that screen readers do not repeat it. */
export function setText(id, text) {
  if (find(id).textContent !== text) find(id).textContent = text;
}

/**
 * Shows a message, which screen readers announce, next to the control that the user has used.
 * @param text The message; an empty text clears it.
 * @param kind The kind of the message: "info" or "error".
 * @param isAboutImage Whether the message is about the image or the connection, and appears under the image.
 */
export function showMessage(text, { kind = "info", isAboutImage = false } = {}) {
  setText("said", text);
  publish("message", { text, kind, isAboutImage });
}

/** Returns the result of `work`; if it fails, shows the error and returns `undefined`. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    showMessage(error.message, { kind: "error" });
    return undefined;
  }
}

/** Waits for a time in milliseconds. */
export const delay = (time) => new Promise((resolve) => setTimeout(resolve, time));

/** Shows the error of the latest of consecutive failures, and returns the delay before the next attempt, in milliseconds. */
export function handleFailure(error, failures) {
  const text = failures < 3 ? error.message : `${error.message} The page tries again every few seconds.`;
  showMessage(text, { kind: "error", isAboutImage: true });
  return Math.min(1000 * 2 ** Math.max(0, failures - 2), 10000);
}

/** Updates a list to one element per item, by key. Existing elements stay and keep the focus. */
export function updateList(list, items, build, key = (item) => item) {
  const existing = new Map([...list.children].map((element) => [element.key, element]));
  const elements = items.map((item) => existing.get(key(item)) ?? Object.assign(build(item), { key: key(item) }));
  const retained = new Set(elements);
  for (const element of [...list.children]) if (!retained.has(element)) element.remove();
  for (const [index, element] of elements.entries()) {
    if (list.children[index] !== element) list.insertBefore(element, list.children[index] ?? null);
  }
}

/** Moves the focus to an element, because the focused element is about to be removed. */
export const focusOn = (element) => element?.focus();

/** Returns whether no visible element has the focus, because the focused one was removed or hidden. */
export const isFocusLost = () => document.activeElement === document.body || !document.activeElement?.checkVisibility();
