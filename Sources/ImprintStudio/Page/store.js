// The photo store: a database of this browser on this machine, shared by all tabs of the studio.

const opened = new Promise((resolve, reject) => {
  const request = indexedDB.open("imprint-studio", 1);
  request.onupgradeneeded = () => request.result.createObjectStore("pictures", { keyPath: "id", autoIncrement: true });
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(new Error("This browser does not store photos for the page, perhaps because the window is private."));
});
// `run` reports the error each time; here it only prevents an unhandled rejection.
opened.catch(() => {});

/** Notifies the other tabs of changes; `local` notifies the parts of this page. */
const tabs = new BroadcastChannel("imprint-pictures");
const local = new EventTarget();

/** Runs a transaction; `work` returns a function that returns the result after all requests. */
async function run(mode, work) {
  const transaction = (await opened).transaction("pictures", mode);
  const result = work(transaction.objectStore("pictures"));
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => {
      if (mode === "readwrite") {
        tabs.postMessage("changed");
        local.dispatchEvent(new Event("change"));
      }
      resolve(result());
    };
    transaction.onabort = () => reject(new Error(transaction.error?.name === "QuotaExceededError"
      ? "The browser has no space for more photos; delete some."
      : `The photo store of the browser failed: ${transaction.error?.message || "unknown error"}`));
  });
}

const resultOf = (request) => () => request.result;

export const store = {
  all: () => run("readonly", (photos) => resultOf(photos.getAll())),

  /** Adds a new photo, which gets the key `id`. */
  add: (photo) => run("readwrite", (photos) => resultOf(photos.add(photo))),

  /** Changes properties of a photo; returns false if this or another tab has deleted it. */
  update: (id, changes) => run("readwrite", (photos) => {
    const request = photos.get(id);
    request.onsuccess = () => { if (request.result) photos.put({ ...request.result, ...changes, id }); };
    return () => request.result !== undefined;
  }),

  /** Deletes photos, all or none; returns those that this or another tab had not yet deleted. */
  remove: (ids) => run("readwrite", (photos) => {
    const requests = ids.map((id) => {
      const request = photos.get(id);
      photos.delete(id);
      return request;
    });
    return () => requests.map(({ result }) => result).filter(Boolean);
  }),

  /** Adds deleted photos again, with their keys. */
  restore: (deleted) => run("readwrite", (photos) => {
    for (const photo of deleted) photos.put(photo);
    return () => undefined;
  }),

  /** Calls `handler` when this or another tab changes the photos, and when this tab becomes visible, because frozen tabs get no messages. */
  onChange(handler) {
    tabs.addEventListener("message", handler);
    local.addEventListener("change", handler);
    for (const name of ["visibilitychange", "pageshow"]) addEventListener(name, () => { if (!document.hidden) handler(); });
  },
};
