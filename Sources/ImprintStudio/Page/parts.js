// What all parts of the page use: elements, shares as text, and news.

export const find = (id) => document.getElementById(id);

/** An element with properties and children; text is set as text, whatever it says. */
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

/** The same in SVG. */
export function draw(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** "93.4 %" for 0.934. */
export const percent = (share) => `${(share * 100).toFixed(1)} %`;

/** A label in a sentence, of which it is a part. */
export const quoted = (label) => `“${label.length > 80 ? `${label.slice(0, 79)}…` : label}”`;

/** The label that is meant where it is typed: a field of a form takes blanks from labels that have them in odd places. */
export function asTyped(text, labels) {
  const bare = (label) => label.replace(/\s+/gu, "");
  return labels.find((label) => label === text) ?? labels.find((label) => bare(label) === bare(text));
}

const news = new EventTarget();

/** Calls `take` with each piece of news of a name: "seen", "failed", "model". */
export const hear = (name, take) => news.addEventListener(name, (event) => take(event.detail));
export const tell = (name, detail) => news.dispatchEvent(new CustomEvent(name, { detail }));

/** Sets the text of an element where it is another one: a screen reader would say the same again. */
export function write(id, text) {
  if (find(id).textContent !== text) find(id).textContent = text;
}

/** Says something under the picture, to those who listen too. */
export const say = (text) => write("said", text);

/** What work gives; where it fails, why is said, and there is `undefined`. */
export async function trying(work) {
  try {
    return await work();
  } catch (error) {
    say(error.message);
    return undefined;
  }
}

export const pause = (time) => new Promise((done) => setTimeout(done, time));

/** Says what failed, so many times in a row, and gives the time after which to try again, in milliseconds. */
export function patience(error, failures) {
  say(failures < 3 ? error.message : `${error.message} The page tries again every few seconds.`);
  return Math.min(1000 * 2 ** Math.max(0, failures - 2), 10000);
}

/** Gives a list one element for each thing, by its key. Those that are there stay as they are, and so does the focus. */
export function fill(place, things, build, key = (thing) => thing) {
  const there = new Map([...place.children].map((element) => [element.key, element]));
  const wanted = things.map((thing) => there.get(key(thing)) ?? Object.assign(build(thing), { key: key(thing) }));
  const kept = new Set(wanted);
  for (const element of [...place.children]) if (!kept.has(element)) element.remove();
  for (const [index, element] of wanted.entries()) {
    if (place.children[index] !== element) place.insertBefore(element, place.children[index] ?? null);
  }
}

/** Moves the focus to an element, where that which had it is about to go. */
export const focusOn = (element) => element?.focus();
