// Reads the data that Python wrote: the model as JSON, and all changing numbers as float32.

export async function read(root) {
  const scene = JSON.parse(root.querySelector(".brax-model").textContent);
  const numbers = await floats(root.querySelector(".brax-numbers").textContent);
  let start = 0;
  scene.arrays = Object.fromEntries(
    scene.arrays.map(([name, shape]) => {
      const size = shape.reduce((a, b) => a * b, 1);
      start += size;
      return [name, { shape, data: rows(numbers.subarray(start - size, start), shape[0]) }];
    }),
  );
  scene.first = 0; // index of the frame in the first rows
  return scene;
}

// Transposes columns over the frames to one row for each frame.
function rows(columns, frames) {
  const width = columns.length / frames;
  return columns.map((_, i) => columns[(i % width) * frames + Math.floor(i / width)]);
}

// Decodes base64 of gzip of little-endian float32, stored as byte planes: the first bytes of all
// numbers, then the second bytes and so on, which compresses better (brax/io/viewer/packing.py).
async function floats(text) {
  const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const count = planes.length / 4;
  const bytes = planes.map((_, i) => planes[(i % 4) * count + (i >> 2)]);
  return new Float32Array(bytes.buffer);
}
