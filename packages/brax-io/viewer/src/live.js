// Receives frames from the server of a live page.

const HISTORY = 500; // number of frames to look back at

export class Live {
  constructor(scene, player) {
    Object.assign(this, { scene, player });
    this.rows = Object.values(scene.arrays);
    for (const row of this.rows) {
      row.size = row.data.length;
      row.store = new Float32Array(HISTORY * row.size);
      row.store.set(row.data);
    }
    player.live = player.playing = true;
    const source = new EventSource("frames");
    source.onmessage = ({ data }) => this.append(floats(data));
    source.onerror = () => source.close(); // the server has stopped; the received frames stay
  }

  // Appends a frame, and drops the oldest one if the history is full.
  append(numbers) {
    const { scene, player } = this;
    const full = scene.frames === HISTORY;
    if (full) scene.first = ++player.first;
    else scene.frames++;
    let start = 0;
    for (const row of this.rows) {
      if (full) row.store.copyWithin(0, row.size);
      row.store.set(numbers.subarray(start, start + row.size), (scene.frames - 1) * row.size);
      row.data = row.store.subarray(0, scene.frames * row.size);
      start += row.size;
    }
    player.frames++;
  }
}

function floats(text) {
  return new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
}
