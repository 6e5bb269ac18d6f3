// The requests of the page to the studio. Values are JSON, photos are the bytes of their files.

/** A failed request with the message of the studio; `isRejection` means that a retry would fail in the same way. */
class RequestError extends Error {
  constructor(message, { isRejection = true, status } = {}) {
    super(message);
    this.isRejection = isRejection;
    this.status = status;
  }
}

/** The identifier of the studio run, from its first response; another studio may start later at the same address. */
let run = null;

/** Reloads the page, because its state belongs to a studio that has ended. */
function reloadPage() {
  sessionStorage.setItem("restarted", "yes");
  location.reload();
  return new Promise(() => {});
}

/** Returns whether the page was reloaded because of a new studio; true only once. */
export function wasRestarted() {
  const isRestarted = sessionStorage.getItem("restarted") !== null;
  sessionStorage.removeItem("restarted");
  return isRestarted;
}

/** Returns a message for a response without one: the server gives up after a minute. */
const failureText = (status) => (status === 500 ? "The studio did not answer in time, because this machine is busy. Try again."
  : `The studio responded with status ${status}.`);

/** Sends a request, and returns the response as JSON or, with `isFile`, as a file. */
async function send(method, path, parameters = {}, body = undefined, isFile = false) {
  // Spaces are encoded as %20, because the server takes "+" literally.
  const query = Object.entries(parameters).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  let response;
  try {
    // The studio rejects requests for another run.
    response = await fetch(query ? `${path}?${query}` : path, {
      method, body, headers: run ? { "Imprint-Run": run } : {},
      // An edit is also stored if the page is closed meanwhile; browsers limit the size of such requests to 64 KB.
      keepalive: typeof body === "string" && body.length < 20000,
    });
  } catch {
    throw new RequestError("The studio has ended and does not respond.", { isRejection: false });
  }
  const responseRun = response.headers.get("Imprint-Run");
  if (responseRun && run && responseRun !== run) return reloadPage();
  run ??= responseRun;
  if (isFile && response.ok) return response.blob();
  const value = await response.json().catch(() => ({ error: failureText(response.status) }));
  if (!response.ok) throw new RequestError(value.error, { status: response.status });
  return value;
}

/** The maximum size of a photo in bytes. */
const limit = 20 * 1024 * 1024;

/** Returns the content of a photo in memory. Throws if its size is not allowed, or if the browser cannot read its file. */
async function checked(photo) {
  if (photo.size > limit) throw new RequestError("A photo may have at most 20 MB; choose a smaller photo.");
  let content;
  try {
    // For a file that cannot be read, `fetch` reports the same error as for a studio that has ended.
    content = await photo.arrayBuffer();
  } catch {
    throw new RequestError("The file cannot be read: it was moved or changed, or is not accessible. Choose it again.");
  }
  if (content.byteLength === 0) throw new RequestError("The file is empty; choose a photo.");
  return new Blob([content], { type: photo.type });
}

export const server = {
  model: () => send("GET", "model"),
  classify: async (photo) => send("POST", "classify", {}, await checked(photo)),
  examples: () => send("GET", "examples"),
  addClass: (label) => send("POST", "classes", { label }),
  removeClass: (label) => send("DELETE", "classes", { label }),
  renameClass: (label, name) => send("PUT", "classes", { label, name }),
  /** Adds an example from the "camera" or from a "file"; the studio rejects copies of a file in a class. */
  addExample: async (label, photo, source) => send("POST", "examples", { label, source }, await checked(photo)),
  /** Returns the photo of an example, as its file. */
  example: (id) => send("GET", `examples/${id}`, { size: "full" }, undefined, true),
  removeExample: (id) => send("DELETE", `examples/${id}`),
  moveExample: (id, label) => send("PUT", `examples/${id}`, { label }),
  /** Undoes the latest deletion or move of examples or deletion of a class. */
  undo: () => send("POST", "undo"),
  startTraining: () => send("POST", "training"),
  /** Stops training; "best" keeps the best model so far, and the run then ends by itself. */
  stopTraining: (keep) => send("DELETE", "training", keep ? { keep } : {}),
  trainingStatus: (after) => send("GET", "training", { after }),
  installBaseModel: (name) => send("POST", "base-model", { name, license: "accepted" }),
  chooseBase: (base) => send("POST", "base-choice", { base }),
  revert: () => send("POST", "revert"),
  boxes: () => send("GET", "boxes"),
  addBoxPhoto: async (photo) => send("POST", "boxes", {}, await checked(photo)),
  editBoxes: (name, edit) => send("PUT", "boxes", { name }, JSON.stringify(edit)),
  removeBoxPhoto: (name) => send("DELETE", "boxes", { name }),
  addArtwork: async (label, file) => send("POST", "artwork", { label, name: file.name }, await checked(file)),
  removeArtwork: (id) => send("DELETE", "artwork", { id }),
  renameArtwork: (id, label) => send("PUT", "artwork", { id, label }),
  photos: () => send("GET", "photos"),
  /** Adds a photo; the studio rejects a file that it already has. */
  addPhoto: async (label, name, photo) => send("POST", "photos", { label, name }, await checked(photo)),
  relabelPhotos: (ids, label) => send("PUT", "photos", { ids, label }),
  /** Deletes photos by their numbers, or "all". */
  removePhotos: (ids) => send("DELETE", "photos", { ids }),
  undoPhotos: () => send("POST", "photos-undo"),
  startAudit: () => send("POST", "audit"),
  auditStatus: (after) => send("GET", "audit", { after }),
  startPhotoTraining: () => send("POST", "photo-training"),
  /** Returns the learned model as a file in the format "onnx" or "coreml". */
  exportModel: (format) => send("GET", "export", { format }, undefined, true),
  startMatching: () => send("POST", "matching"),
  stopMatching: () => send("DELETE", "matching"),
  /** Trains a detector from "boxes" and artwork, or only from "artwork". */
  startDetector: (length, data = "boxes") => send("POST", "detector", { length, data }),
};
