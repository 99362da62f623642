// What Python wrote: a model as JSON, and every number that changes as float32.

export async function read(root) {
  const scene = JSON.parse(root.querySelector(".brax-model").textContent);
  const numbers = await floats(root.querySelector(".brax-numbers").textContent);
  let start = 0;
  scene.arrays = Object.fromEntries(
    scene.arrays.map(([name, shape]) => {
      const size = shape.reduce((a, b) => a * b, 1);
      start += size;
      return [name, { shape, data: numbers.subarray(start - size, start) }];
    }),
  );
  scene.first = 0; // the frame that the first rows are of
  return scene;
}

// Base64 of gzip of little-endian float32.
async function floats(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Float32Array(await new Response(stream).arrayBuffer());
}
