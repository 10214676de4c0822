// Options on items: the outcome of each pair as a colour, in the order in which items were begun.

import { get, pathOf } from "./api.js";
import { el, label, svg } from "./dom.js";
import { count, plain, ticks } from "./format.js";
import { announce } from "./notices.js";
import { tooltip } from "./tooltip.js";

const ROW = 22;
const FEWER = 14; // px of a row if there are many
const MANY = 12;
const BOTTOM = 24;
const LEVELS = 16; // shades, each of which is one path
const MOST_ITEMS = 300;

export function itemsPart(name) {
  const frame = el("div", { class: "frame items", tabindex: "0", role: "img", "aria-label": "Outcomes on items" });
  const low = el("span", {});
  const high = el("span", {});
  const scale = el(
    "div",
    { class: "colours", hidden: true },
    low,
    el("span", { class: "ramp", "aria-hidden": "true" }),
    high,
  );
  const said = el("p", {});
  const caption = el("p", { class: "muted caption" });
  const element = el(
    "section",
    { class: "card", "aria-labelledby": "items-title", hidden: true },
    el("h2", { id: "items-title" }, "Options on items"),
    said,
    frame,
    scale,
    caption,
  );
  const tip = tooltip(frame);
  const observer = new ResizeObserver(() => draw());
  observer.observe(frame);
  let found = null;
  let drawnAt = 0;
  let picture = null;
  let place = null; // of the columns and rows in the picture
  let chosen = null; // [row, column]

  function update(outcomes, status) {
    element.hidden = status.items === null;
    if (status.items === null) return;
    found = outcomes;
    said.textContent = status.items.described;
    hide();
    drawnAt = 0;
    draw();
  }

  function draw() {
    const width = Math.round(frame.clientWidth);
    if (found === null || !width || drawnAt === width) return;
    drawnAt = width;
    const empty = found.items.length === 0;
    const made = empty ? el("p", { class: "empty" }, "No outcome is told yet.") : paint(width);
    if (picture) picture.replaceWith(made);
    else frame.prepend(made);
    picture = made;
    scale.hidden = empty;
    low.textContent = plain(found.low);
    high.textContent = plain(found.high);
    caption.textContent = empty ? "" : words();
    frame.setAttribute("aria-label", `Outcomes on items. ${said.textContent} The table (CSV) has the numbers.`);
  }

  function words() {
    const some = found.items.length < found.begun ? `${count(found.items.length)} of ${count(found.begun)} items` : "";
    const parts = ["Items are in the order in which they were begun; pairs without a colour were not tried."];
    if (some) parts.push(`Shown are ${some}, at equal steps.`);
    return parts.join(" ");
  }

  function paint(width) {
    const { options, items, outcomes, begun } = found;
    const row = options.length > MANY ? FEWER : ROW;
    const longest = Math.max(...options.map((each) => each.length));
    const left = Math.min(width / 3, 20 + 7.5 * longest);
    const bottom = row * options.length;
    const step = (width - left - 2) / items.length;
    place = { left, row, step };
    const made = svg("svg", { viewBox: `0 0 ${width} ${bottom + BOTTOM}`, width, height: bottom + BOTTOM });
    made.setAttribute("aria-hidden", "true");
    const edge = (item) => Math.round(left + item * step); // whole pixels, so that there are no seams
    const shades = new Map();
    outcomes.forEach((line, at) =>
      line.forEach((outcome, item) => {
        if (outcome === null) return;
        const shade = Math.round(part(outcome) * (LEVELS - 1));
        const x = edge(item);
        const wide = Math.max(1, edge(item + 1) - x);
        shades.set(shade, `${shades.get(shade) ?? ""}M${x} ${at * row + 1}h${wide}v${row - 2}h-${wide}z`);
      }),
    );
    for (const [shade, d] of shades) {
      const path = svg("path", { d, class: "shade" });
      path.style.setProperty("--part", `${(100 * shade) / (LEVELS - 1)}%`);
      made.append(path);
    }
    options.forEach((each, at) => {
      const text = el("div", { class: "row-name" }, label(each));
      text.style.lineHeight = `${row}px`;
      made.append(svg("foreignObject", { x: 0, y: at * row, width: left - 8, height: row }, text));
    });
    for (const value of ticks(1, begun, width > 500 ? 8 : 4)) {
      const x = left + ((value - 0.5) / begun) * (width - left - 2);
      made.append(svg("text", { x, y: bottom + 17, class: "tick middle" }, count(value)));
    }
    made.append(svg("rect", { class: "pointer", visibility: "hidden", height: row - 2 }));
    return made;
  }

  /** Where an outcome is between the least and the largest. */
  const part = (outcome) => (found.high > found.low ? (outcome - found.low) / (found.high - found.low) : 0.5);

  function show(at, item) {
    chosen = [at, item];
    const outcome = found.outcomes[at][item];
    const pointer = picture.querySelector(".pointer");
    const x = place.left + item * place.step;
    pointer.setAttribute("x", x);
    pointer.setAttribute("y", at * place.row + 1);
    pointer.setAttribute("width", Math.max(place.step, 2));
    pointer.setAttribute("visibility", "visible");
    tip.show(x + place.step / 2, at * place.row + place.row / 2, [
      el("strong", {}, label(found.options[at])),
      el("span", {}, label(found.items[item])),
      el("span", {}, outcome === null ? "not tried" : plain(outcome)),
    ]);
  }

  function hide() {
    chosen = null;
    picture?.querySelector?.(".pointer")?.setAttribute("visibility", "hidden");
    tip.hide();
  }

  frame.addEventListener("pointermove", (event) => {
    if (!found?.items.length || !place) return;
    const box = frame.getBoundingClientRect();
    const at = Math.floor((event.clientY - box.top) / place.row);
    const item = Math.floor((event.clientX - box.left - place.left) / place.step);
    if (at in found.options && item in found.items) show(at, item);
    else hide();
  });
  frame.addEventListener("pointerleave", hide);
  frame.addEventListener("blur", hide);
  frame.addEventListener("keydown", (event) => {
    if (!found?.items.length || !place) return;
    if (event.key === "Escape") return hide();
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    const within = (value, most) => Math.max(0, Math.min(most - 1, value));
    const [at, item] = chosen ? [chosen[0] + step[0], chosen[1] + step[1]] : [0, 0];
    show(within(at, found.options.length), within(item, found.items.length));
    announce(tip.text());
  });

  return {
    element,
    read: () => get(pathOf(name, "/outcomes"), { limit: MOST_ITEMS }),
    update,
    close: () => observer.disconnect(),
  };
}
