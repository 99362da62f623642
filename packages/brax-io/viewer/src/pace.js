// How fine to draw: as fine as it can be at thirty frames a second, and always fine at rest.

const SLOW = 33; // milliseconds a frame, on average, that are too many
const REST = 250; // milliseconds without a frame after which the picture is at rest
const LEVELS = [
  { pixels: 2, shadows: true },
  { pixels: 1, shadows: false },
  { pixels: 0.6, shadows: false },
  { pixels: 0.4, shadows: false },
  { pixels: 0.25, shadows: false },
];

export class Pace {
  // `slow` says that there is no graphics card, so that there is no need to find it out.
  constructor(slow) {
    this.start = slow ? 2 : 0;
    this.last = 0;
    this.reset();
  }

  reset() {
    this.level = this.start; // what movement is drawn at
    this.mean = 0;
    this.fine = true; // whether the last picture was the finest
  }

  // Takes note of a frame at `now` [ms].
  frame(now) {
    const gap = now - this.last;
    this.last = now;
    if (gap > REST) return;
    this.mean += 0.25 * (gap - this.mean);
    if (this.mean < SLOW || this.level === LEVELS.length - 1) return;
    this.level += 1;
    this.mean = 0;
  }

  // What to draw the frame at.
  look(moving) {
    const level = moving ? this.level : 0;
    this.fine = level === 0;
    return LEVELS[level];
  }

  // Whether a coarse picture has come to rest and is to be drawn again.
  isDue(now) {
    return !this.fine && now - this.last > REST;
  }
}
