// The examples of a class: their thumbnails, and the actions for one of them.

import { attempt, find, focusOn, make, quoted, updateList } from "./parts.js";

/** The type of a dragged example. */
export const dragType = "application/x-imprint-example";

/** The number of the example whose actions are shown, if any. */
let chosen = null;

/** Returns the element of an example, if it is shown. */
export const thumbnailOf = (id) => find("classes").querySelector(`[data-example="${id}"]`);

/** Moves the focus with an arrow key, Home or End; returns whether the key does this. */
export function moveFocus(thumbnails, current, key) {
  const columns = thumbnails.filter(({ offsetTop }) => offsetTop === thumbnails[0].offsetTop).length;
  const index = thumbnails.indexOf(current);
  const next = { ArrowRight: index + 1, ArrowLeft: index - 1, ArrowDown: index + columns, ArrowUp: index - columns, Home: 0, End: thumbnails.length - 1 }[key];
  if (next === undefined) return false;
  focusOn(thumbnails[next]);
  return true;
}

/**
 * Creates the list of the examples of a class, newest first, and the actions for the chosen one.
 * `actions` has `removeExample(id)`, `moveExample(id, label)` and `show()`.
 */
export function makeExamples(label, actions) {
  const list = make("ul", { className: "examples", "aria-label": `Examples of ${label}` });
  const thumbnails = () => [...list.querySelectorAll(".thumbnail")];

  /** Changes an example that then leaves the list, and moves the focus to the next one. */
  const take = (id, change) => attempt(async () => {
    const all = thumbnails(), index = all.findIndex((one) => Number(one.dataset.example) === id);
    const neighbour = all[index + 1] ?? all[index - 1], card = list.closest("#classes > li");
    await change();
    if (chosen === id) chosen = null;
    actions.show();
    focusOn(neighbour?.isConnected ? neighbour : card.querySelector(".hold"));
  });
  const remove = (id) => take(id, () => actions.removeExample(id));
  const choose = (id) => {
    chosen = chosen === id ? null : id;
    actions.show();
  };

  const item = (id) => make("li", {},
    make("span", {
      className: "thumbnail", role: "button", tabIndex: -1, draggable: true, onclick: () => choose(id),
      ondragstart: (event) => {
        event.dataTransfer.setData(dragType, String(id));
        event.dataTransfer.effectAllowed = "move";
      },
    }, make("img", { src: `examples/${id}`, alt: "", loading: "lazy", draggable: false })),
    // The keyboard deletes with the key Delete.
    make("button", { className: "remove", textContent: "×", tabIndex: -1, onclick: () => remove(id) }));

  list.addEventListener("keydown", (event) => {
    const thumbnail = event.target.closest(".thumbnail");
    if (!thumbnail || event.ctrlKey || event.metaKey || event.altKey) return;
    const id = Number(thumbnail.dataset.example);
    if (event.key === "Enter" || event.key === " ") choose(id);
    else if (event.key === "Delete" || event.key === "Backspace") remove(id);
    else if (event.key === "Escape" && chosen === id) choose(id);
    else if (!moveFocus(thumbnails(), thumbnail, event.key)) return;
    event.preventDefault();
  });
  // Tab reaches one thumbnail of the list: the one that had the focus.
  list.addEventListener("focusin", ({ target }) => {
    if (target.matches(".thumbnail")) for (const one of thumbnails()) one.tabIndex = one === target ? 0 : -1;
  });

  const picture = make("img", { alt: "" }), target = make("select");
  const move = make("button", {
    textContent: "Move",
    onclick: () => {
      const [id, other] = [chosen, target.value];
      take(id, () => actions.moveExample(id, other));
    },
  });
  const field = make("span", { className: "field" }, make("label", {}, "Move to ", target), move);
  const close = () => {
    const thumbnail = thumbnailOf(chosen);
    choose(chosen);
    focusOn(thumbnail);
  };
  const area = make("div", {
    className: "chosen", role: "group", hidden: true,
    onkeydown: (event) => { if (event.key === "Escape") close(); },
  }, picture, make("div", { className: "row" }, field,
    make("button", { textContent: "Delete", onclick: () => remove(chosen) }),
    make("button", { className: "close", textContent: "Close", onclick: close })));

  /** Shows the examples with these numbers; `labels` are the labels of all classes. */
  function update(ids, labels) {
    updateList(list, ids.toReversed(), item);
    list.hidden = !ids.length;
    const all = thumbnails();
    for (const [index, thumbnail] of all.entries()) {
      const id = list.children[index].key, name = `Example ${ids.length - index} of ${label}`;
      thumbnail.dataset.example = id;
      if (thumbnail.getAttribute("aria-label") !== name) {
        thumbnail.setAttribute("aria-label", name);
        thumbnail.nextElementSibling.setAttribute("aria-label", `Delete example ${ids.length - index} of ${label}`);
      }
      thumbnail.setAttribute("aria-expanded", String(id === chosen));
    }
    if (all.length && !all.some(({ tabIndex }) => tabIndex === 0)) all[0].tabIndex = 0;
    area.hidden = !ids.includes(chosen);
    if (area.hidden) return;
    const source = `examples/${chosen}`;
    if (picture.getAttribute("src") !== source) picture.src = source;
    area.setAttribute("aria-label", `Actions for example ${ids.indexOf(chosen) + 1} of ${label}`);
    move.setAttribute("aria-label", `Move the example of ${label}`);
    const others = labels.filter((other) => other !== label);
    updateList(target, others, (other) => new Option(quoted(other), other));
    field.hidden = !others.length;
  }
  return { list, area, update };
}
