// The camera, which is on only while the page is visible and not paused.

/** The long side of the frames for classification, in pixels. */
const longSide = 640;
/** The key of the chosen camera in the storage of the browser. */
const storageKey = "imprint-camera";

export class Camera {
  #video;
  #canvas = document.createElement("canvas");
  #onDisconnect;
  #isWanted = false;
  /** The pending camera request, if any: there is at most one at a time. */
  #opening = null;

  /** Calls `onDisconnect` if the camera ends by itself, for example because it is unplugged. */
  constructor(video, onDisconnect) {
    this.#video = video;
    this.#onDisconnect = onDisconnect;
  }

  get isOn() { return this.#video.srcObject !== null; }

  /** The identifier of the camera that is on; `undefined` if it is off. */
  get id() { return this.#video.srcObject?.getVideoTracks()[0]?.getSettings().deviceId; }

  /** Whether the camera that is on shows its user. */
  get isFront() {
    const [track] = this.#video.srcObject?.getVideoTracks() ?? [];
    if (!track) return false;
    const { facingMode } = track.getSettings();
    // Built-in cameras of computers report no direction, only a name.
    return facingMode ? facingMode === "user" : /front|face ?time|integrated|built-in/iu.test(track.label);
  }

  /** Returns the cameras of this machine; their names are known only while a camera is on. */
  async list() {
    const devices = await navigator.mediaDevices?.enumerateDevices().catch(() => []) ?? [];
    return devices.filter(({ kind, deviceId }) => kind === "videoinput" && deviceId);
  }

  /** Chooses the camera of the next start. */
  choose(id) { localStorage.setItem(storageKey, id); }

  /** Requests the chosen camera, or another one if it is not connected. */
  async #request() {
    const size = { width: { ideal: 1280 }, height: { ideal: 720 } }, chosen = localStorage.getItem(storageKey);
    const request = (camera) => navigator.mediaDevices.getUserMedia({ audio: false, video: { ...camera, ...size } });
    if (!chosen) return request({ facingMode: "environment" });
    return request({ deviceId: { exact: chosen } }).catch((error) => {
      if (!["OverconstrainedError", "NotFoundError"].includes(error.name)) throw error;
      return request({ facingMode: "environment" });
    });
  }

  /** Starts the camera, and waits for the first frame or for `stop()`. Throws an error with a message if there is no camera. */
  async start() {
    this.#isWanted = true;
    this.#opening ??= this.#open().finally(() => { this.#opening = null; });
    await this.#opening;
  }

  async #open() {
    if (this.isOn) return;
    if (!navigator.mediaDevices?.getUserMedia) throw new Error("This browser does not give the page access to a camera.");
    let stream;
    try {
      stream = await this.#request();
    } catch (error) {
      throw new Error(
        error.name === "NotAllowedError" ? "The browser does not allow the page to use the camera."
          : error.name === "NotFoundError" ? "There is no camera on this machine."
            : "The camera is not available; another program may be using it.");
    }
    if (!this.#isWanted) {
      for (const track of stream.getTracks()) track.stop();
      return;
    }
    for (const track of stream.getTracks()) track.addEventListener("ended", () => this.#end(stream));
    this.#video.srcObject = stream;
    try {
      await this.#video.play();
    } catch {
      // The camera was stopped meanwhile, and perhaps started again.
      if (this.#video.srcObject !== stream) return this.#isWanted ? this.#open() : undefined;
      this.stop();
      throw new Error("The browser cannot show the camera image.");
    }
    this.#video.hidden = !this.isOn;
  }

  #end(stream) {
    if (this.#video.srcObject !== stream) return;
    this.stop();
    this.#onDisconnect();
  }

  /** Stops the camera. */
  stop() {
    this.#isWanted = false;
    for (const track of this.#video.srcObject?.getTracks() ?? []) track.stop();
    this.#video.srcObject = null;
    this.#video.hidden = true;
  }

  /** Returns the current frame as a JPEG, at full size or scaled down for the model; `null` before the first frame. */
  frame({ isFullSize = false } = {}) {
    const { videoWidth: width, videoHeight: height } = this.#video;
    if (!width || !height) return null;
    const scale = isFullSize ? 1 : Math.min(1, longSide / Math.max(width, height));
    this.#canvas.width = Math.round(width * scale);
    this.#canvas.height = Math.round(height * scale);
    this.#canvas.getContext("2d").drawImage(this.#video, 0, 0, this.#canvas.width, this.#canvas.height);
    return new Promise((resolve, reject) => this.#canvas.toBlob(
      (blob) => (blob ? resolve(blob) : reject(new Error("The image is too large for this browser."))), "image/jpeg", 0.92));
  }
}
