// Meshes of geoms by geometry type, with MuJoCo's sizes.

import * as THREE from "three";

const PLANE_EXTENT = 1000; // metres drawn of an infinite plane

// The axis of capsules and cylinders is y in three.js, and z in MuJoCo.
const alongZ = (geometry) => geometry.rotateX(Math.PI / 2);

const SHAPES = {
  plane: ([x, y]) => new THREE.PlaneGeometry(2 * x || PLANE_EXTENT, 2 * y || PLANE_EXTENT),
  sphere: ([r]) => new THREE.SphereGeometry(r, 40, 24),
  capsule: ([r, half]) => alongZ(new THREE.CapsuleGeometry(r, 2 * half, 8, 32)),
  cylinder: ([r, half]) => alongZ(new THREE.CylinderGeometry(r, r, 2 * half, 40)),
  box: ([x, y, z]) => new THREE.BoxGeometry(2 * x, 2 * y, 2 * z),
  ellipsoid: ([x, y, z]) => new THREE.SphereGeometry(1, 40, 24).scale(x, y, z),
};

function fromTriangles({ vertices, faces }) {
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(vertices.flat(), 3));
  geometry.setIndex(faces.flat());
  const flat = geometry.toNonIndexed(); // one normal per face keeps edges sharp
  flat.computeVertexNormals();
  return flat;
}

export function shape(geom) {
  if (geom.mesh) return fromTriangles(geom.mesh);
  if (!(geom.type in SHAPES)) throw new Error(`no shape '${geom.type}'`);
  return SHAPES[geom.type](geom.size);
}

// The texture of floors: squares of one metre in two tones.
export function squares(size) {
  return tiles(size, 2, (pen) => {
    pen.fillStyle = "#ffffff";
    pen.fillRect(0, 0, 256, 256);
    pen.fillStyle = "#e4e4e4";
    pen.fillRect(0, 0, 128, 128);
    pen.fillRect(128, 128, 128, 128);
  });
}

// The grid for a model without a floor: the lines between such squares.
export function lines() {
  const material = { map: tiles([0, 0], 1, (pen) => pen.strokeRect(0, 0, 256, 256)) };
  Object.assign(material, { transparent: true, depthWrite: false, side: THREE.DoubleSide });
  return new THREE.Mesh(SHAPES.plane([0, 0]), new THREE.MeshBasicMaterial(material));
}

// Returns a texture that is `metres` wide and repeats over a plane.
function tiles(size, metres, paint) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 256;
  const pen = canvas.getContext("2d");
  pen.lineWidth = 5;
  pen.strokeStyle = "#ffffff";
  paint(pen);
  const texture = new THREE.CanvasTexture(canvas);
  texture.wrapS = texture.wrapT = THREE.RepeatWrapping;
  const [across, along] = [0, 1].map((i) => (2 * size[i] || PLANE_EXTENT) / metres);
  texture.repeat.set(across, along);
  texture.anisotropy = 16;
  texture.colorSpace = THREE.SRGBColorSpace;
  return texture;
}
