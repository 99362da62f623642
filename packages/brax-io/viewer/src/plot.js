// A series as curves over the frames, one for each column, with a mark at the current frame.

export class Plot {
  constructor(name, values, player, onSeek) {
    Object.assign(this, { name, values, player });
    this.columns = values.shape[1] ?? 1;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "bx-plot";
    this.canvas.title = name;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `Curve: ${name}`);
    const seek = ({ offsetX, buttons }) => {
      if (buttons) onSeek(player.first + Math.round((offsetX / this.canvas.clientWidth) * this.last));
    };
    this.canvas.addEventListener("pointerdown", seek);
    this.canvas.addEventListener("pointermove", seek);
  }

  get data() {
    return this.values.data;
  }

  get last() {
    return Math.max(this.data.length / this.columns - 1, 1);
  }

  // Returns the values in a frame as text.
  value(frame) {
    const row = this.data.subarray(frame * this.columns, (frame + 1) * this.columns);
    return row.length === 1 ? row[0].toFixed(3) : [...row].map((x) => x.toFixed(1)).join(" ");
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width) return;
    const color = getComputedStyle(this.canvas).color;
    const look = `${width} ${height} ${color}`;
    if (look !== this.look || this.data !== this.drawn) {
      Object.assign(this, { look, drawn: this.data, curves: this.draft(width, height, color) });
      Object.assign(this.canvas, { width, height });
    }
    const pen = this.canvas.getContext("2d");
    pen.clearRect(0, 0, width, height);
    pen.drawImage(this.curves, 0, 0);
    pen.globalAlpha = 0.35;
    pen.fillStyle = color;
    const frame = Math.min(this.player.frame - this.player.first, this.last);
    pen.fillRect((frame / this.last) * width - 1, 0, 2, height);
    pen.globalAlpha = 1;
  }

  // Draws only the curves, which are cached while the mark moves.
  draft(width, height, color) {
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const pen = canvas.getContext("2d");
    const low = this.data.reduce((a, b) => Math.min(a, b), Infinity);
    const high = this.data.reduce((a, b) => Math.max(a, b), -Infinity);
    const scale = (height - 4) / (high - low || 1);
    for (let column = 0; column < this.columns; column++) {
      pen.strokeStyle = this.columns === 1 ? color : `hsl(${(360 * column) / this.columns} 65% 50%)`;
      pen.beginPath();
      for (let i = 0; i <= this.last; i++) {
        const y = this.data[i * this.columns + column];
        pen.lineTo((i / this.last) * width, height - 2 - (y - low) * scale);
      }
      pen.stroke();
    }
    return canvas;
  }
}
