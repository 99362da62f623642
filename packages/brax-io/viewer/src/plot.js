// The first series (the reward) as a curve above the scrub bar.

export class Plot {
  constructor([name, data], player) {
    this.data = data;
    this.player = player;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "bx-plot";
    this.canvas.title = name;
    this.low = data.reduce((a, b) => Math.min(a, b), Infinity);
    this.high = data.reduce((a, b) => Math.max(a, b), -Infinity);
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    Object.assign(this.canvas, { width, height });
    const pen = this.canvas.getContext("2d");
    pen.strokeStyle = getComputedStyle(this.canvas).color;
    const last = Math.max(this.data.length - 1, 1);
    const scale = (height - 4) / (this.high - this.low || 1);
    pen.beginPath();
    this.data.forEach((y, i) => pen.lineTo((i / last) * width, height - 2 - (y - this.low) * scale));
    pen.stroke();
    const now = (this.player.frame / last) * width;
    pen.globalAlpha = 0.35;
    pen.fillStyle = pen.strokeStyle;
    pen.fillRect(now - 1, 0, 2, height);
  }
}
