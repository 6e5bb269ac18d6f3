// The picture store: a database of this browser on this machine, shared by all tabs of the studio.

const opened = new Promise((done, fail) => {
  const request = indexedDB.open("imprint-studio", 1);
  request.onupgradeneeded = () => request.result.createObjectStore("pictures", { keyPath: "id", autoIncrement: true });
  request.onsuccess = () => done(request.result);
  request.onerror = () => fail(new Error("This browser does not store pictures for the page, perhaps because the window is private."));
});
// Every use of the database reports the error.
opened.catch(() => {});

/** Notifies the other tabs of changes. */
const tabs = new BroadcastChannel("imprint-pictures");

/** Runs a transaction; `work` returns a function that gives the result after all requests. */
async function run(mode, work) {
  const transaction = (await opened).transaction("pictures", mode);
  const result = work(transaction.objectStore("pictures"));
  return new Promise((done, fail) => {
    transaction.oncomplete = () => {
      if (mode === "readwrite") tabs.postMessage("changed");
      done(result());
    };
    transaction.onabort = () => fail(new Error(transaction.error?.name === "QuotaExceededError"
      ? "The browser has no space for more pictures; delete some."
      : `The picture store of the browser failed: ${transaction.error?.message || "unknown error"}`));
  });
}

const resultOf = (request) => () => request.result;

export const store = {
  all: () => run("readonly", (pictures) => resultOf(pictures.getAll())),

  /** Adds a new picture, which gets the key `id`. */
  add: (picture) => run("readwrite", (pictures) => resultOf(pictures.add(picture))),

  /** Changes properties of a picture; returns false if this or another tab has deleted it. */
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

  /** Calls `take` when another tab changes the pictures, and when this tab becomes visible, because frozen tabs get no messages. */
  onChange(take) {
    tabs.addEventListener("message", take);
    for (const name of ["visibilitychange", "pageshow"]) addEventListener(name, () => { if (!document.hidden) take(); });
  },
};
