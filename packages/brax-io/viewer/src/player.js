// The clock: what time of the trajectory is shown, and whether it runs.

const LATEST = 0.5; // seconds behind its newest frame at which a live page catches up

export class Player {
  constructor(frames, dt) {
    this.first = 0; // of a live page, the oldest frame that is kept
    this.frames = frames;
    this.dt = dt;
    this.time = 0;
    this.now = 0;
    this.speed = 1;
    this.playing = false;
    this.live = false;
  }

  get end() {
    return (this.frames - 1) * this.dt;
  }

  get frame() {
    return Math.min(this.frames - 1, Math.floor(this.time / this.dt + 1e-6));
  }

  // Runs on to the moment `now` of the page's life [ms]; starts again at the end, if there is one.
  advance(now) {
    const seconds = (now - this.now) / 1000;
    this.now = now;
    const start = this.first * this.dt;
    this.time = Math.max(this.time, start);
    if (!this.playing || this.end === start) return;
    const next = this.time + Math.min(seconds, 0.25) * this.speed;
    if (this.live) this.time = next > this.end || next < this.end - LATEST ? this.end : next;
    else this.time = next > this.end ? (this.time < this.end ? this.end : 0) : next;
  }

  seek(frame) {
    this.time = Math.max(this.first, Math.min(this.frames - 1, frame)) * this.dt;
  }
}
