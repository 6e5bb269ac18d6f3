// The camera, which is on only while the page is visible and not paused.

/** The long side of the frames for classification, in pixels. */
const longSide = 640;

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

  /** Starts the camera, and waits for the first frame or for `stop()`. Throws an error with a message if there is no camera. */
  async start() {
    this.#isWanted = true;
    this.#opening ??= this.#open().finally(() => { this.#opening = null; });
    await this.#opening;
  }

  async #open() {
    if (this.isOn) return;
    if (!navigator.mediaDevices?.getUserMedia) throw new Error("This browser gives the page no access to a camera.");
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({
        audio: false, video: { facingMode: "environment", width: { ideal: 1280 }, height: { ideal: 720 } },
      });
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
