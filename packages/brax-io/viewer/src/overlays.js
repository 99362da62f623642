// Overlays on the bodies: contacts and their forces, joint axes, link frames, and centres of mass.

import * as THREE from "three";

const UP = new THREE.Vector3(0, 1, 0);
const HIDDEN = new THREE.Matrix4().makeScale(0, 0, 0);

function material(color) {
  return new THREE.MeshBasicMaterial({ color, depthTest: false, transparent: true });
}

// Returns `count` instances of a shape, visible through everything in front of them.
function copies(geometry, color, count) {
  const mesh = new THREE.InstancedMesh(geometry, material(color), count);
  // three.js culls by the bounds of one instance at the origin.
  mesh.frustumCulled = false;
  mesh.renderOrder = 1;
  return mesh;
}

// A dot and a rod for each of `count` points; `length` is the length of a rod with factor 1.
class Marks {
  constructor(count, color, dot, length) {
    this.dots = copies(new THREE.SphereGeometry(dot, 16, 12), color, count);
    this.rods = copies(new THREE.CylinderGeometry(dot / 3, dot / 3, length, 8), color, count);
    this.length = length;
    this.group = new THREE.Group().add(this.dots, this.rods);
    this.group.visible = false;
  }

  hide(i) {
    this.dots.setMatrixAt(i, HIDDEN);
    this.rods.setMatrixAt(i, HIDDEN);
  }

  // Places mark `i` at `place`, with its rod along `along`, either starting there or centred there.
  put(i, place, along, centred, long = 1) {
    const turn = new THREE.Quaternion().setFromUnitVectors(UP, along.clone().normalize());
    const shift = centred ? 0 : (this.length * long) / 2;
    const middle = UP.clone().applyQuaternion(turn).multiplyScalar(shift).add(place);
    const size = new THREE.Vector3(1, long, 1).multiplyScalar(along.lengthSq() > 0 ? 1 : 0);
    this.dots.setMatrixAt(i, new THREE.Matrix4().setPosition(place));
    this.rods.setMatrixAt(i, new THREE.Matrix4().compose(middle, turn, size));
  }

  done() {
    this.dots.instanceMatrix.needsUpdate = true;
    this.rods.instanceMatrix.needsUpdate = true;
  }
}

// Each row: 1 if active, the point, the normal.
export class Contacts {
  constructor(model, radius) {
    this.rows = model.arrays.contacts;
    this.count = this.rows.shape[1];
    this.marks = new Marks(this.count, 0xff3d57, 0.035 * radius, 0.3 * radius);
    this.group = this.marks.group;
  }

  pose(frame) {
    for (let i = 0; i < this.count; i++) {
      const [touches, place, normal] = contact(this.rows, frame, i);
      if (touches) this.marks.put(i, place, normal, false);
      else this.marks.hide(i);
    }
    this.marks.done();
  }
}

// Each row: the force at the contact with the same index. The largest of all is drawn as long as the
// model.
export class Forces {
  constructor(model, radius) {
    this.contacts = model.arrays.contacts;
    this.rows = model.arrays.forces;
    this.count = this.rows.shape[1];
    this.marks = new Marks(this.count, 0xffa319, 0.03 * radius, 1.2 * radius);
    this.group = this.marks.group;
    const { data } = this.rows;
    this.largest = 1e-12;
    for (let i = 0; i < data.length; i += 3)
      this.largest = Math.max(this.largest, Math.hypot(data[i], data[i + 1], data[i + 2]));
  }

  pose(frame) {
    for (let i = 0; i < this.count; i++) {
      const force = vector(this.rows.data, 3 * (frame * this.count + i));
      const [touches, place] = contact(this.contacts, frame, i);
      if (touches) this.marks.put(i, place, force, false, force.length() / this.largest);
      else this.marks.hide(i);
    }
    this.marks.done();
  }
}

// Anchors and axes are in the links' frames; those in `axes` differ from frame to frame.
export class Joints {
  constructor(model, radius, links) {
    Object.assign(this, { joints: model.joints, axes: model.arrays.axes, links });
    this.marks = new Marks(this.joints.length, 0x2f7bff, 0.03 * radius, 0.35 * radius);
    this.group = this.marks.group;
  }

  pose(frame) {
    this.joints.forEach((joint, i) => {
      const start = 6 * (frame * this.axes.shape[1] + joint.row);
      const [anchor, axis] =
        joint.row < 0
          ? [vector(joint.anchor, 0), vector(joint.axis, 0)]
          : [vector(this.axes.data, start), vector(this.axes.data, start + 3)];
      const link = this.links[joint.link];
      axis.applyQuaternion(link.quaternion);
      this.marks.put(i, anchor.applyQuaternion(link.quaternion).add(link.position), axis, true);
    });
    this.marks.done();
  }
}

// Three short rods along the axes of every link: x red, y green, z blue.
export class Axes {
  constructor(model, radius, links) {
    this.group = new THREE.Group();
    this.group.visible = false;
    this.links = links;
    const length = 0.25 * radius;
    const rod = new THREE.CylinderGeometry(0.02 * radius, 0.02 * radius, length, 8);
    rod.translate(0, length / 2, 0);
    const turns = [["z", -1], ["x", 0], ["x", 1]]; // quarter turns from the y axis to x, y and z
    this.rods = [0xe5484d, 0x30a46c, 0x3e63dd].map((color, i) => {
      const [about, quarter] = turns[i];
      const geometry = rod.clone();
      if (about === "x") geometry.rotateX((quarter * Math.PI) / 2);
      else geometry.rotateZ((quarter * Math.PI) / 2);
      return copies(geometry, color, links.length);
    });
    this.group.add(...this.rods);
  }

  pose() {
    this.links.forEach((link, i) => {
      link.updateMatrix();
      this.rods.forEach((rod) => rod.setMatrixAt(i, link.matrix));
    });
    this.rods.forEach((rod) => (rod.instanceMatrix.needsUpdate = true));
  }
}

// A dot at the centre of mass of every link, and a larger one at that of the whole model.
export class Masses {
  constructor(model, radius, links) {
    Object.assign(this, { model, links });
    this.total = model.masses.reduce((a, b) => a + b, 0);
    this.dots = copies(new THREE.SphereGeometry(0.025 * radius, 16, 12), 0x12a594, links.length);
    this.whole = copies(new THREE.SphereGeometry(0.06 * radius, 24, 16), 0xd6409f, 1);
    this.group = new THREE.Group().add(this.dots, this.whole);
    this.group.visible = false;
  }

  // Returns the centre of mass of the whole model in its current pose.
  centre() {
    const sum = new THREE.Vector3();
    this.links.forEach((_, i) => sum.addScaledVector(this.of(i), this.model.masses[i] / this.total));
    return sum;
  }

  of(i) {
    const { position, quaternion } = this.links[i];
    return vector(this.model.centres[i], 0).applyQuaternion(quaternion).add(position);
  }

  pose() {
    this.links.forEach((_, i) => this.dots.setMatrixAt(i, new THREE.Matrix4().setPosition(this.of(i))));
    this.whole.setMatrixAt(0, new THREE.Matrix4().setPosition(this.centre()));
    this.dots.instanceMatrix.needsUpdate = this.whole.instanceMatrix.needsUpdate = true;
  }
}

function contact({ data, shape }, frame, i) {
  const start = 7 * (frame * shape[1] + i);
  return [data[start], vector(data, start + 1), vector(data, start + 4)];
}

function vector(values, start) {
  return new THREE.Vector3().fromArray(values, start);
}
