// The camera: its pictures while somebody looks, and nothing at all otherwise.

/** The long side of the pictures that are taken, in pixels. */
const longSide = 640;

export class Camera {
  #video;
  #canvas = document.createElement("canvas");

  constructor(video) { this.#video = video; }

  get isOn() { return this.#video.srcObject !== null; }

  /** Starts it, and waits for the first picture. Throws with a sentence where there is none to be had. */
  async start() {
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
    this.#video.srcObject = stream;
    await this.#video.play();
    this.#video.hidden = false;
  }

  /** Ends it: its light goes out. */
  stop() {
    for (const track of this.#video.srcObject?.getTracks() ?? []) track.stop();
    this.#video.srcObject = null;
    this.#video.hidden = true;
  }

  /** What it sees now, as a JPEG; at full size, or small as the model looks at it. */
  frame({ whole = false } = {}) {
    const { videoWidth: width, videoHeight: height } = this.#video;
    const scale = whole ? 1 : Math.min(1, longSide / Math.max(width, height));
    this.#canvas.width = Math.round(width * scale);
    this.#canvas.height = Math.round(height * scale);
    this.#canvas.getContext("2d").drawImage(this.#video, 0, 0, this.#canvas.width, this.#canvas.height);
    return new Promise((done, fail) => this.#canvas.toBlob(
      (blob) => (blob ? done(blob) : fail(new Error("The picture is too large for this browser."))), "image/jpeg", 0.92));
  }
}
