// The clock: what time of the trajectory is shown, and whether it runs.

export class Player {
  constructor(frames, dt) {
    this.frames = frames;
    this.dt = dt;
    this.time = 0;
    this.now = 0;
    this.speed = 1;
    this.playing = false;
  }

  get end() {
    return (this.frames - 1) * this.dt;
  }

  get frame() {
    return Math.min(this.frames - 1, Math.floor(this.time / this.dt + 1e-6));
  }

  // Runs on to the moment `now` of the page's life [ms]; starts again at the end.
  advance(now) {
    const seconds = (now - this.now) / 1000;
    this.now = now;
    if (!this.playing || this.end === 0) return;
    const next = this.time + Math.min(seconds, 0.25) * this.speed;
    this.time = next > this.end ? (this.time < this.end ? this.end : 0) : next;
  }

  seek(frame) {
    this.time = Math.max(0, Math.min(this.frames - 1, frame)) * this.dt;
  }
}
