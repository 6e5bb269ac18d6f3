// What the page asks of the program: JSON both ways, and pictures as the bytes of their files.

/** What went wrong, in the program's words; `isAnswer` where it is the answer, and will be the same again. */
class Refused extends Error {
  constructor(message, isAnswer = true) {
    super(message);
    this.isAnswer = isAnswer;
  }
}

async function ask(method, path, parameters = {}, body = undefined) {
  // Blanks as %20, since "+" is a plus.
  const query = Object.entries(parameters).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  let answer;
  try {
    answer = await fetch(query ? `${path}?${query}` : path, { method, body });
  } catch {
    throw new Refused("The studio does not answer any more: it has ended.", false);
  }
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
