// Messages appear next to the control that caused them. The status under the image, which is not visible, announces them.

import { find, make, subscribe } from "./parts.js";

const line = make("p", { className: "message small", "aria-hidden": "true", hidden: true });
/** The latest control that the user has used. */
let cause = null;
let isPressed = false;

/** Returns the element after which a message about a control appears; `null` outside of the panels. */
function anchorOf(control) {
  const panel = control?.isConnected && control.closest("[role=tabpanel]");
  if (!panel || panel.hidden) return null;
  return control.closest(".chosen, .card-head, .examples, .box-list, #paper") ?? control.closest("form, .row, .thumbnails, .artwork, .slider")
    // After a drop, the control is the card of a class or a part of it.
    ?? control.closest(".classes > li")?.querySelector(".row") ?? panel.firstElementChild;
}

function hide() {
  if (!line.classList.contains("leaving")) return;
  line.hidden = true;
  line.textContent = "";
}

function show({ text, kind, isAboutImage }) {
  line.classList.toggle("leaving", !text);
  // A control does not move while it is pressed.
  if (!text) return isPressed ? undefined : hide();
  line.textContent = text;
  line.dataset.kind = kind;
  line.hidden = false;
  const anchor = isAboutImage ? null : anchorOf(cause);
  if (anchor) anchor.after(line);
  else find("stage-message").append(line);
}

for (const name of ["pointerdown", "keydown", "change", "drop"]) {
  addEventListener(name, ({ target }) => { if (target instanceof Element) cause = target; }, { capture: true });
}
addEventListener("pointerdown", () => { isPressed = true; }, { capture: true });
for (const name of ["pointerup", "pointercancel", "dragend"]) {
  addEventListener(name, () => {
    isPressed = false;
    setTimeout(hide, 50);
  }, { capture: true });
}
subscribe("message", show);
