// What the page asks of the program: JSON both ways, and pictures as the bytes of their files.

/** What went wrong, in the program's words; `isAnswer` where it is the answer, and will be the same again. */
class Refused extends Error {
  constructor(message, isAnswer = true) {
    super(message);
    this.isAnswer = isAnswer;
  }
}

/** The run of the studio that this page belongs to, by its first answer: another studio may be started at the same address. */
let run = null;

/** Loads the page again: what it shows and knows belongs to a studio that has ended. */
function startOver() {
  sessionStorage.setItem("restarted", "yes");
  location.reload();
  return new Promise(() => {});
}

/** Whether the page was loaded again because another studio was started; true once. */
export function wasRestarted() {
  const found = sessionStorage.getItem("restarted") !== null;
  sessionStorage.removeItem("restarted");
  return found;
}

async function ask(method, path, parameters = {}, body = undefined) {
  // Blanks as %20, since "+" is a plus.
  const query = Object.entries(parameters).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  let answer;
  try {
    // The studio refuses what is meant for another run.
    answer = await fetch(query ? `${path}?${query}` : path, { method, body, headers: run ? { "Imprint-Run": run } : {} });
  } catch {
    throw new Refused("The studio does not answer any more: it has ended.", false);
  }
  const found = answer.headers.get("Imprint-Run");
  if (found && run && found !== run) return startOver();
  run ??= found;
  const value = await answer.json().catch(() => ({ error: `The studio answered ${answer.status}.` }));
  if (!answer.ok) throw new Refused(value.error);
  return value;
}

/** The most bytes that a picture may have. */
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
