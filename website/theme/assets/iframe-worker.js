// Browsers refuse to start a worker from a file on disk. There, the worker's script runs in a hidden frame instead,
// which has the same messages. The search of the site is the one worker that there is.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe");
    #started;

    constructor(url) {
      super();
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const inside = this.#frame.contentWindow;
      inside.postMessage = (data) => {
        const message = new MessageEvent("message", { data });
        this.dispatchEvent(message);
        this.onmessage?.(message);
      };
      const script = inside.document.createElement("script");
      script.src = url;
      this.#started = new Promise((resolve, reject) => {
        script.onload = resolve;
        script.onerror = () => reject(new Error(`${url} cannot be loaded`));
      });
      inside.document.body.append(script);
    }

    postMessage(data) {
      const inside = this.#frame.contentWindow;
      this.#started.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.#frame.remove();
    }
  };
}
