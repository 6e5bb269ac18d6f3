// What was seen: the top five, a text for those who cannot see it, where it is, and the gate.

import { fill, find, focusOn, hear, make, percent, write } from "./parts.js";

let sight = null;
const gated = new Set();

/** The gate's label that is surest among those that reach its threshold; `undefined` where the picture may pass. */
export function held(observations = sight?.observations ?? []) {
  const least = Number(find("gate-threshold").value);
  return observations.find((seen) => gated.has(seen.label) && seen.confidence >= least);
}

function showTop() {
  const top = sight?.observations.slice(0, 5) ?? [];
  find("top").replaceChildren(...top.map((seen) => {
    const bar = make("span", { className: "bar" });
    bar.style.setProperty("--share", seen.confidence);
    return make("li", {},
      make("bdi", { className: "name", textContent: seen.label }),
      make("span", { className: "number", textContent: percent(seen.confidence) }), bar);
  }));
  if (!top.length) find("top").append(make("li", { className: "soft", textContent: "Nothing was seen yet." }));
}

function showText() {
  const least = Number(find("alt-threshold").value);
  const sure = sight?.observations.filter((seen) => seen.confidence >= least).slice(0, 3).map((seen) => seen.label) ?? [];
  const last = sure.pop();
  find("alt").textContent = !sight ? "–" : !last ? `Nothing that the model is sure of to ${Math.round(least * 100)} %.`
    : `Picture that may show ${sure.length ? `${sure.join(", ")} and ${last}` : last}.`;
  find("copy").disabled = !last;
}

function showBox() {
  const box = sight?.observations[0]?.box;
  find("box").toggleAttribute("hidden", !box || isCovered());
  if (!box) return;
  for (const name of ["x", "y", "width", "height"]) find("box").firstElementChild.setAttribute(name, box[name]);
  // Over the picture alone, which may leave room beside it.
  const shown = ["video", "photo"].map(find).find((element) => !element.hidden);
  const width = shown?.videoWidth || shown?.naturalWidth || 4, height = shown?.videoHeight || shown?.naturalHeight || 3;
  find("box").style.aspectRatio = `${width} / ${height}`;
  find("box").classList.toggle("wide", width / height > 4 / 3);
}

/** Whether the picture is covered: also while nobody knows what it shows. */
const isCovered = () => gated.size > 0 && (!sight || Boolean(held()));

function showGate() {
  const seen = held();
  find("picture").classList.toggle("held", isCovered());
  find("curtain").hidden = !isCovered();
  find("curtain").textContent = seen ? `Held back: ${seen.label} ${percent(seen.confidence)}` : "Looking …";
  write("gate-state", !gated.size ? "The gate is open: it has no labels."
    : seen ? `Held back: “${seen.label}” was seen.`
      : sight ? "The picture may pass." : "The picture is covered until it was looked at.");
  fill(find("gated"), [...gated], chip);
}

const chip = (label) => make("li", {},
  make("bdi", { textContent: label }),
  make("button", {
    textContent: "×", "aria-label": `Take ${label} from the gate`,
    onclick: () => { gated.delete(label); show(); focusOn(find("gate-label")); },
  }));

function show() {
  showTop();
  showText();
  showGate();
  showBox();
}

for (const name of ["alt-threshold", "gate-threshold"]) {
  find(name).addEventListener("input", () => {
    find(`${name}-value`).textContent = `${Math.round(Number(find(name).value) * 100)} %`;
    show();
  });
}
find("gate-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = find("gate-label"), label = field.value.trim();
  const isKnown = [...find("labels").options].some((option) => option.value === label);
  field.setCustomValidity(isKnown ? "" : "The model has no such label.");
  if (!field.reportValidity()) return;
  gated.add(label);
  field.value = "";
  show();
});
find("gate-label").addEventListener("input", (event) => event.target.setCustomValidity(""));
find("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(find("alt").textContent);
    find("copied").textContent = "Copied.";
  } catch {
    find("copied").textContent = "The browser does not let the page copy; select the text.";
  }
});
hear("seen", (next) => {
  sight = next;
  show();
});
hear("model", (model) => {
  find("labels").replaceChildren(...model.labels.map((label) => new Option(label, label)));
  for (const label of [...gated]) if (!model.labels.includes(label)) gated.delete(label);
  sight = null;
  show();
});
