// The camera: the mouse orbits it, and it moves along with the link that it follows.

import * as THREE from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";

export class Camera {
  constructor(canvas, box, radius, onChange) {
    this.lens = new THREE.PerspectiveCamera(40, 1, radius / 10, radius * 400 + 400);
    this.lens.up.set(0, 0, 1);
    this.orbit = new OrbitControls(this.lens, canvas);
    this.orbit.minDistance = radius / 3;
    this.orbit.maxDistance = radius * 40;
    this.orbit.addEventListener("change", onChange);
    this.center = box.getCenter(new THREE.Vector3());
    this.radius = radius;
    this.followed = -1;
    this.last = new THREE.Vector3();
  }

  // The point that the camera orbits around.
  get target() {
    return this.orbit.target;
  }

  // Returns to a view of the whole model, from the front right and slightly above.
  // 3 radii fill the view of 40 degrees; a tall canvas needs more distance for its width.
  home(center = this.center) {
    this.target.copy(center);
    const distance = this.radius * Math.max(3, 3 / this.lens.aspect) * this.coveredFactor;
    this.lens.position.set(1.3, -1.8, 0.95).setLength(distance).add(center);
    this.orbit.update();
  }

  // Orbits to the left and up by angles [rad].
  turn(left, up) {
    this.orbit.rotateLeft(left);
    this.orbit.rotateUp(up);
  }

  // Divides the distance from the target by a factor.
  approach(factor) {
    this.orbit.dollyIn(factor);
  }

  follow(link, links) {
    this.followed = link;
    if (link >= 0) this.last.copy(links[link].position);
  }

  // Moves with the followed link, and keeps the direction of view.
  track(links) {
    const link = links[this.followed];
    if (!link) return;
    const step = link.position.clone().sub(this.last);
    this.last.copy(link.position);
    this.target.add(step);
    this.lens.position.add(step);
  }

  // Fits the view to a canvas whose lowest `covered` pixels are behind the controls.
  resize(width, height, covered) {
    const first = this.coveredFactor === undefined;
    this.coveredFactor = Math.min(height / Math.max(height - covered, 1), 2);
    this.lens.aspect = width / Math.max(height, 1);
    this.lens.setViewOffset(width, height, 0, covered / 2, width, height);
    if (first) this.home();
  }

  update() {
    this.orbit.update();
  }
}
