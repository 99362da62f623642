// The clock: what time of the trajectory is shown, and whether it runs.

export class Player {
  constructor(frames, dt) {
    this.frames = frames;
    this.dt = dt;
    this.end = (frames - 1) * dt;
    this.time = 0;
    this.speed = 1;
    this.playing = false;
  }

  get frame() {
    return Math.min(this.frames - 1, Math.floor(this.time / this.dt + 1e-6));
  }

  // Runs on by `seconds` of the viewer's life; starts again at the end.
  advance(seconds) {
    if (!this.playing || this.end === 0) return;
    const next = this.time + Math.min(seconds, 0.25) * this.speed;
    this.time = next > this.end ? (this.time < this.end ? this.end : 0) : next;
  }

  seek(frame) {
    this.time = Math.max(0, Math.min(this.frames - 1, frame)) * this.dt;
  }
}
