// Meshes for geoms, by the name of their geometry type; sizes are MuJoCo's.

import * as THREE from "three";

const PLANE_EXTENT = 400; // metres shown of a plane that has no end

// three's capsules and cylinders lie along y, ours along z.
const alongZ = (geometry) => geometry.rotateX(Math.PI / 2);

const SHAPES = {
  plane: ([x, y]) => new THREE.PlaneGeometry(2 * x || PLANE_EXTENT, 2 * y || PLANE_EXTENT),
  sphere: ([r]) => new THREE.SphereGeometry(r, 40, 24),
  capsule: ([r, half]) => alongZ(new THREE.CapsuleGeometry(r, 2 * half, 12, 28)),
  cylinder: ([r, half]) => alongZ(new THREE.CylinderGeometry(r, r, 2 * half, 40)),
  box: ([x, y, z]) => new THREE.BoxGeometry(2 * x, 2 * y, 2 * z),
  ellipsoid: ([x, y, z]) => new THREE.SphereGeometry(1, 40, 24).scale(x, y, z),
};

function fromTriangles({ vertices, faces }) {
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(vertices.flat(), 3));
  geometry.setIndex(faces.flat());
  const flat = geometry.toNonIndexed(); // a normal per face, so that edges stay edges
  flat.computeVertexNormals();
  return flat;
}

export function shape(geom) {
  if (geom.mesh) return fromTriangles(geom.mesh);
  if (!(geom.type in SHAPES)) throw new Error(`no shape '${geom.type}'`);
  return SHAPES[geom.type](geom.size);
}

// A floor of one-metre squares, drawn once and repeated.
export function squares(size) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 256;
  const paint = canvas.getContext("2d");
  paint.fillStyle = "#ffffff";
  paint.fillRect(0, 0, 256, 256);
  paint.fillStyle = "#e4e4e4";
  paint.fillRect(0, 0, 128, 128);
  paint.fillRect(128, 128, 128, 128);
  const texture = new THREE.CanvasTexture(canvas);
  texture.wrapS = texture.wrapT = THREE.RepeatWrapping;
  texture.repeat.set(size[0] || PLANE_EXTENT / 2, size[1] || PLANE_EXTENT / 2);
  texture.anisotropy = 16;
  texture.colorSpace = THREE.SRGBColorSpace;
  return texture;
}
