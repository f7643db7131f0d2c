"use strict";
const {vertices, edges} = JSON.parse(document.getElementById("data").textContent);
const stage = document.getElementById("stage");
const svg = stage.querySelector("svg");
const panel = document.getElementById("facts");
const whole = svg.viewBox.baseVal;
const home = {x: whole.x, y: whole.y, w: whole.width, h: whole.height};
let view = {...home};

svg.removeAttribute("width");
svg.removeAttribute("height");

// -- moving and zooming

const show = () => svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.w} ${view.h}`);
const perPixel = () => Math.max(view.w / stage.clientWidth, view.h / stage.clientHeight);

function toDrawing(event) {
  const point = new DOMPoint(event.clientX, event.clientY);
  return point.matrixTransform(svg.getScreenCTM().inverse());
}

function zoom(factor, at) {
  const w = Math.min(Math.max(view.w / factor, home.w / 2000), home.w * 8);
  const real = view.w / w;
  at = at || {x: view.x + view.w / 2, y: view.y + view.h / 2};
  view = {x: at.x - (at.x - view.x) / real, y: at.y - (at.y - view.y) / real, w, h: view.h / real};
  show();
}

function fit() {
  view = {...home};
  show();
}

function move(dx, dy) {
  view.x += dx * perPixel();
  view.y += dy * perPixel();
  show();
}

// A drawing that is long and narrow, or the other way round, starts at its readable end.
function start() {
  const scale = 1 / perPixel();
  if (scale < 0.55) {
    const w = stage.clientWidth / 0.9, h = stage.clientHeight / 0.9;
    const first = Math.min(...[...svg.querySelectorAll(".node")].map((n) => n.getBBox().y));
    const top = [...svg.querySelectorAll(".node")].find((n) => n.getBBox().y === first);
    const box = boxOf(top);
    view = {x: box.x + box.width / 2 - w / 2, y: box.y - 20, w, h};
  }
  show();
}

function boxOf(node) {
  const box = node.getBBox();
  const toSvg = svg.getScreenCTM().inverse().multiply(node.getScreenCTM());
  const corner = new DOMPoint(box.x, box.y).matrixTransform(toSvg);
  return {x: corner.x, y: corner.y, width: box.width * toSvg.a, height: box.height * toSvg.d};
}

stage.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), toDrawing(event));
}, {passive: false});

let drag = null;
stage.addEventListener("pointerdown", (event) => {
  drag = {x: event.clientX, y: event.clientY, moved: false};
});
window.addEventListener("pointermove", (event) => {
  if (!drag) return;
  const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
  if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
  drag = {x: event.clientX, y: event.clientY, moved: true};
  stage.classList.add("moving");
  move(-dx, -dy);
});
window.addEventListener("pointerup", (event) => {
  const clicked = drag && !drag.moved;
  drag = null;
  stage.classList.remove("moving");
  if (!clicked) return;
  const node = event.target.closest ? event.target.closest(".node") : null;
  if (node) choose(node.id);
  else if (stage.contains(event.target)) forget();
});
window.addEventListener("pointercancel", () => { drag = null; });

const keys = {
  "+": () => zoom(1.3), "=": () => zoom(1.3), "-": () => zoom(1 / 1.3), "0": fit,
  ArrowLeft: () => move(-60, 0), ArrowRight: () => move(60, 0),
  ArrowUp: () => move(0, -60), ArrowDown: () => move(0, 60), Escape: forget,
};
window.addEventListener("keydown", (event) => {
  if (event.target.id === "search" && event.key !== "Escape") return;
  if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});
document.getElementById("in").onclick = () => zoom(1.3);
document.getElementById("out").onclick = () => zoom(1 / 1.3);
document.getElementById("fit").onclick = fit;
document.getElementById("close").onclick = forget;

// -- facts

const element = (id) => document.getElementById(id);
const clear = (name) => svg.querySelectorAll("." + name).forEach((e) => e.classList.remove(name));

function forget() {
  panel.hidden = true;
  svg.classList.remove("choosing");
  clear("chosen");
  clear("near");
}

function choose(id) {
  const v = vertices[id];
  if (!v) return;
  forget();
  svg.classList.add("choosing");
  element(id).classList.add("chosen");
  panel.hidden = false;
  panel.querySelector("h1").textContent = v.title;
  const alarm = document.getElementById("alarm");
  alarm.hidden = !v.alarm;
  alarm.textContent = v.alarm;
  panel.querySelector("dl").replaceChildren(...v.facts.flatMap(([name, text]) => [
    made("dt", name), made("dd", text),
  ]));
  draw(v.curve);
  const nav = panel.querySelector("nav");
  nav.replaceChildren();
  list(nav, "computed from", edges.filter((e) => e.ends[0] === id), 1);
  list(nav, "used by", edges.filter((e) => e.ends[1] === id), 0);
  panel.scrollTop = 0;
}

function made(tag, text) {
  const e = document.createElement(tag);
  e.textContent = text;
  return e;
}

function list(nav, heading, links, end) {
  if (!links.length) return;
  nav.append(made("h2", heading));
  for (const link of links) {
    const button = made("button", vertices[link.ends[end]].title);
    button.title = link.title;
    button.onclick = () => { choose(link.ends[end]); reveal(link.ends[end]); };
    nav.append(button);
    for (const id of [link.id, link.ends[end]]) element(id)?.classList.add("near");
  }
}

// Brings a vertex into sight, without changing the scale.
function reveal(id) {
  const box = boxOf(element(id));
  const x = box.x + box.width / 2, y = box.y + box.height / 2;
  const seen = x > view.x && x < view.x + view.w && y > view.y && y < view.y + view.h;
  if (seen) return;
  view.x = x - view.w / 2;
  view.y = y - view.h / 2;
  show();
}

// Norms of the repetitions, from the first to the last; gaps where they are 0.
function draw(curve) {
  const figure = panel.querySelector("figure");
  figure.hidden = !curve;
  if (!curve) return;
  const known = curve.filter((y) => y !== null);
  const low = Math.min(...known), high = Math.max(...known);
  const at = (y) => 64 - 58 * (high > low ? (y - low) / (high - low) : 0.5);
  let d = "", pen = "M";
  curve.forEach((y, i) => {
    if (y === null) { pen = "M"; return; }
    d += `${pen}${(4 + 232 * i / (curve.length - 1)).toFixed(1)} ${at(y).toFixed(1)}`;
    pen = "L";
  });
  figure.querySelector("path").setAttribute("d", d);
  figure.querySelector("figcaption").textContent = known.length
    ? `gradient norm over the repetitions, 10^${low.toFixed(1)} to 10^${high.toFixed(1)}`
      + (known.length < curve.length ? "; 0 in the gaps" : "")
    : "gradient norm 0 in all repetitions";
}

// -- search

const search = document.getElementById("search");
const texts = Object.entries(vertices).map(([id, v]) =>
  [id, [v.title, ...v.facts.flat()].join("\n").toLowerCase()]);

search.addEventListener("input", () => {
  clear("hit");
  const wanted = search.value.trim().toLowerCase();
  svg.classList.toggle("searching", wanted !== "");
  const hits = wanted ? texts.filter(([, text]) => text.includes(wanted)) : [];
  for (const [id] of hits) element(id)?.classList.add("hit");
  document.getElementById("found").textContent = wanted ? `${hits.length} found` : "";
});
search.addEventListener("keydown", (event) => {
  const first = svg.querySelector(".hit");
  if (event.key === "Enter" && first) { choose(first.id); reveal(first.id); }
});

// A dot drawing wraps its parts in links for their tooltips; none leads anywhere.
svg.querySelectorAll("a").forEach((a) => a.addEventListener("click", (e) => e.preventDefault()));
start();
