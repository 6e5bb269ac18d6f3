// Where pictures are kept: a database of this browser, on this machine.

const opened = new Promise((done, fail) => {
  const request = indexedDB.open("imprint-studio", 1);
  request.onupgradeneeded = () => request.result.createObjectStore("pictures", { keyPath: "id", autoIncrement: true });
  request.onsuccess = () => done(request.result);
  request.onerror = () => fail(new Error("This browser keeps no pictures for the page, as in a private window."));
});
// Whoever uses it is told.
opened.catch(() => {});

async function run(mode, work) {
  const transaction = (await opened).transaction("pictures", mode);
  const request = work(transaction.objectStore("pictures"));
  return new Promise((done, fail) => {
    transaction.oncomplete = () => done(request.result);
    transaction.onabort = () => fail(new Error(transaction.error?.name === "QuotaExceededError"
      ? "The browser has no room for more pictures; delete some."
      : `The browser's store of pictures failed: ${transaction.error?.message || "it does not say why"}`));
  });
}

export const store = {
  all: () => run("readonly", (pictures) => pictures.getAll()),
  /** Gives the picture's key, `id`. */
  put: (picture) => run("readwrite", (pictures) => pictures.put(picture)),
  remove: (id) => run("readwrite", (pictures) => pictures.delete(id)),
};
