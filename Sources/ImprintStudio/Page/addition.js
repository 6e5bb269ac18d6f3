// The addition of photo files as examples, one after the other.

import { quoted, showMessage } from "./parts.js";
import { checkFile } from "./results.js";
import { server } from "./server.js";

/** The maximum number of errors in a message. */
const errorLimit = 3;

export class Addition {
  #total;
  #show;
  #added = 0;
  #copies = 0;
  #errors = [];
  #hasEnded = false;

  /** Creates an addition of a number of photos; `show` shows the examples after each change. */
  constructor(total, show) {
    this.#total = total;
    this.#show = show;
  }

  /** Adds a class, unless the studio has it, and photos as its examples. */
  async addClass(label, photos) {
    if (!this.#hasEnded && await this.#request(label, () => server.addClass(label))) await this.add(label, photos);
  }

  /** Adds photos as examples of a class. */
  async add(label, photos) {
    for (const photo of photos) {
      if (this.#hasEnded) return;
      const isAdded = await this.#request(photo.name, async () => {
        await checkFile(photo);
        return server.addExample(label, photo, "file");
      });
      if (!isAdded) continue;
      this.#added += 1;
      if (this.#total > 1) showMessage(`Adding photos to ${quoted(label)}: ${this.#added} of ${this.#total} …`);
    }
  }

  /** Sends a request about a photo or a class, and returns whether it was successful. */
  async #request(name, request) {
    try {
      this.#show(await request());
      return true;
    } catch (error) {
      if (error.status === 409) this.#copies += 1;
      else this.#errors.push(`${name}: ${error.message}`);
      // The examples are full, or the studio does not answer: the other requests would fail, too.
      this.#hasEnded = error.status === 413 || error.isRejection === false;
      return false;
    }
  }

  /** Returns the result as a message about a class or a ZIP file, with the number of files in it that are not photos in a folder. */
  text(subject, ignored = 0) {
    const parts = [`${quoted(subject)}: added ${this.#added} of ${this.#total === 1 ? "1 photo" : `${this.#total} photos`}.`];
    if (this.#copies) parts.push(`${this.#copies === 1 ? "1 photo is" : `${this.#copies} photos are`} already an example, and a copy teaches nothing new.`);
    if (ignored) parts.push(`Ignored ${ignored === 1 ? "1 file that is not a photo" : `${ignored} files that are not photos`} in a folder.`);
    parts.push(...this.#errors.slice(0, errorLimit));
    if (this.#errors.length > errorLimit) parts.push(`And ${this.#errors.length - errorLimit} more.`);
    return parts.join(" ");
  }
}
