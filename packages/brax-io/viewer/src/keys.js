// Keyboard shortcuts, and the card that lists them.

import { element } from "./dom.js";

const LAST = 1e9; // larger than any frame; `seek` clamps it
const TURN = Math.PI / 24; // rotation of the camera by one press [rad]
const ZOOM = 1.1; // change of its distance by one press, as a factor

// The actions on the clock. Each entry: the keys by the browser's names, a description, and the action.
function clockActions(controls) {
  const by = (steps) => () => controls.seek(controls.player.frame + steps);
  return [
    [[" "], "play or pause", () => controls.toggle()],
    [["ArrowLeft"], "one frame back", by(-1)],
    [["ArrowRight"], "one frame forward", by(1)],
    [["PageUp"], "ten frames back", by(-10)],
    [["PageDown"], "ten frames forward", by(10)],
    [["Home"], "first frame", () => controls.seek(0)],
    [["End"], "last frame", () => controls.seek(LAST)],
    [["-"], "slower", () => controls.changeSpeed(-1)],
    [["+", "="], "faster", () => controls.changeSpeed(1)],
  ];
}

// The other actions, in the same form.
function viewActions(controls) {
  const { stage } = controls;
  const turn = (left, up) => () => stage.camera.turn(left * TURN, up * TURN);
  const marks = (name) => () => controls.switches[name]?.click();
  return [
    [["c"], "contacts", marks("contacts")],
    [["o"], "contact forces", marks("forces")],
    [["j"], "joints", marks("joints")],
    [["x"], "frames of links", marks("axes")],
    [["m"], "centres of mass", marks("masses")],
    [["f"], "follow the next link", () => controls.followNext()],
    [["a"], "camera to the left", turn(1, 0)],
    [["d"], "camera to the right", turn(-1, 0)],
    [["w"], "camera up", turn(0, 1)],
    [["s"], "camera down", turn(0, -1)],
    [["z"], "camera nearer", () => stage.camera.approach(ZOOM)],
    [["y"], "camera farther", () => stage.camera.approach(1 / ZOOM)],
    [["r"], "reset the view", () => controls.home()],
    [["t"], "light or dark", () => controls.switchTheme()],
    [["Escape"], "close cards", () => controls.close()],
    [["?"], "list of keys", () => controls.help()],
  ].filter(([keys]) => keys[0] !== "o" || stage.overlays.forces);
}

const SHOWN = { " ": "Space", ArrowLeft: "←", ArrowRight: "→", "-": "−" };

export class Keys {
  constructor(controls) {
    this.clock = clockActions(controls);
    this.actions = [...this.clock, ...viewActions(controls)];
    const rows = this.actions.flatMap(([[key], words]) => [
      element("dt", {}, element("kbd", {}, SHOWN[key] ?? key)),
      element("dd", {}, words),
    ]);
    this.card = element(
      "section",
      { class: "bx-card bx-keys", "aria-label": "Keys", hidden: "" },
      element("dl", {}, ...rows),
    );
  }

  // Performs a key's action, and returns whether it has one.
  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false; // shortcuts of the browser
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const found = this.actions.find(([keys]) => keys.includes(key));
    // Before one of them has the focus, viewers side by side all get a key. It must act only once on their
    // common clock: the first viewer prevents the default.
    if (!(event.defaultPrevented && this.clock.includes(found))) found?.[2]();
    return Boolean(found);
  }
}
