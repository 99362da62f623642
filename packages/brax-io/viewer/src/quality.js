// Adaptive quality: the best that keeps thirty frames a second in motion, and full quality at rest.

const SLOW = 33; // mean milliseconds per frame from which the quality is reduced
const REST = 250; // milliseconds without a change after which the picture counts as at rest
const LEVELS = [
  { pixels: 2, shadows: true },
  { pixels: 1, shadows: false },
  { pixels: 0.6, shadows: false },
  { pixels: 0.4, shadows: false },
  { pixels: 0.25, shadows: false },
];

export class Quality {
  // `slow` is true if there is no graphics card, which saves trying the better levels first.
  constructor(slow) {
    this.start = slow ? 2 : 0;
    this.last = 0;
    this.reset();
  }

  reset() {
    this.level = this.start; // the level in motion
    this.mean = 0;
    this.full = true; // true if the last picture had full quality
  }

  // Records a frame at `now` [ms], and reduces the level if frames take too long.
  frame(now) {
    const gap = now - this.last;
    this.last = now;
    if (gap > REST) return;
    // An exponential moving average, so that a single slow frame does not reduce the quality.
    this.mean += 0.25 * (gap - this.mean);
    if (this.mean < SLOW || this.level === LEVELS.length - 1) return;
    this.level += 1;
    this.mean = 0;
  }

  // Returns the settings for the next frame.
  look(moving) {
    const level = moving ? this.level : 0;
    this.full = level === 0;
    return LEVELS[level];
  }

  // Returns whether a reduced picture has come to rest and must be drawn again in full quality.
  isDue(now) {
    return !this.full && now - this.last > REST;
  }
}
