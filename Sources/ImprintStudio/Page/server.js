// The requests of the page to the studio: JSON, and pictures as the bytes of their files.

/** A failed request with the message of the studio; `isAnswer` means that a retry would fail in the same way. */
class Refused extends Error {
  constructor(message, isAnswer = true) {
    super(message);
    this.isAnswer = isAnswer;
  }
}

/** The studio run of this page, from its first answer; another studio may be started later at the same address. */
let run = null;

/** Reloads the page, because its state belongs to a studio that has ended. */
function startOver() {
  sessionStorage.setItem("restarted", "yes");
  location.reload();
  return new Promise(() => {});
}

/** Whether the page was reloaded because of a new studio; true only once. */
export function wasRestarted() {
  const found = sessionStorage.getItem("restarted") !== null;
  sessionStorage.removeItem("restarted");
  return found;
}

async function ask(method, path, parameters = {}, body = undefined) {
  // Spaces are encoded as %20, because the server takes "+" literally.
  const query = Object.entries(parameters).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  let answer;
  try {
    // The studio rejects requests for another run.
    answer = await fetch(query ? `${path}?${query}` : path, { method, body, headers: run ? { "Imprint-Run": run } : {} });
  } catch {
    throw new Refused("The studio has ended and does not answer.", false);
  }
  const found = answer.headers.get("Imprint-Run");
  if (found && run && found !== run) return startOver();
  run ??= found;
  const value = await answer.json().catch(() => ({ error: `The studio answered ${answer.status}.` }));
  if (!answer.ok) throw new Refused(value.error);
  return value;
}

/** The maximum size of a picture in bytes. */
const limit = 20 * 1024 * 1024;

function photo(blob) {
  if (blob.size === 0) throw new Refused("The file is empty; choose a photo.");
  if (blob.size > limit) throw new Refused("A picture may have at most 20 MB; choose a smaller one.");
  return blob;
}

export const server = {
  model: () => ask("GET", "model"),
  classify: async (blob) => ask("POST", "classify", {}, photo(blob)),
  examples: () => ask("GET", "examples"),
  addClass: (label) => ask("POST", "classes", { label }),
  removeClass: (label) => ask("DELETE", "classes", { label }),
  addExample: async (label, blob) => ask("POST", "examples", { label }, photo(blob)),
  start: () => ask("POST", "lesson"),
  stop: () => ask("DELETE", "lesson"),
  lesson: (after) => ask("GET", "lesson", { after }),
  revert: () => ask("POST", "revert"),
};
