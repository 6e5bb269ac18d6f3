// Teaching: hold a button to collect examples of a class, train on them, and follow the training curves.

import { showCurves } from "./curves.js";
import { isLive, picture } from "./eye.js";
import { asTyped, fill, find, focusOn, make, patience, pause, quoted, say, tell, trying, write } from "./parts.js";
import { server } from "./server.js";

/** The time between examples while a button is held, in milliseconds. */
const interval = 200;

/** The current press of a class button. */
let collecting = null;
let collected = { classes: [], shortage: undefined };
let stage = "none";
let model = null;

/** The other pages of this studio, which update when this page teaches. */
const others = new BroadcastChannel("imprint-studio");
const tellOthers = () => others.postMessage("taught");

async function collect(label) {
  if (collecting !== null) return;
  // A new object per press, because an earlier, released press may still wait for its next example.
  const press = collecting = { label };
  find("classes").dataset.collecting = label;
  let taken;
  // A tap takes one example, and so does a photo.
  do {
    const began = performance.now();
    taken = await trying(async () => {
      const blob = await picture();
      if (!blob) throw new Error("There is no picture: start the camera or choose a photo.");
      show(await server.addExample(label, blob));
      return true;
    });
    if (!taken || !isLive()) break;
    await pause(Math.max(0, interval - (performance.now() - began)));
  } while (collecting === press);
  if (collecting === press) release(label);
  if (taken) say(`${quoted(label)}: ${countOf(label)}.`);
  tellOthers();
}

/** Ends the press of a class button, but not a new press on another button. */
function release(label) {
  if (collecting?.label !== label) return;
  collecting = null;
  delete find("classes").dataset.collecting;
}

function countOf(label) {
  const count = collected.classes.find((one) => one.label === label)?.count ?? 0;
  return count === 1 ? "1 example" : `${count} examples`;
}

/** The list item of a class, created once so that a held button is never replaced. */
function item(label) {
  const letGo = () => release(label);
  const hold = make("button", {
    className: "hold", textContent: "Hold to collect", "aria-label": `Hold to collect examples of ${label}`,
    onpointerdown: (event) => {
      if (event.button !== 0) return;
      hold.setPointerCapture(event.pointerId);
      collect(label);
    },
    onpointerup: letGo, onpointercancel: letGo, onlostpointercapture: letGo, onblur: letGo,
    oncontextmenu: (event) => event.preventDefault(),
    onkeydown: (event) => {
      if (event.key !== " " && event.key !== "Enter") return;
      event.preventDefault();
      if (!event.repeat) collect(label);
    },
    onkeyup: letGo,
    // Assistive technology sends only clicks.
    onclick: (event) => { if (event.detail === 0 && collecting === null) { collect(label); letGo(); } },
  });
  const remove = make("button", {
    className: "quiet", textContent: "Delete", "aria-label": `Delete ${label} and its examples`,
    onclick: () => trying(async () => {
      show(await server.removeClass(label));
      tellOthers();
      focusOn(find("class-name"));
    }),
  });
  return make("li", {},
    make("span", { className: "name" }, make("bdi", { textContent: label }), make("span", { className: "count soft" })), hold, remove);
}

function show(next = collected) {
  collected = next;
  fill(find("classes"), next.classes.map(({ label }) => label), item);
  for (const element of find("classes").children) element.querySelector(".count").textContent = countOf(element.key);
  const megabytes = (next.byteCount / 2 ** 20).toFixed(1);
  find("room").textContent =
    `Examples use ${megabytes} of ${next.byteLimit / 2 ** 20} MB of memory, and are deleted when the studio ends.`;
  const isRunning = stage === "running";
  find("shortage").textContent = isRunning ? "" : next.shortage ?? "There are enough examples to learn from.";
  find("start").disabled = isRunning || next.shortage !== undefined;
  find("start").hidden = isRunning;
  find("stop").hidden = !isRunning;
  find("revert").hidden = isRunning || !model?.hasLearned;
  find("learned").hidden = isRunning || !model?.hasLearned;
}

function introduction(model) {
  if (!model.personalizes) return "Add two or more classes, collect examples of each, and train your own model.";
  if (model.learnsNewLabels) return "Teach the model its own labels or new ones with a few examples; training takes about a second.";
  return `The model detects logos and cannot learn new ones. Show it pictures of its labels: ${model.labels.map(quoted).join(", ")}.`;
}

/** Fetches the model in use, and notifies all parts of the page. */
async function refresh() {
  model = await server.model();
  document.body.dataset.model = model.name === undefined ? "none" : "some";
  const isTuned = model.hasLearned && model.personalizes;
  find("model").textContent = model.name === undefined ? "No model yet: teach two classes" : model.name + (isTuned ? ", personalised" : "");
  find("start").textContent = model.personalizes ? "Personalise" : "Train a model";
  find("learned").download = model.personalizes ? "personalization.imprint" : "model.imprint";
  find("teach-intro").textContent = introduction(model);
  show();
  tell("model", model);
}

/** Follows a training run to its end. */
async function follow(lesson) {
  let written = -Infinity, failures = 0;
  for (;;) {
    // Screen readers announce progress once a second, and changes of state at once.
    const now = performance.now();
    if (lesson.stage !== stage || now - written >= 1000) {
      write("lesson", lesson.message);
      written = now;
    }
    ({ stage } = lesson);
    find("lesson").dataset.stage = stage;
    showCurves(find("curves"), lesson.points);
    show();
    if (stage !== "running") break;
    try {
      lesson = await server.lesson(lesson.version);
      failures = 0;
    } catch (error) {
      failures += 1;
      await pause(patience(error, failures));
    }
  }
  await trying(refresh);
}

find("class-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = find("class-name"), label = asTyped(field.value, model?.labels ?? []) ?? field.value.trim();
  if (!label) return focusOn(field);
  trying(async () => {
    show(await server.addClass(label));
    tellOthers();
    field.value = "";
    [...find("classes").children].find((element) => element.key === label)?.querySelector(".hold").focus();
  });
});
find("start").addEventListener("click", () => trying(async () => {
  const lesson = await server.start();
  tellOthers();
  const following = follow(lesson);
  focusOn(find("stop"));
  await following;
  focusOn(find("start"));
}));
find("stop").addEventListener("click", () => trying(() => server.stop()));
find("revert").addEventListener("click", () => trying(async () => {
  await server.revert();
  tellOthers();
  showCurves(find("curves"), []);
  write("lesson", "The original model is in use again.");
  await refresh();
  focusOn(find("class-name"));
}));
addEventListener("blur", () => release(collecting?.label));

others.addEventListener("message", () => { if (stage !== "running") trying(openTeaching); });

/** Shows the current state, including a training run that was already running when the page was loaded. */
export async function openTeaching() {
  collected = await server.examples();
  await refresh();
  const lesson = await server.lesson(-1);
  if (lesson.stage !== "none") return follow(lesson);
  ({ stage } = lesson);
  write("lesson", "");
  showCurves(find("curves"), []);
  show();
}
