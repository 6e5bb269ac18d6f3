// Where pictures are kept: a database of this browser, on this machine, which all tabs of the studio share.

const opened = new Promise((done, fail) => {
  const request = indexedDB.open("imprint-studio", 1);
  request.onupgradeneeded = () => request.result.createObjectStore("pictures", { keyPath: "id", autoIncrement: true });
  request.onsuccess = () => done(request.result);
  request.onerror = () => fail(new Error("This browser keeps no pictures for the page, as in a private window."));
});
// Whoever uses it is told.
opened.catch(() => {});

/** Tells the other tabs that the pictures have changed. */
const tabs = new BroadcastChannel("imprint-pictures");

/** Runs a transaction; gives what `work` returned, called after its requests are done. */
async function run(mode, work) {
  const transaction = (await opened).transaction("pictures", mode);
  const result = work(transaction.objectStore("pictures"));
  return new Promise((done, fail) => {
    transaction.oncomplete = () => {
      if (mode === "readwrite") tabs.postMessage("changed");
      done(result());
    };
    transaction.onabort = () => fail(new Error(transaction.error?.name === "QuotaExceededError"
      ? "The browser has no room for more pictures; delete some."
      : `The browser's store of pictures failed: ${transaction.error?.message || "it does not say why"}`));
  });
}

const resultOf = (request) => () => request.result;

export const store = {
  all: () => run("readonly", (pictures) => resultOf(pictures.getAll())),

  /** Adds a new picture, which gets the key `id`. */
  add: (picture) => run("readwrite", (pictures) => resultOf(pictures.add(picture))),

  /** Changes properties of a picture that is still there; gives false if it was deleted, also by another tab: it stays deleted. */
  update: (id, changes) => run("readwrite", (pictures) => {
    const found = pictures.get(id);
    found.onsuccess = () => { if (found.result) pictures.put({ ...found.result, ...changes, id }); };
    return () => found.result !== undefined;
  }),

  /** Deletes pictures, all or none. */
  remove: (ids) => run("readwrite", (pictures) => {
    for (const id of ids) pictures.delete(id);
    return () => undefined;
  }),

  /** Calls `take` when another tab has changed the pictures, and when this tab is seen again: a frozen tab gets no messages. */
  onChange(take) {
    tabs.addEventListener("message", take);
    for (const name of ["visibilitychange", "pageshow"]) addEventListener(name, () => { if (!document.hidden) take(); });
  },
};
