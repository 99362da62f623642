// The viewer page: plays the data that Python wrote into it. Only a live page makes requests, for
// its frames.

import { Controls } from "./controls.js";
import { read } from "./data.js";
import { Live } from "./live.js";
import { Player } from "./player.js";
import { Stage } from "./stage.js";
import css from "./style.css";

const TEXT_INTERVAL = 100; // milliseconds between two updates of numbers and curves while playing

// Starts a viewer in `root`; a notebook can have several.
async function start(root) {
  root.dataset.state = "loading";
  root.style.setProperty("--height", root.dataset.height ? `${root.dataset.height}px` : "100vh");
  try {
    if (!document.createElement("canvas").getContext("webgl2"))
      throw new Error("this browser has no WebGL 2. Turn on hardware acceleration, or try another.");
    const scene = await read(root);
    const stage = new Stage(root, scene);
    const player = playerOf(root, scene);
    const controls = new Controls(root, scene, player, stage);
    if (scene.live) root.live = new Live(scene, player);
    run(root, scene, stage, player, controls);
    root.dataset.state = "ready";
  } catch (error) {
    root.dataset.state = "failed";
    const note = document.createElement("p");
    note.className = "bx-failure";
    note.textContent = `This page could not be shown: ${error.message}`;
    root.append(note);
    throw error;
  }
}

// Returns the clock of a viewer. Viewers side by side share one, as long as the longest of them.
function playerOf(root, scene) {
  const group = root.closest(".bx-group");
  if (!group) return new Player(scene.frames, scene.dt);
  group.player ??= new Player(0, scene.dt);
  group.player.frames = Math.max(group.player.frames, scene.frames);
  return group.player;
}

// Draws only when something has changed, so that an idle page costs nothing.
function run(root, scene, stage, player, controls) {
  let shown = "";
  let updated = 0; // time of the last update of numbers and curves
  let stale = false; // true if they are older than the picture
  let drawn = 0;
  const tick = (now) => {
    player.advance(now);
    const state = [player.time, player.playing, player.speed, player.frames].join();
    if (state !== shown) {
      shown = state;
      stage.pose(player.time / player.dt - scene.first);
      stale = true;
    }
    if (stale && (!player.playing || now - updated > TEXT_INTERVAL)) {
      updated = now;
      stale = false;
      controls.update();
    }
    if (stage.draw(now)) root.dataset.drawn = String(++drawn);
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}

const sheet = new CSSStyleSheet();
sheet.replaceSync(css);
// A <style> element would be blocked by the page's content security policy.
document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
document.querySelectorAll(".brax-viewer:not([data-state])").forEach(start);
