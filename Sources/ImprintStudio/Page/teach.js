// Teaching: hold a button to collect examples of a class, learn from them, see the curves.

import { showCurves } from "./curves.js";
import { isLive, picture } from "./eye.js";
import { asTyped, fill, find, focusOn, make, patience, pause, quoted, say, tell, trying, write } from "./parts.js";
import { server } from "./server.js";

/** How long it is from one example to the next while a button is held, in milliseconds. */
const interval = 200;

/** The press of a button that is held: its class. */
let collecting = null;
let collected = { classes: [], shortage: undefined };
let stage = "none";
let model = null;

/** Other pages of this studio, which show what is taught here too. */
const others = new BroadcastChannel("imprint-studio");
const tellOthers = () => others.postMessage("taught");

async function collect(label) {
  if (collecting !== null) return;
  // A press of its own: one that was let go may still wait for its next example.
  const press = collecting = { label };
  find("classes").dataset.collecting = label;
  let taken;
  // A tap takes one; of a photo there is but one to take.
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

/** Ends the press of a class's button, not one that has just begun on another's. */
function release(label) {
  if (collecting?.label !== label) return;
  collecting = null;
  delete find("classes").dataset.collecting;
}

function countOf(label) {
  const count = collected.classes.find((one) => one.label === label)?.count ?? 0;
  return count === 1 ? "1 example" : `${count} examples`;
}

/** A class: its name, how much there is of it, and what to do. Made once, so that a button that is held stays. */
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
    // Of assistive technology, which knows neither of the two.
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
    `Examples take ${megabytes} of ${next.byteLimit / 2 ** 20} MB, in memory alone, and are gone when the studio ends.`;
  const isRunning = stage === "running";
  find("shortage").textContent = isRunning ? "" : next.shortage ?? "There are enough examples to learn from.";
  find("start").disabled = isRunning || next.shortage !== undefined;
  find("start").hidden = isRunning;
  find("stop").hidden = !isRunning;
  find("revert").hidden = isRunning || !model?.hasLearned;
  find("learned").hidden = isRunning || !model?.hasLearned;
}

function introduction(model) {
  if (!model.personalizes) return "Make two classes or more, collect some examples of each, and train a model of your own.";
  if (model.learnsNewLabels) return "Teach the model labels that it has, or new ones: a handful of examples, a second of learning.";
  return `The model spots marks and learns no new ones. Show it pictures of its labels: ${model.labels.map(quoted).join(", ")}.`;
}

/** Fetches what model is in use, and tells all parts. */
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

/** Follows a lesson to its end. */
async function follow(lesson) {
  let written = -Infinity, failures = 0;
  for (;;) {
    // Whoever listens is told of progress once a second, of a change at once.
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
  write("lesson", "The model is as it was at first.");
  await refresh();
  focusOn(find("class-name"));
}));
addEventListener("blur", () => release(collecting?.label));

others.addEventListener("message", () => { if (stage !== "running") trying(openTeaching); });

/** Shows what there is, also where the page was loaded anew in the middle of a lesson. */
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
