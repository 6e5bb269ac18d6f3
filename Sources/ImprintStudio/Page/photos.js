// The panel Photos: add folders of photos, audit and fix them, train a classifier, read its report, and export it.

import { addedText, clearQuestion, counted, showAudit, showAuditStatus } from "./audit.js";
import { showCurves } from "./curves.js";
import { droppedFiles, labelled, path, photosIn } from "./files.js";
import { attempt, download, find, focusOn, isFocusLost, make, setText, subscribe } from "./parts.js";
import { checkFile } from "./results.js";
import { server } from "./server.js";
import { followRun } from "./training.js";

/** The labels and findings, as the studio reports them. */
let content = { version: -1, count: 0, labels: [], groups: [], notes: [], isAudited: false, uncheckedCount: 0 };
let audit = { version: -1, isRunning: false, done: 0, total: 0 };
let isFollowingAudit = false;
let status = { stage: "none", points: [] };
let model = null;
/** The files that are being added; null between additions. */
let addition = null;

/** The maximum number of listed problems. */
const problemLimit = 100;

const actions = {
  relabel: (id, label) => attempt(() => change(() => server.relabelPhotos(id, label))),
  remove: (ids) => attempt(() => change(() => server.removePhotos(ids))),
};

function showContent(next = content) {
  // Responses can arrive in another order than the changes.
  if (next.version < content.version) return;
  content = next;
  showAudit(content, audit, actions);
  show();
}

function show() {
  const isRunning = status.stage === "running", isOwn = status.panel === "photos";
  const hasModel = !isRunning && model?.hasReport === true;
  find("photos-steps").hidden = !content.count;
  find("photos-cancel").hidden = addition === null;
  find("photos-clear").hidden = !content.count || addition !== null;
  find("photos-clear").disabled = isRunning && isOwn;
  // A loaded page keeps the controls of a run, even after its photos were deleted.
  find("photos-run").hidden = !content.count && !hasModel && !(isRunning && isOwn);
  setText("photos-shortage", isRunning ? "" : content.shortage ?? "");
  find("photos-start").hidden = isRunning;
  find("photos-start").disabled = content.shortage !== undefined || addition !== null;
  find("photos-stop").hidden = !isRunning;
  find("photos-keep").hidden = !isRunning || !status.canKeepBest;
  find("photos-progress").hidden = !isRunning;
  if (status.fraction === undefined) find("photos-progress").removeAttribute("value");
  else find("photos-progress").value = status.fraction;
  showCurves(find("photos-curves"), isOwn ? status.points : [], status.validates ? "on the validation set" : "on the training photos");
  find("photos-results").hidden = !hasModel;
  find("photos-file").download = model?.learnedFile ?? "";
}

/** Changes the photos; the focus moves to the undo button if the change has removed the focused control. */
async function change(request) {
  const hadFocus = find("photos").contains(document.activeElement);
  try {
    showContent(await request());
  } catch (error) {
    // Another tab may have changed the photos.
    showContent(await server.photos());
    throw error;
  } finally {
    if (hadFocus && isFocusLost()) {
      focusOn([find("photos-undo"), find("audit-start"), find("photos-folder")].find((element) => element.checkVisibility()));
    }
  }
}

function showProblems(problems) {
  const shown = problems.slice(0, problemLimit).map((textContent) => make("li", { textContent }));
  if (problems.length > problemLimit) shown.push(make("li", { textContent: `And ${problems.length - problemLimit} more.` }));
  find("photos-problems").replaceChildren(...shown);
  find("photos-problems").hidden = !shown.length;
}

/** Sends the photos among files to the studio one after the other, and then starts the audit. */
async function add(files) {
  if (!files.length) return;
  if (addition) throw new Error("The studio is still adding photos. Wait until it has finished, or stop it.");
  const found = photosIn(files), { photos, outside } = labelled(found), own = addition = { isStopped: false }, problems = [];
  const others = files.filter(({ name }) => !name.startsWith(".")).length - found.length;
  const counts = { added: 0, total: photos.length, copies: 0, outside, others };
  let announced = -Infinity;
  showProblems([]);
  show();
  find("photos-added").hidden = false;
  find("photos-added").max = Math.max(photos.length, 1);
  try {
    for (const [index, { file, label, name }] of photos.entries()) {
      if (own.isStopped) break;
      find("photos-added").value = index;
      // Screen readers announce the progress once a second.
      if (performance.now() - announced > 1000) {
        setText("photos-state", `Adding photo ${index + 1} of ${photos.length} …`);
        announced = performance.now();
      }
      try {
        await checkFile(file);
        await server.addPhoto(label, name, file);
        counts.added += 1;
      } catch (error) {
        if (error.status === 409) counts.copies += 1;
        else problems.push(`${label}/${name}: ${error.message}`);
        // The studio is full or does not answer: the other files would fail, too.
        if (error.isRejection === false || (error.status === 413 && file.size)) break;
      }
    }
  } finally {
    addition = null;
    find("photos-added").hidden = true;
    showProblems(problems);
    setText("photos-state", [own.isStopped ? "Stopped." : "", addedText(counts),
      problems.length ? `${counted(problems.length, "file")} could not be added:` : ""].filter(Boolean).join(" "));
    show();
    if (isFocusLost()) focusOn(find("photos-folder"));
  }
  showContent(await server.photos());
  if (counts.added) await startAudit();
}

async function startAudit() {
  await followAudit(await server.startAudit());
}

/** Follows an audit to its end, and then shows its findings. */
async function followAudit(next) {
  audit = next;
  if (isFollowingAudit) return;
  isFollowingAudit = true;
  const hadFocus = document.activeElement === find("audit-start");
  try {
    while (audit.isRunning) {
      showAuditStatus(content, audit);
      audit = await server.auditStatus(audit.version);
    }
  } finally {
    isFollowingAudit = false;
    audit = { ...audit, isRunning: false };
  }
  showContent(await server.photos());
  if (hadFocus && isFocusLost()) focusOn(find("audit-start"));
}

/** Downloads the learned model in a format. */
async function exportModel(format, name, title) {
  setText("photos-export-state", `Exporting to ${title} …`);
  try {
    download(await server.exportModel(format), name);
    setText("photos-export-state", `Exported the model to ${name}.`);
  } catch (error) {
    setText("photos-export-state", error.message);
  }
}

find("photos-folder").addEventListener("change", (event) => {
  const files = [...event.target.files];
  event.target.value = "";
  attempt(() => add(files));
});
find("photos").addEventListener("drop", (event) => {
  // Elsewhere, a dropped image replaces the camera.
  event.preventDefault();
  event.stopPropagation();
  document.body.classList.remove("dropping");
  attempt(async () => {
    const files = (await droppedFiles(event.dataTransfer, (all) => all)).filter((file) => path(file).includes("/"));
    if (!files.length) throw new Error("Drop a folder here, because the name of a folder is the label of its photos.");
    await add(files);
  });
});
find("photos-cancel").addEventListener("click", () => { if (addition) addition.isStopped = true; });
find("photos-clear").addEventListener("click", () => attempt(async () => {
  if (!confirm(clearQuestion(content))) return;
  await change(() => server.removePhotos("all"));
  showProblems([]);
  setText("photos-state", "Deleted all photos.");
  focusOn(find("photos-folder"));
}));
find("audit-start").addEventListener("click", () => attempt(startAudit));
find("photos-undo").addEventListener("click", () => attempt(() => change(() => server.undoPhotos())));
find("photos").addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.shiftKey || event.key !== "z" || find("photos-undo-area").hidden) return;
  event.preventDefault();
  attempt(() => change(() => server.undoPhotos()));
});
find("photos-start").addEventListener("click", () => attempt(async () => {
  setText("photos-export-state", "");
  await followRun(() => server.startPhotoTraining(), "photos-stop", "photos-start");
}));
find("photos-stop").addEventListener("click", () => attempt(() => server.stopTraining()));
find("photos-keep").addEventListener("click", () => attempt(async () => {
  await server.stopTraining("best");
  focusOn(find("photos-stop"));
}));
find("photos-revert").addEventListener("click", () => find("revert").click());
find("photos-onnx").addEventListener("click", () => attempt(() => exportModel("onnx", "model.onnx", "ONNX")));
find("photos-coreml").addEventListener("click", () => attempt(() => exportModel("coreml", "model.mlmodel", "Core ML")));
subscribe("model", (next) => {
  const hasChanged = model !== null && model.hasReport !== next.hasReport;
  model = next;
  show();
  // The findings are also about the trained model.
  if (hasChanged) attempt(async () => showContent(await server.photos()));
});
subscribe("training", (next) => {
  const hasEnded = status.stage === "running" && next.stage !== "running" && next.panel === "photos";
  status = next;
  show();
  // Another model can label other photos differently.
  if (hasEnded) attempt(async () => showContent(await server.photos()));
});

/** Shows the photos of the studio, and follows an audit that is already running. */
export const openPhotos = () => attempt(async () => {
  showContent(await server.photos());
  await followAudit(await server.auditStatus(-1));
});
