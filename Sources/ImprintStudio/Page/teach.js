// Teaching: hold a button to collect examples of a class, learn from them, see the curves.

import { showCurves } from "./curves.js";
import { isLive, picture } from "./eye.js";
import { find, focusOn, make, say, tell } from "./parts.js";
import { server } from "./server.js";

/** How long it is from one example to the next while a button is held, in milliseconds. */
const interval = 200;

/** The class whose button is held. */
let collecting = null;
let collected = { classes: [], shortage: undefined };
let stage = "none";
let model = null;

async function trying(work) {
  try {
    return await work();
  } catch (error) {
    say(error.message);
    return undefined;
  }
}

async function collect(label) {
  if (collecting !== null) return;
  collecting = label;
  find("classes").dataset.collecting = label;
  // A tap takes one; of a photo there is but one to take.
  do {
    const began = performance.now();
    const taken = await trying(async () => {
      const blob = await picture();
      if (!blob) throw new Error("There is no picture: start the camera or choose a photo.");
      show(await server.addExample(label, blob));
      say(`“${label}”: ${countOf(label)}.`);
      return true;
    });
    if (!taken || !isLive()) break;
    await new Promise((done) => setTimeout(done, Math.max(0, interval - (performance.now() - began))));
  } while (collecting === label);
  release();
}

function release() {
  collecting = null;
  delete find("classes").dataset.collecting;
}

function countOf(label) {
  const count = collected.classes.find((one) => one.label === label)?.count ?? 0;
  return count === 1 ? "1 example" : `${count} examples`;
}

/** A class: its name, how much there is of it, and what to do. Made once, so that a button that is held stays. */
function item(label) {
  const hold = make("button", {
    className: "hold", textContent: "Hold to collect", "aria-label": `Hold to collect examples of ${label}`,
    onpointerdown: (event) => {
      if (event.button !== 0) return;
      hold.setPointerCapture(event.pointerId);
      collect(label);
    },
    onpointerup: release, onpointercancel: release, onlostpointercapture: release, onblur: release,
    oncontextmenu: (event) => event.preventDefault(),
    onkeydown: (event) => {
      if (event.key !== " " && event.key !== "Enter") return;
      event.preventDefault();
      if (!event.repeat) collect(label);
    },
    onkeyup: release,
    // Of assistive technology, which knows neither of the two.
    onclick: (event) => { if (event.detail === 0 && collecting === null) { collect(label); release(); } },
  });
  const remove = make("button", {
    className: "quiet", textContent: "Delete", "aria-label": `Delete ${label} and its examples`,
    onclick: () => trying(async () => {
      show(await server.removeClass(label));
      focusOn(find("class-name"));
    }),
  });
  const element = make("li", {},
    make("span", { className: "name" }, make("bdi", { textContent: label }), make("span", { className: "count soft" })), hold, remove);
  element.label = label;
  return element;
}

function show(next = collected) {
  collected = next;
  const list = find("classes"), items = new Map([...list.children].map((element) => [element.label, element]));
  const wanted = next.classes.map(({ label }) => items.get(label) ?? item(label));
  if (wanted.length !== list.children.length || wanted.some((element, place) => list.children[place] !== element)) {
    list.replaceChildren(...wanted);
  }
  for (const element of wanted) element.querySelector(".count").textContent = countOf(element.label);
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

/** Fetches what model is in use, and tells all parts. */
export async function refresh() {
  model = await server.model();
  document.body.dataset.model = model.name === undefined ? "none" : "some";
  find("model").textContent =
    model.name === undefined ? "No model yet: teach two classes" : model.name + (model.hasLearned && model.personalizes ? ", personalised" : "");
  find("start").textContent = model.personalizes ? "Personalise" : "Train a model";
  find("learned").download = model.personalizes ? "personalization.imprint" : "model.imprint";
  find("teach-intro").textContent = model.personalizes
    ? "Teach the model labels that it has, or new ones: a handful of examples, a second of learning."
    : "Make two classes or more, collect some examples of each, and train a model of your own.";
  show();
  tell("model", model);
}

/** Follows a lesson to its end. */
async function follow(lesson) {
  for (;;) {
    ({ stage } = lesson);
    find("lesson").textContent = lesson.message;
    find("lesson").dataset.stage = stage;
    showCurves(find("curves"), lesson.points);
    show();
    if (stage !== "running") break;
    const next = await trying(() => server.lesson(lesson.version));
    if (!next) return;
    lesson = next;
  }
  await trying(refresh);
}

find("class-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = find("class-name"), label = field.value.trim();
  if (!label) return focusOn(field);
  trying(async () => {
    show(await server.addClass(label));
    field.value = "";
    [...find("classes").children].find((element) => element.label === label)?.querySelector(".hold").focus();
  });
});
find("start").addEventListener("click", () => trying(async () => {
  const lesson = await server.start();
  const following = follow(lesson);
  focusOn(find("stop"));
  await following;
  focusOn(find("start"));
}));
find("stop").addEventListener("click", () => trying(() => server.stop()));
find("revert").addEventListener("click", () => trying(async () => {
  await server.revert();
  showCurves(find("curves"), []);
  find("lesson").textContent = "The model is as it was at first.";
  await refresh();
  focusOn(find("class-name"));
}));
addEventListener("blur", release);

/** Shows what there is, also where the page was loaded anew in the middle of a lesson. */
export async function openTeaching() {
  collected = await server.examples();
  await refresh();
  const lesson = await server.lesson(-1);
  if (lesson.stage !== "none") await follow(lesson);
}
