// The camera: its pictures while somebody looks, and nothing at all otherwise.

/** The long side of the pictures that are taken, in pixels. */
const longSide = 640;

export class Camera {
  #video;
  #canvas = document.createElement("canvas");
  #lost;
  #isWanted = false;
  /** The request that is under way, if any: the browser is asked once at a time. */
  #opening = null;

  /** `lost` is called where the camera ends by itself, as when it is unplugged. */
  constructor(video, lost) {
    this.#video = video;
    this.#lost = lost;
  }

  get isOn() { return this.#video.srcObject !== null; }

  /** Starts it, and waits for the first picture or until it was stopped. Throws with a sentence where there is none to be had. */
  async start() {
    this.#isWanted = true;
    this.#opening ??= this.#open().finally(() => { this.#opening = null; });
    await this.#opening;
  }

  async #open() {
    if (this.isOn) return;
    if (!navigator.mediaDevices?.getUserMedia) throw new Error("This browser gives no camera to the page.");
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({
        audio: false, video: { facingMode: "environment", width: { ideal: 1280 }, height: { ideal: 720 } },
      });
    } catch (error) {
      throw new Error(
        error.name === "NotAllowedError" ? "The browser was not allowed to use the camera."
          : error.name === "NotFoundError" ? "There is no camera on this machine."
            : "The camera cannot be used; another program may have it.");
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
      // Stopped, and perhaps wanted again, meanwhile.
      if (this.#video.srcObject !== stream) return this.#isWanted ? this.#open() : undefined;
      this.stop();
      throw new Error("The browser cannot show what the camera sees.");
    }
    this.#video.hidden = !this.isOn;
  }

  #end(stream) {
    if (this.#video.srcObject !== stream) return;
    this.stop();
    this.#lost();
  }

  /** Ends it: its light goes out. */
  stop() {
    this.#isWanted = false;
    for (const track of this.#video.srcObject?.getTracks() ?? []) track.stop();
    this.#video.srcObject = null;
    this.#video.hidden = true;
  }

  /** What it sees now, as a JPEG; at full size, or small as the model looks at it. `null` while it sees nothing yet. */
  frame({ whole = false } = {}) {
    const { videoWidth: width, videoHeight: height } = this.#video;
    if (!width || !height) return null;
    const scale = whole ? 1 : Math.min(1, longSide / Math.max(width, height));
    this.#canvas.width = Math.round(width * scale);
    this.#canvas.height = Math.round(height * scale);
    this.#canvas.getContext("2d").drawImage(this.#video, 0, 0, this.#canvas.width, this.#canvas.height);
    return new Promise((done, fail) => this.#canvas.toBlob(
      (blob) => (blob ? done(blob) : fail(new Error("The picture is too large for this browser."))), "image/jpeg", 0.92));
  }
}
