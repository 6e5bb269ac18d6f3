// The findings of the audit in the panel Photos, with controls to fix them.

import { find, make, setText, updateList } from "./parts.js";

/** The findings that are open at first, because they need a decision. */
const isOpenAtFirst = (kind) => ["acrossLabels", "disagreements"].includes(kind);
/** The findings whose photos after the first one add little. */
const isRedundant = (kind) => ["copies", "nearDuplicates"].includes(kind);

/** Returns a number with its noun. */
export const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

function photoItem({ id, name }, actions) {
  const choice = make("select", { "aria-label": `Label of ${name}`, onchange: () => actions.relabel(id, choice.value) });
  return make("li", {},
    make("a", { href: `photo?id=${id}`, target: "_blank", rel: "noopener" },
      make("img", { src: `photo?id=${id}&size=small`, alt: `Photo ${name}`, loading: "lazy" })),
    make("bdi", { className: "soft small", textContent: name }), choice,
    make("button", { textContent: "Delete", "aria-label": `Delete ${name}`, onclick: () => actions.remove([id]) }));
}

/** Shows the labels to choose from, and the current one. */
function updateChoice(choice, label, labels) {
  const key = labels.map((one) => one.label).join("/");
  if (choice.dataset.labels !== key) {
    choice.replaceChildren(...labels.map((one) => make("option", { value: one.label, textContent: one.label })));
    choice.dataset.labels = key;
  }
  choice.value = label;
}

function findingItem(kind, actions) {
  const item = make("li", {}, make("ul", { className: "shots" }), make("p", { className: "small" }));
  if (!isRedundant(kind)) return item;
  item.append(make("button", { textContent: "Keep only the first photo", onclick: () => actions.remove(item.others) }));
  return item;
}

function updateFinding(item, { photos, reason }, labels, actions) {
  const [list, text, button] = item.children;
  updateList(list, photos, (photo) => photoItem(photo, actions), ({ id }) => id);
  for (const [index, { label }] of photos.entries()) updateChoice(list.children[index].querySelector("select"), label, labels);
  text.textContent = reason;
  text.hidden = !reason;
  item.others = photos.slice(1).map(({ id }) => id);
  button?.setAttribute("aria-label", `Keep only the first photo, ${photos[0].name}, and delete ${counted(item.others.length, "other")}`);
}

function groupItem({ kind }, actions) {
  const item = make("details", { open: isOpenAtFirst(kind) },
    make("summary", {}, make("h4"), make("span", { className: "soft small" })),
    make("p", { className: "soft small" }),
    make("button", { className: "keep-all", hidden: true, onclick: () => actions.remove(item.others) }),
    make("ul", { className: "findings" }), make("p", { className: "soft small" }));
  return item;
}

function updateGroup(item, group, labels, actions) {
  const [summary, advice, keep, list, more] = item.children;
  summary.firstElementChild.textContent = group.title;
  summary.lastElementChild.textContent = String(group.count);
  advice.textContent = group.advice;
  // A finding keeps its element, and the focus in it, until all of its photos but one are deleted.
  const key = ({ photos }) => photos[0].id;
  updateList(list, group.findings, () => findingItem(group.kind, actions), key);
  for (const [index, finding] of group.findings.entries()) updateFinding(list.children[index], finding, labels, actions);
  item.others = [...new Set(group.findings.flatMap(({ photos }) => photos.slice(1).map(({ id }) => id)))];
  keep.hidden = !isRedundant(group.kind) || group.findings.length < 2;
  keep.textContent = `Keep only the first photo of ${group.findings.length} findings`;
  const hiddenCount = group.count - group.findings.length;
  more.hidden = !group.findings.length || !hiddenCount;
  more.textContent = `And ${hiddenCount} more. Fix these first.`;
}

function auditText(content, status) {
  if (status.isRunning) return `Checking the photos: ${status.done} of ${status.total}`;
  if (!content.isAudited) return "The photos are not checked yet.";
  const count = content.groups.reduce((sum, group) => sum + group.count, 0);
  const kinds = content.groups.length > 1 ? ` of ${content.groups.length} kinds` : "";
  const found = count ? `${counted(count, "finding")}${kinds}.` : "The audit found no problems.";
  if (!content.uncheckedCount) return found;
  return `${found} ${content.uncheckedCount === 1 ? "1 photo was" : `${content.uncheckedCount} photos were`} added since the audit.`;
}

/** Shows the labels and the findings. `actions` has the functions `relabel(id, label)` and `remove(ids)`. */
export function showAudit(content, status, actions) {
  const maximum = Math.max(...content.labels.map(({ count }) => count), 1);
  updateList(find("photos-labels"), content.labels, ({ label }) => make("li", {},
    make("span", { className: "name" }, make("bdi", { textContent: label })), make("span", { className: "number" }), make("span", { className: "bar" })),
  ({ label }) => label);
  for (const [index, { count }] of content.labels.entries()) {
    const [, number, bar] = find("photos-labels").children[index].children;
    number.textContent = counted(count, "photo");
    bar.style.setProperty("--fraction", count / maximum);
  }
  updateList(find("audit-groups"), content.groups, (group) => groupItem(group, actions), ({ kind }) => kind);
  for (const [index, group] of content.groups.entries()) updateGroup(find("audit-groups").children[index], group, content.labels, actions);
  find("audit-notes").hidden = !content.notes.length;
  find("audit-notes").replaceChildren(...content.notes.map((textContent) => make("li", { textContent })));
  showAuditStatus(content, status);
  find("photos-undo-area").hidden = content.undo === undefined;
  setText("photos-undo-text", content.undo ?? "");
}

/** Shows the progress of the audit. */
export function showAuditStatus(content, status) {
  setText("audit-state", auditText(content, status));
  find("audit-progress").hidden = !status.isRunning;
  find("audit-progress").max = Math.max(status.total, 1);
  find("audit-progress").value = status.done;
  find("audit-start").disabled = status.isRunning;
  find("audit-start").textContent = content.isAudited ? "Check the photos again" : "Check the photos";
}

/** Returns a message about added photos. */
export function addedText({ added, total, copies, outside, others }) {
  return [
    `Added ${added} of ${counted(total, "photo")}.`,
    copies ? `${copies === 1 ? "1 photo was" : `${copies} photos were`} already added.` : "",
    outside ? `${outside === 1 ? "1 photo is" : `${outside} photos are`} not in a sub-folder of a label, so the studio did not add ${outside === 1 ? "it" : "them"}.` : "",
    others ? `Ignored ${counted(others, "file")} that ${others === 1 ? "is not a photo" : "are not photos"} in the format JPEG, PNG, WebP or HEIC.` : "",
  ].filter(Boolean).join(" ");
}

/** Returns a question before all photos are deleted. */
export const clearQuestion = ({ count }) => `Delete ${count === 1 ? "the photo" : `all ${count} photos`} from the studio? You cannot undo this. Your own files stay.`;
