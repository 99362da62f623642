// The controls and readouts of the page.

import { element, option } from "./dom.js";
import { Inspector } from "./inspector.js";
import { Keys } from "./keys.js";
import { Plot } from "./plot.js";

const OTHER = { light: "dark", dark: "light" };
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];
const CLICK_TOLERANCE = 4; // pixels by which the pointer can move in a click
const MARKS = [
  ["Contacts", "contacts", "Contact points and their normals"],
  ["Forces", "forces", "Contact forces"],
  ["Joints", "joints", "Anchors and axes of the joints"],
  ["Axes", "axes", "Frames of the links: x red, y green, z blue"],
  ["Mass", "masses", "Centres of mass of the links and of the whole model"],
];

export class Controls {
  constructor(root, model, player, stage) {
    Object.assign(this, { root, model, player, stage });
    this.series = model.series.map((name) => [name, model.arrays[`series/${name}`]]);
    const bar = this.bar();
    const left = element("div", { class: "bx-left" }, this.readout(), ...this.plotPanel());
    this.inspector = new Inspector(model, stage);
    const right = element("div", { class: "bx-right" }, this.panel(), this.inspector.card);
    this.keys = new Keys(this);
    root.append(left, right, bar, this.label(), this.keys.card);
    const fit = () => stage.resize(root.clientWidth, root.clientHeight, bar.offsetHeight + 12);
    new ResizeObserver(fit).observe(root);
    fit();
    this.listen(stage.renderer.domElement);
    this.setFollow(this.model.live || this.travels() ? 0 : -1);
    this.setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  }

  // Returns whether the first link moves far from its start, so that the camera should follow it.
  travels() {
    const { shape, data } = this.model.arrays.pos;
    const stride = 3 * shape[1];
    let far = 0;
    for (let i = 0; i < data.length; i += stride)
      far = Math.max(far, Math.hypot(data[i] - data[0], data[i + 1] - data[1], data[i + 2] - data[2]));
    return far > 0.75 * this.stage.camera.radius;
  }

  readout() {
    this.numbers = this.series.filter(([, { shape }]) => shape.length === 1);
    const names = ["time", "frame", ...this.numbers.map(([name]) => name)];
    const rows = names.map((name) => [element("dt", {}, name), element("dd")]);
    // A series may have the name "time" or "frame" too, so values are found by their place, not by name.
    [this.timeText, this.frameText, ...this.numberTexts] = rows.map(([, value]) => value);
    return element(
      "section",
      { class: "bx-card bx-readout", "aria-label": "Readout" },
      element("h1", {}, this.model.title),
      element("dl", {}, ...rows.flat()),
    );
  }

  // The panel with every series as curves.
  plotPanel() {
    this.plots = this.series.map(([name, values]) => this.plotOf(name, values));
    if (!this.plots.length) return [];
    const rows = this.plots.map((plot) => {
      plot.text = element("output");
      return element("figure", {}, element("figcaption", {}, plot.name, plot.text), plot.canvas);
    });
    const open = this.root.clientWidth > 760 && this.root.clientHeight > 380;
    this.plotDetails = element(
      "details",
      { class: "bx-card bx-plots", ontoggle: () => this.update(), ...(open ? { open: "" } : {}) },
      element("summary", {}, `Plots (${rows.length})`),
      ...rows,
    );
    return [this.plotDetails];
  }

  plotOf(name, values) {
    return new Plot(name, values, this.player, (frame) => this.seek(frame));
  }

  panel() {
    const links = this.model.links.map((name, i) =>
      element("li", {}, element("button", this.linkActions(i), name)),
    );
    this.linkList = element("ul", {}, ...links);
    const open = this.root.clientWidth > 760 && this.root.clientHeight > 380;
    return element(
      "details",
      { class: "bx-card bx-links", ...(open ? { open: "" } : {}) },
      element("summary", {}, `Links (${links.length})`),
      this.linkList,
    );
  }

  linkActions(i) {
    return {
      onclick: () => {
        this.setFollow(this.followed === i ? -1 : i);
        this.inspect(this.inspector.link === i ? -1 : i);
      },
      onpointerenter: () => this.stage.highlight(i),
      onpointerleave: () => this.stage.highlight(this.inspector.link),
    };
  }

  bar() {
    this.playButton = element("button", { class: "bx-play", onclick: () => this.toggle() });
    this.scrub = element("input", {
      type: "range",
      class: "bx-scrub",
      min: 0,
      max: this.player.frames - 1,
      step: 1,
      value: 0,
      "aria-label": "Frame",
      oninput: () => this.seek(Number(this.scrub.value)),
    });
    this.clock = element("output", { class: "bx-clock" });
    const track = element("div", { class: "bx-track" }, this.scrub);
    if (this.series.length) track.prepend((this.plot = this.plotOf(...this.series[0])).canvas);
    return element(
      "section",
      { class: "bx-card bx-bar", "aria-label": "Playback" },
      element("div", { class: "bx-row" }, this.playButton, track, this.clock),
      element("div", { class: "bx-row bx-settings" }, ...this.settings()),
    );
  }

  settings() {
    this.speed = element(
      "select",
      { onchange: () => (this.player.speed = Number(this.speed.value)) },
      ...SPEEDS.map((speed) => option(speed, `${speed}×`)),
    );
    this.speed.value = "1";
    this.followSelect = element(
      "select",
      { class: "bx-follow", onchange: () => this.setFollow(Number(this.followSelect.value)) },
      option(-1, "nothing"),
      ...this.model.links.map((name, i) => option(i, name)),
    );
    return [
      element("label", {}, "Speed ", this.speed),
      element("label", {}, "Follow ", this.followSelect),
      ...this.marks(),
      element("button", { onclick: () => this.home() }, "Reset view"),
      element("button", { onclick: () => this.switchTheme() }, "Light / dark"),
      element("button", { title: "Keys (?)", onclick: () => this.help() }, "?"),
      element("span", { class: "bx-help" }, "Drag: rotate · right-drag: pan · scroll: zoom · click: inspect"),
    ];
  }

  // A checkbox for each available overlay.
  marks() {
    this.switches = {};
    const there = MARKS.filter(([, name]) => name in this.stage.overlays);
    return there.map(([text, name, title]) => {
      const box = element("input", {
        type: "checkbox",
        onchange: () => this.stage.mark(name, box.checked),
      });
      this.switches[name] = box;
      return element("label", { title }, box, ` ${text}`);
    });
  }

  label() {
    this.hint = element("div", { class: "bx-card bx-hint", hidden: "" });
    return this.hint;
  }

  listen(canvas) {
    canvas.addEventListener("pointermove", (event) => this.point(event));
    canvas.addEventListener("pointerleave", () => (this.hint.hidden = true));
    this.root.tabIndex = 0;
    this.root.setAttribute("role", "region");
    this.root.setAttribute("aria-label", `Viewer: ${this.model.title}`);
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `The scene of ${this.model.title}`);
    this.root.addEventListener("keydown", (event) => this.key(event));
    // A page of its own takes keys before anything has the focus. In another page they may be for that one.
    if (window === window.top) {
      document.body.addEventListener("keydown", (event) => event.target === document.body && this.key(event));
    }
    let from = [0, 0];
    canvas.addEventListener("pointerdown", (event) => (from = [event.offsetX, event.offsetY]));
    canvas.addEventListener("click", ({ offsetX: x, offsetY: y }) => {
      if (Math.hypot(x - from[0], y - from[1]) > CLICK_TOLERANCE) return; // a drag, which orbits the camera
      this.inspect(this.stage.pick(x, y)?.link ?? -1);
    });
  }

  key(event) {
    // A focused control, such as the slider, handles its own keys.
    if (![this.root, document.body].includes(event.target) && event.target.tagName !== "CANVAS") return;
    if (this.keys.press(event)) event.preventDefault();
  }

  point({ offsetX, offsetY, buttons }) {
    const geom = buttons ? undefined : this.stage.pick(offsetX, offsetY);
    this.hint.hidden = !geom;
    if (!geom) return;
    this.hint.textContent = [this.model.links[geom.link] ?? "world", geom.name].filter(Boolean).join(" › ");
    // The label stays within the page, to the right of the pointer.
    this.hint.style.left = `${Math.min(offsetX + 14, this.root.clientWidth - 160)}px`;
    this.hint.style.top = `${offsetY + 14}px`;
  }

  toggle() {
    this.player.playing = !this.player.playing;
    this.update();
  }

  seek(frame) {
    this.player.playing = false;
    this.player.seek(frame);
    this.update();
  }

  home() {
    const { stage } = this;
    stage.camera.home(stage.links[this.followed]?.position);
    stage.dirty = true;
  }

  setFollow(link) {
    this.followed = link;
    this.followSelect.value = String(link);
    this.stage.follow(link);
    [...this.linkList.children].forEach((item, i) =>
      item.firstChild.setAttribute("aria-pressed", String(i === link)),
    );
  }

  followNext() {
    const next = this.followed + 1;
    this.setFollow(next < this.model.links.length ? next : -1);
  }

  // The current frame's row in the arrays.
  get row() {
    return Math.min(this.player.frame - this.model.first, this.model.frames - 1);
  }

  // Opens the inspector for a link; -1 closes it.
  inspect(link) {
    this.inspector.show(link, this.row);
  }

  changeSpeed(by) {
    const next = SPEEDS.indexOf(this.player.speed) + by;
    this.player.speed = SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, next))];
    this.update();
  }

  help() {
    this.keys.card.hidden = !this.keys.card.hidden;
  }

  close() {
    this.keys.card.hidden = true;
    this.inspect(-1);
  }

  switchTheme() {
    this.setTheme(OTHER[this.theme]);
  }

  setTheme(theme) {
    this.theme = this.root.dataset.theme = theme;
    this.stage.theme(theme);
  }

  // Updates everything that shows numbers or curves to the current frame.
  update() {
    const { frames, time, end, playing, speed } = this.player;
    const { first } = this.model;
    const frame = this.row;
    this.scrub.min = String(first);
    this.scrub.max = String(frames - 1);
    this.speed.value = String(speed);
    this.playButton.textContent = playing ? "❚❚" : "▶";
    this.playButton.setAttribute("aria-label", playing ? "Pause" : "Play");
    this.scrub.value = String(this.player.frame);
    this.clock.textContent = `${time.toFixed(2)} / ${end.toFixed(2)} s`;
    this.timeText.textContent = `${time.toFixed(2)} s`;
    this.frameText.textContent = `${first + frame + 1} of ${first + this.model.frames}`;
    this.numbers.forEach(([, values], i) => {
      this.numberTexts[i].textContent = values.data[frame].toFixed(3);
    });
    this.plot?.draw();
    this.inspector.update(frame);
    if (!this.plotDetails?.open) return;
    for (const plot of this.plots) {
      plot.text.textContent = plot.value(frame);
      plot.draw();
    }
  }
}
