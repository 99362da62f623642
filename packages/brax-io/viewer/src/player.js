// The clock: the time of the trajectory that is shown, and whether it is running.

const MAX_DELAY = 0.5; // seconds behind the newest frame from which a live page jumps to it

export class Player {
  constructor(frames, dt) {
    this.first = 0; // oldest frame in the history of a live page
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
    // The 1e-6 makes up for rounding: frame n is shown at the time n * dt.
    return Math.min(this.frames - 1, Math.floor(this.time / this.dt + 1e-6));
  }

  // Advances to the page's time `now` [ms], and starts again after the end, unless the page is live.
  advance(now) {
    const seconds = (now - this.now) / 1000;
    this.now = now;
    const start = this.first * this.dt;
    this.time = Math.max(this.time, start);
    if (!this.playing || this.end === start) return;
    // A hidden tab gets no ticks; without the limit it would jump ahead when it is shown again.
    const next = this.time + Math.min(seconds, 0.25) * this.speed;
    if (this.live) this.time = next > this.end || next < this.end - MAX_DELAY ? this.end : next;
    else this.time = next > this.end ? (this.time < this.end ? this.end : 0) : next;
  }

  seek(frame) {
    this.time = Math.max(this.first, Math.min(this.frames - 1, frame)) * this.dt;
  }
}
