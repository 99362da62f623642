// What is drawn over the bodies: where they touch, and what they turn about.

import * as THREE from "three";

const UP = new THREE.Vector3(0, 1, 0);
const HIDDEN = new THREE.Matrix4().makeScale(0, 0, 0);

// A dot and a rod for each of `count` places, seen through whatever is in front of them.
class Marks {
  constructor(count, color, dot, length) {
    const material = new THREE.MeshBasicMaterial({ color, depthTest: false, transparent: true });
    const rod = new THREE.CylinderGeometry(dot / 3, dot / 3, length, 8);
    this.dots = new THREE.InstancedMesh(new THREE.SphereGeometry(dot, 16, 12), material, count);
    this.rods = new THREE.InstancedMesh(rod, material, count);
    this.length = length;
    this.group = new THREE.Group().add(this.dots, this.rods);
    this.group.visible = false;
    for (const mesh of this.group.children) {
      mesh.frustumCulled = false;
      mesh.renderOrder = 1;
    }
  }

  hide(i) {
    this.dots.setMatrixAt(i, HIDDEN);
    this.rods.setMatrixAt(i, HIDDEN);
  }

  // Puts mark `i` at `place`; its rod along `along` starts at the place or is centred on it.
  put(i, place, along, centred) {
    const turn = new THREE.Quaternion().setFromUnitVectors(UP, along.clone().normalize());
    const shift = centred ? 0 : this.length / 2;
    const middle = UP.clone().applyQuaternion(turn).multiplyScalar(shift).add(place);
    const size = new THREE.Vector3().setScalar(along.lengthSq() > 0 ? 1 : 0);
    this.dots.setMatrixAt(i, new THREE.Matrix4().setPosition(place));
    this.rods.setMatrixAt(i, new THREE.Matrix4().compose(middle, turn, size));
  }

  done() {
    this.dots.instanceMatrix.needsUpdate = true;
    this.rods.instanceMatrix.needsUpdate = true;
  }
}

// Each row: whether it touches, the point, the normal.
export class Contacts {
  constructor(model, radius) {
    this.rows = model.arrays.contacts;
    this.count = this.rows.shape[1];
    this.marks = new Marks(this.count, 0xff3d57, 0.035 * radius, 0.3 * radius);
    this.group = this.marks.group;
  }

  pose(frame) {
    for (let i = 0; i < this.count; i++) {
      const start = 7 * (frame * this.count + i);
      const [touches, ...row] = this.rows.data.subarray(start, start + 7);
      const [place, normal] = vectors(row);
      if (touches) this.marks.put(i, place, normal, false);
      else this.marks.hide(i);
    }
    this.marks.done();
  }
}

// Each row: the anchor, and the axis (zero where a joint has none).
export class Joints {
  constructor(model, radius) {
    this.rows = model.arrays.joints;
    this.count = this.rows.shape[1];
    this.marks = new Marks(this.count, 0x2f7bff, 0.03 * radius, 0.35 * radius);
    this.group = this.marks.group;
  }

  pose(frame) {
    for (let i = 0; i < this.count; i++) {
      const start = 6 * (frame * this.count + i);
      const [place, axis] = vectors([...this.rows.data.subarray(start, start + 6)]);
      this.marks.put(i, place, axis, true);
    }
    this.marks.done();
  }
}

function vectors([x, y, z, a, b, c]) {
  return [new THREE.Vector3(x, y, z), new THREE.Vector3(a, b, c)];
}
