// Artwork of logos, and training a detector from boxes and artwork.

import { saveBoxes } from "./boxes.js";
import { attempt, find, focusOn, make, publish, setText, showMessage, subscribe, updateList } from "./parts.js";
import { server } from "./server.js";
import { followRun, revert } from "./training.js";

let content = { artwork: [], photos: [], shortage: undefined };
let status = { stage: "none" };
let model = null;
/** The title of the contact sheet that is shown, if any. */
let sheet;

function artworkItem({ id, label, name, notes }) {
  return make("li", {}, make("img", { src: `artwork?id=${id}`, alt: `Artwork of ${label}` }),
    make("span", { className: "name" }, make("bdi", { textContent: label }), make("span", { className: "soft small", textContent: name }),
      ...notes.map((textContent) => make("span", { className: "small", textContent }))),
    make("button", {
      className: "quiet", textContent: "Delete", "aria-label": `Delete the artwork ${name} of ${label}`,
      onclick: () => attempt(async () => {
        if (!confirm(`Delete the artwork ${name} of ${label}?`)) return;
        publish("artwork", await server.removeArtwork(id));
        focusOn(find("artwork-label"));
      }),
    }));
}

function show() {
  updateList(find("artwork-list"), content.artwork, artworkItem, ({ id, label }) => `${id} ${label}`);
  const isRunning = status.stage === "running";
  setText("detector-shortage", isRunning ? "" : content.shortage ?? "There is enough to train a detector.");
  find("detector-start").hidden = isRunning;
  find("detector-start").disabled = isRunning || content.shortage !== undefined;
  find("detector-stop").hidden = !isRunning;
  find("detector-keep").hidden = !isRunning || !status.canKeepBest;
  find("detector-length").disabled = isRunning;
  const hasDetector = !isRunning && model?.learned === "detector";
  find("detector-file").hidden = find("detector-revert").hidden = !hasDetector;
}

async function addArtwork(files) {
  const field = find("artwork-label"), label = field.value.trim();
  if (!files.length) return;
  field.setCustomValidity(label ? "" : "Type the label of the logo first.");
  if (!field.reportValidity()) return;
  const errors = [];
  for (const file of files) {
    try {
      publish("artwork", await server.addArtwork(label, file));
    } catch (error) {
      errors.push(error.message);
    }
  }
  showMessage(errors.length ? errors.join(" ") : `Added ${files.length === 1 ? "the artwork" : `${files.length} images of artwork`} of “${label}”.`);
}

find("artwork-label").addEventListener("input", (event) => event.target.setCustomValidity(""));
find("artwork-files").addEventListener("change", (event) => {
  const files = [...event.target.files];
  event.target.value = "";
  attempt(() => addArtwork(files));
});
find("artwork-area").addEventListener("drop", (event) => {
  // Elsewhere in this panel, a dropped image is a photo with boxes.
  event.preventDefault();
  event.stopPropagation();
  document.body.classList.remove("dropping");
  attempt(() => addArtwork([...event.dataTransfer.files]));
});
find("detector-start").addEventListener("click", () => attempt(async () => {
  await saveBoxes();
  await followRun(() => server.startDetector(find("detector-length").value), "detector-stop", "detector-start");
}));
find("detector-stop").addEventListener("click", () => attempt(() => server.stopTraining()));
find("detector-keep").addEventListener("click", () => attempt(async () => {
  await server.stopTraining("best");
  focusOn(find("detector-stop"));
}));
find("detector-revert").addEventListener("click", () => attempt(revert));

subscribe("boxes", (next) => {
  content = next;
  show();
});
subscribe("model", (next) => {
  model = next;
  show();
});
subscribe("training", (next) => {
  status = next;
  // The panel of the logo has its own composites.
  find("sheet-area").hidden = status.sheet === undefined || status.panel !== "annotate";
  if (status.sheet !== sheet) {
    sheet = status.sheet;
    find("sheet-title").textContent = sheet ?? "";
    if (sheet === undefined) find("sheet").removeAttribute("src");
    else find("sheet").src = `sheet?run=${status.version}`;
  }
  show();
});
