// The cards of the classes: names, buttons, examples and live confidence bars.

import { dragType, makeExamples } from "./examples.js";
import { droppedFiles, photosIn } from "./files.js";
import { attempt, find, focusOn, make, subscribe, updateList } from "./parts.js";
import { figure, shownConfidence, shownLabels } from "./steady.js";

let result = null;
let modelLabels = new Set();

/** Shows the confidence in each class that the model in use has. */
function showConfidences() {
  // An image unlike the examples shows none of the classes, so the gauge does not show a confidence either.
  const labels = result && !result.rejected ? shownLabels(result) : [], items = new Map(labels.map((item) => [item.label, item]));
  for (const { key, parts } of find("classes").children) {
    const item = items.get(key);
    parts.confidence.hidden = !modelLabels.has(key);
    parts.confidence.classList.toggle("best", key === labels[0]?.label);
    parts.confidence.style.setProperty("--fraction", item ? shownConfidence(item) : 0);
    parts.number.textContent = item ? figure(item) : "–";
  }
}

/** Returns the button with the name of a class, which a click replaces by a text field. */
function makeName(label, actions) {
  const button = make("button", { className: "rename", "aria-label": `Rename ${label}`, onclick: edit },
    make("bdi", { textContent: label }), make("span", { className: "soft", "aria-hidden": "true", textContent: "✎" }));
  const name = make("span", { className: "name" }, button);
  function edit() {
    const field = make("input", { value: label, maxLength: 100, autocomplete: "off", "aria-label": `New name of ${label}`, list: "labels" });
    // A text field changes unusual white space.
    const initial = field.value;
    let isOpen = true;
    const end = (isSaved, keepsFocus) => {
      if (!isOpen) return;
      isOpen = false;
      button.hidden = false;
      field.remove();
      if (keepsFocus) focusOn(button);
      if (isSaved && field.value.trim() && field.value !== initial) actions.rename(label, field.value, keepsFocus);
    };
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      // The key would also press the button, which gets the focus.
      event.preventDefault();
      end(event.key === "Enter", true);
    });
    field.addEventListener("blur", () => end(true, false));
    button.hidden = true;
    name.append(field);
    field.focus();
    field.select();
  }
  return name;
}

/** Returns a button that chooses photos, or the photos in a folder. */
function makePicker(label, isFolder, actions) {
  const text = isFolder ? "Choose folder" : "Choose photos";
  const input = make("input", {
    className: "hidden", type: "file", multiple: true, "aria-label": isFolder ? `Choose a folder of photos of ${label}` : `Choose photos of ${label}`,
    onchange: () => attempt(async () => {
      const files = [...input.files];
      input.value = "";
      if (files.length) await actions.addFiles(label, isFolder ? photosIn(files) : files);
    }),
  });
  if (isFolder) input.webkitdirectory = true;
  else input.accept = "image/*,.heic,.heif";
  input.classList.add(isFolder ? "folder" : "photos");
  return make("label", { className: "button" }, text, input);
}

/** Creates the button that collects examples while it is held. */
function makeHold(label, { collect, release, isIdle }) {
  const endPress = () => release(label);
  const hold = make("button", {
    className: "hold", textContent: "Hold to collect", "aria-label": `Hold to collect examples of ${label}`,
    onpointerdown: (event) => {
      if (event.button !== 0) return;
      hold.setPointerCapture(event.pointerId);
      collect(label);
    },
    onpointerup: endPress, onpointercancel: endPress, onlostpointercapture: endPress, onblur: endPress,
    oncontextmenu: (event) => event.preventDefault(),
    onkeydown: (event) => {
      if (event.key !== " " && event.key !== "Enter") return;
      event.preventDefault();
      if (!event.repeat) collect(label);
    },
    onkeyup: endPress,
    // Assistive technology sends only clicks.
    onclick: (event) => { if (event.detail === 0 && isIdle()) { collect(label); endPress(); } },
  });
  return hold;
}

/** Creates the card of a class, once, so that a held button is never replaced. */
function makeCard({ label }, actions) {
  const examples = makeExamples(label, actions), number = make("span", { className: "number" });
  const confidence = make("div", { className: "confidence", hidden: true }, make("span", { className: "bar" }), number);
  const count = make("span", { className: "count soft" });
  const remove = make("button", {
    className: "quiet", textContent: "Delete", "aria-label": `Delete ${label} and its examples`, onclick: () => actions.removeClass(label),
  });
  const pickers = [false, ...("webkitdirectory" in HTMLInputElement.prototype ? [true] : [])].map((isFolder) => makePicker(label, isFolder, actions));
  const card = make("li", {
    ondragover: () => card.classList.add("target"),
    ondragleave: ({ relatedTarget }) => { if (!card.contains(relatedTarget)) card.classList.remove("target"); },
    ondrop: (event) => {
      // Elsewhere, a dropped photo replaces the camera.
      event.preventDefault();
      event.stopPropagation();
      document.body.classList.remove("dropping");
      card.classList.remove("target");
      const { dataTransfer } = event, id = dataTransfer.getData(dragType);
      attempt(async () => {
        if (id) await actions.moveExample(Number(id), label);
        else if (dataTransfer.types.includes("Files")) await actions.addFiles(label, await droppedFiles(dataTransfer));
      });
    },
  },
  make("div", { className: "card-head" }, makeName(label, actions), count, remove), confidence,
  make("div", { className: "row" }, makeHold(label, actions), ...pickers), examples.list, examples.area);
  return Object.assign(card, { parts: { confidence, number, count, remove, examples } });
}

/** Returns the number of examples as a text: "3 of 12 examples" up to the recommended number. */
const countText = (count, recommended) => (count < recommended ? `${count} of ${recommended} examples` : `${count} examples`);

/** Shows a card per class. `isPlaceholder` means that the studio has no such class yet. */
export function showCards(classes, recommendedCount, actions) {
  updateList(find("classes"), classes, (one) => makeCard(one, actions), ({ label }) => label);
  const labels = classes.map(({ label }) => label);
  for (const [index, { count, ids, isPlaceholder }] of classes.entries()) {
    const { parts } = find("classes").children[index];
    parts.count.textContent = countText(count, recommendedCount);
    parts.remove.hidden = isPlaceholder === true;
    parts.examples.update(ids, labels);
  }
  showConfidences();
}

/** Returns the card of a class. */
export const cardOf = (label) => [...find("classes").children].find(({ key }) => key === label);

subscribe("result", (next) => {
  result = next;
  showConfidences();
});
subscribe("model", (model) => {
  modelLabels = new Set(model.labels);
  result = null;
  showConfidences();
});
