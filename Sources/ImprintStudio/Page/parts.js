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

const news = new EventTarget();

/** Calls `take` with each piece of news of a name: "seen", "model", "eye", "held". */
export const hear = (name, take) => news.addEventListener(name, (event) => take(event.detail));
export const tell = (name, detail) => news.dispatchEvent(new CustomEvent(name, { detail }));

/** Says something under the picture, to those who listen too. */
export const say = (text) => { find("said").textContent = text; };

/** Moves the focus to an element, where that which had it is about to go. */
export const focusOn = (element) => element?.focus();
