// The offer to install a pretrained base model, and the accuracy before and after.

import { find, focusOn, make, percent, setText } from "./parts.js";

/** The base model that the studio offers to install; `undefined` if there is none. */
let offer;

/** Shows the area with the licence, or hides it. */
function showConfirmation(isShown) {
  find("base-confirm").hidden = !isShown;
  find("base-open").setAttribute("aria-expanded", String(isShown));
}

/** Shows the offer of the studio, or hides it while the studio trains. */
export function showOffer(next, isRunning) {
  offer = next;
  find("base-offer").hidden = !offer || isRunning;
  if (find("base-offer").hidden) return showConfirmation(false);
  setText("base-open", `Install ${offer.title} (${offer.megabytes} MB)`);
  setText("base-title", `Install ${offer.title}`);
  setText("base-source", offer.source);
  setText("base-license", `Licence: ${offer.license.name}. ${offer.license.statement}`);
}

/** Shows the choice of the base model that new models start from, or hides it while the studio trains and if none is installed. */
export function showChoice(model, isRunning) {
  find("base-choice").hidden = isRunning || model?.base === undefined;
  if (find("base-choice").hidden) return;
  find("base-select").options[0].textContent = model.base;
  find("base-select").value = model.usesBuiltInBase ? "imprint" : "installed";
}

/** Calls `choose` with "imprint" or "installed" when the user chooses a base model. */
export function onChoice(choose) {
  find("base-select").addEventListener("change", () => choose(find("base-select").value));
}

/** Calls `install` with the name of the base model when the user accepts its licence. */
export function onAccept(install) {
  find("base-accept").addEventListener("click", () => install(offer.name));
}

find("base-open").addEventListener("click", () => {
  const isShown = find("base-confirm").hidden;
  showConfirmation(isShown);
  if (isShown) focusOn(find("base-title"));
});
find("base-cancel").addEventListener("click", () => {
  showConfirmation(false);
  focusOn(find("base-open"));
});

/** Shows the accuracy with both base models, or hides it if they were not compared. */
export function showComparison(comparison) {
  find("gain").hidden = !comparison;
  if (!comparison) return;
  // The studio starts from the more accurate base model.
  const [first, second] = comparison.before > comparison.after ? ["With", "With"] : ["Before, with", "Now, with"];
  const rows = [[`${first} the base model of Imprint`, comparison.before], [`${second} ${comparison.base}`, comparison.after]];
  find("gain-bars").replaceChildren(...rows.map(([name, accuracy]) => {
    const bar = make("span", { className: "bar" });
    bar.style.setProperty("--fraction", accuracy);
    return make("li", {}, make("span", { className: "name", textContent: name }),
      make("span", { className: "number", textContent: `${percent(accuracy)} (${Math.round(accuracy * comparison.count)} of ${comparison.count})` }),
      bar);
  }));
  setText("gain-text", `${comparison.folds}-fold cross-validation over ${comparison.count} examples: `
    + "a model that was trained without an example classifies it. Examples of one moment stay together as far as possible.");
}
