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
export function draw(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** "93.4 %" for 0.934. */
export const percent = (share) => `${(share * 100).toFixed(1)} %`;

/** A label in quotation marks for a sentence, shortened if necessary. */
export const quoted = (label) => `“${label.length > 80 ? `${label.slice(0, 79)}…` : label}”`;

/** The label that a typed text means; form fields change unusual white space, so white space is ignored. */
export function asTyped(text, labels) {
  const bare = (label) => label.replace(/\s+/gu, "");
  return labels.find((label) => label === text) ?? labels.find((label) => bare(label) === bare(text));
}

const news = new EventTarget();

/** Calls `take` for each event of a name: "seen", "failed", "model". */
export const hear = (name, take) => news.addEventListener(name, (event) => take(event.detail));
export const tell = (name, detail) => news.dispatchEvent(new CustomEvent(name, { detail }));

/** Sets the text of an element if it has changed, so that screen readers do not repeat it. */
export function write(id, text) {
  if (find(id).textContent !== text) find(id).textContent = text;
}

/** Shows a message under the picture, which screen readers announce. */
export const say = (text) => write("said", text);

/** Returns the result of `work`; if it fails, shows the error and returns `undefined`. */
export async function trying(work) {
  try {
    return await work();
  } catch (error) {
    say(error.message);
    return undefined;
  }
}

export const pause = (time) => new Promise((done) => setTimeout(done, time));

/** Shows an error after consecutive failures, and returns the delay before the next attempt, in milliseconds. */
export function patience(error, failures) {
  say(failures < 3 ? error.message : `${error.message} The page tries again every few seconds.`);
  return Math.min(1000 * 2 ** Math.max(0, failures - 2), 10000);
}

/** Updates a list to one element per item, by key. Existing elements stay, and so does the focus. */
export function fill(list, things, build, key = (thing) => thing) {
  const there = new Map([...list.children].map((element) => [element.key, element]));
  const wanted = things.map((thing) => there.get(key(thing)) ?? Object.assign(build(thing), { key: key(thing) }));
  const kept = new Set(wanted);
  for (const element of [...list.children]) if (!kept.has(element)) element.remove();
  for (const [index, element] of wanted.entries()) {
    if (list.children[index] !== element) list.insertBefore(element, list.children[index] ?? null);
  }
}

/** Moves the focus to an element, because the focused one is about to disappear. */
export const focusOn = (element) => element?.focus();
