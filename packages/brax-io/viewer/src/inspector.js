// The inspector: parent, mass and pose of a link, and the coordinates of its joints.

import { element } from "./dom.js";

export class Inspector {
  constructor(model, stage) {
    Object.assign(this, { model, stage, link: -1 });
    this.name = element("h2");
    this.table = element("dl");
    const close = element("button", { "aria-label": "Close", onclick: () => this.show(-1) }, "×");
    this.card = element(
      "section",
      { class: "bx-card bx-inspector", "aria-label": "Inspector", hidden: "" },
      element("header", {}, this.name, close),
      this.table,
    );
  }

  // Shows one link; -1 closes the inspector.
  show(link, frame = 0) {
    this.link = link;
    this.card.hidden = link < 0;
    this.stage.highlight(link);
    if (link < 0) return;
    this.name.textContent = this.model.links[link];
    this.joints = this.model.joints.filter((joint) => joint.link === link);
    const rows = [
      row("parent", this.model.links[this.model.parents[link]] ?? "world"),
      row("mass", `${shorten(this.model.masses[link])} kg`),
      row("position", ""),
      row("rotation", ""),
      ...this.joints.map((joint) => row(joint.name, "", describe(joint))),
    ];
    // A joint may have the name "position" too, so values are found by their place, not by name.
    [, , this.position, this.rotation, ...this.jointTexts] = rows.map(([, value]) => value);
    this.table.replaceChildren(...rows.flat());
    this.update(frame);
  }

  update(frame) {
    if (this.link < 0) return;
    const { pos, rot, q } = this.model.arrays;
    const at = frame * this.model.links.length + this.link;
    const place = [...pos.data.subarray(3 * at, 3 * at + 3)];
    this.position.textContent = place.map((x) => x.toFixed(3)).join(" ");
    const turn = [...rot.data.subarray(4 * at, 4 * at + 4)];
    this.rotation.textContent = turn.map((x) => x.toFixed(2)).join(" ");
    this.joints.forEach((joint, i) => {
      const start = frame * q.shape[1] + joint.q[0];
      const numbers = q.data.subarray(start, start + joint.q[1]);
      this.jointTexts[i].textContent = coordinates(joint, numbers);
    });
  }
}

function row(name, text, title = name) {
  return [element("dt", { title }, name), element("dd", {}, text)];
}

// Describes a joint: its name, type and range.
function describe({ name, type, range, unit }) {
  return range ? `${name}: ${type}, ${range.map(shorten).join(" to ")} ${unit}` : `${name}: ${type}`;
}

// Ball and free joints have several coordinates without a common unit.
function coordinates({ unit }, numbers) {
  if (numbers.length > 1) return [...numbers].map((x) => x.toFixed(2)).join(" ");
  const degrees = unit === "rad" ? ` (${((numbers[0] * 180) / Math.PI).toFixed(0)}°)` : "";
  return `${numbers[0].toFixed(3)} ${unit}${degrees}`;
}

function shorten(x) {
  return String(Number(x.toPrecision(4)));
}
