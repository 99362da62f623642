// The 3D scene: floor, links and lights, and the drawing of one frame.

import * as THREE from "three";
import { Camera } from "./camera.js";
import { Axes, Contacts, Forces, Joints, Masses } from "./overlays.js";
import { Quality } from "./quality.js";
import { lines, shape, squares } from "./shapes.js";

// True without a graphics card. Antialiasing would then take most of the time.
const SOFTWARE = (() => {
  const context = document.createElement("canvas").getContext("webgl2");
  const info = context?.getExtension("WEBGL_debug_renderer_info");
  const name = info ? context.getParameter(info.UNMASKED_RENDERER_WEBGL) : "";
  context?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|software|basic render/i.test(name);
})();

const THEMES = {
  light: { sky: 0xe6edf3, floor: 0xbccad5, grid: 0x8796a3, sun: 2.6, fill: 1.6 },
  dark: { sky: 0x12161b, floor: 0x4a5763, grid: 0x50606e, sun: 2.4, fill: 1.4 },
};

export class Stage {
  constructor(root, model) {
    this.model = model;
    this.quality = new Quality(SOFTWARE);
    this.scene = new THREE.Scene();
    this.links = model.links.map(() => new THREE.Group());
    this.world = new THREE.Group();
    this.floors = [];
    this.scene.add(this.world, ...this.links);
    model.geoms.forEach((geom, i) => this.addGeom(geom, i % 4));
    this.overlays = {};
    this.pose(0);
    const box = this.extent();
    const radius = Math.max(box.getSize(new THREE.Vector3()).length() / 2, 0.1);
    this.addOverlays(model, radius);
    this.addGrid();
    this.addLights(radius);
    this.addRenderer(root);
    this.camera = new Camera(this.renderer.domElement, box, radius, () => (this.dirty = true));
    this.scene.fog = new THREE.Fog(0, 12 * radius + 4, 50 * radius + 20);
  }

  // `layer` offsets the depth of coinciding surfaces, such as the two caps at a knee, which would
  // flicker otherwise (z-fighting).
  addGeom(geom, layer) {
    const [red, green, blue, alpha] = geom.rgba;
    if (alpha === 0) return;
    const floor = geom.type === "plane";
    const material = new THREE.MeshStandardMaterial({
      color: new THREE.Color().setRGB(red, green, blue, THREE.SRGBColorSpace),
      opacity: alpha,
      transparent: alpha < 1,
      roughness: floor ? 1 : 0.55,
      map: floor ? squares(geom.size) : null,
      polygonOffset: true,
      polygonOffsetFactor: floor ? 1 : -0.3 * layer,
      polygonOffsetUnits: floor ? 1 : -150 * layer,
    });
    const mesh = new THREE.Mesh(shape(geom), material);
    mesh.position.fromArray(geom.pos);
    mesh.quaternion.copy(quaternion(geom.rot, 0));
    mesh.castShadow = !floor;
    mesh.receiveShadow = true;
    mesh.userData = geom;
    if (floor) this.floors.push(mesh);
    (this.links[geom.link] ?? this.world).add(mesh);
  }

  // Returns the box that the camera shows at the start: everything that moves, or else everything.
  extent() {
    const box = new THREE.Box3();
    this.scene.updateMatrixWorld();
    this.links.forEach((link) => box.expandByObject(link));
    if (box.isEmpty()) {
      const solid = this.world.children.filter((mesh) => !this.floors.includes(mesh));
      solid.forEach((mesh) => box.expandByObject(mesh));
    }
    return box.isEmpty() ? new THREE.Box3(ONES.clone().negate(), ONES) : box;
  }

  addOverlays(model, radius) {
    const kinds = { contacts: Contacts, joints: Joints, axes: Axes, masses: Masses };
    if (model.arrays.forces) kinds.forces = Forces;
    for (const [name, Kind] of Object.entries(kinds))
      this.overlays[name] = new Kind(model, radius, this.links);
    Object.values(this.overlays).forEach((overlay) => this.scene.add(overlay.group));
  }

  // A model without a floor gets a grid, against which motion is visible.
  addGrid() {
    if (this.floors.length) return;
    this.grid = lines();
    this.scene.add(this.grid);
  }

  addLights(radius) {
    this.fill = new THREE.HemisphereLight(0xffffff, 0x8a8f98);
    this.fill.position.set(0, 0, 1);
    this.sun = new THREE.DirectionalLight(0xfffaf0);
    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(2048, 2048);
    this.sun.shadow.normalBias = 0.01 * radius;
    this.sun.shadow.radius = 3;
    this.sunOffset = new THREE.Vector3(2, -2.5, 6).multiplyScalar(radius);
    const reach = 3.5 * radius;
    const view = { left: -reach, right: reach, top: reach, bottom: -reach };
    Object.assign(this.sun.shadow.camera, view, { near: 0.1 * radius, far: 30 * radius });
    this.scene.add(this.fill, this.sun, this.sun.target);
  }

  addRenderer(root) {
    this.renderer = new THREE.WebGLRenderer({ antialias: !SOFTWARE });
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = THREE.PCFShadowMap;
    root.append(this.renderer.domElement);
  }

  theme(name) {
    const { sky, floor, grid, sun, fill } = THEMES[name];
    this.scene.background = new THREE.Color(sky);
    this.scene.fog.color.set(sky);
    this.floors.forEach((mesh) => mesh.material.color.set(floor));
    this.grid?.material.color.set(grid);
    this.sun.intensity = sun;
    this.fill.intensity = fill;
    this.dirty = true;
  }

  // Shows frame `at`; a fraction interpolates between two frames.
  pose(at) {
    const { arrays, frames } = this.model;
    const first = Math.min(Math.floor(at + 1e-6), frames - 1);
    const second = Math.min(first + 1, frames - 1);
    const share = Math.max(0, at - first);
    const { pos, rot } = arrays;
    const count = this.links.length;
    this.links.forEach((link, i) => {
      const a = first * count + i;
      const b = second * count + i;
      link.position.fromArray(pos.data, 3 * a).lerp(SPOT.fromArray(pos.data, 3 * b), share);
      link.quaternion.copy(quaternion(rot.data, 4 * a)).slerp(quaternion(rot.data, 4 * b), share);
    });
    this.frame = first;
    this.markOverlays();
    this.camera?.track(this.links);
    this.dirty = true;
  }

  // Only visible overlays are computed.
  markOverlays() {
    for (const overlay of Object.values(this.overlays))
      if (overlay.group.visible) overlay.pose(this.frame);
  }

  // Shows or hides one overlay.
  mark(name, visible) {
    this.overlays[name].group.visible = visible;
    this.markOverlays();
    this.dirty = true;
  }

  follow(link) {
    this.camera.follow(link, this.links);
  }

  // Highlights one link, or none (-1).
  highlight(link) {
    this.links.forEach((group, i) =>
      group.children.forEach((mesh) => mesh.material.emissive.set(i === link ? 0x553300 : 0)),
    );
    this.dirty = true;
  }

  // Returns the geom under a point of the canvas, in pixels.
  pick(x, y) {
    const { clientWidth, clientHeight } = this.renderer.domElement;
    const point = new THREE.Vector2((2 * x) / clientWidth - 1, 1 - (2 * y) / clientHeight);
    const ray = new THREE.Raycaster();
    ray.setFromCamera(point, this.camera.lens);
    return ray.intersectObjects([this.world, ...this.links])[0]?.object.userData;
  }

  // Applies a level of quality.
  apply({ pixels, shadows }) {
    const ratio = Math.min(window.devicePixelRatio, pixels);
    if (ratio !== this.renderer.getPixelRatio()) this.renderer.setPixelRatio(ratio);
    this.sun.castShadow = shadows;
  }

  resize(width, height, covered) {
    this.quality.reset();
    this.renderer.setSize(width, height);
    this.camera.resize(width, height, covered);
    this.dirty = true;
  }

  // Draws if anything has changed since the last time, and returns whether it did.
  draw(now) {
    this.camera.update();
    const due = this.quality.isDue(now);
    if (!this.dirty && !due) return false;
    this.apply(this.quality.look(this.dirty));
    this.quality.frame(now);
    this.dirty = false;
    this.sun.target.position.copy(this.camera.target);
    this.sun.position.copy(this.camera.target).add(this.sunOffset);
    this.renderer.render(this.scene, this.camera.lens);
    return true;
  }
}

const ONES = new THREE.Vector3(1, 1, 1);
const SPOT = new THREE.Vector3();

// Brax's quaternions are (w, x, y, z), those of three.js (x, y, z, w).
function quaternion(values, start) {
  const [w, x, y, z] = values.slice(start, start + 4);
  return new THREE.Quaternion(x, y, z, w);
}
