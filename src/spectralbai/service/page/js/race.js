// The race: the account against each rival, over the results. A rival is out, or beaten, when it reaches the line.

import { el, label, svg } from "./dom.js";
import { count, plain, things, ticks } from "./format.js";
import { announce } from "./notices.js";
import { tooltip } from "./tooltip.js";

const HEIGHT = 362;
const MARGIN = { top: 26, right: 14, bottom: 38, left: 46 };
const COLOURS = 6; // lines that have a colour each, in css/charts.css
const MOST_NAMED = 6;
const LABEL_WIDTH = 140;

export function racePart() {
  const frame = el("div", { class: "frame race", tabindex: "0", role: "img", "aria-label": "The race" });
  const caption = el("p", { class: "muted caption" });
  const element = el(
    "section",
    { class: "card", "aria-labelledby": "race-title" },
    el("h2", { id: "race-title" }, "The race"),
    frame,
    caption,
  );
  const tip = tooltip(frame);
  const observer = new ResizeObserver(() => draw());
  observer.observe(frame);
  let history = null;
  let status = null;
  let drawnAt = "";
  let picture = null;
  let lines = [];
  let chosen = null; // { line, at }: what the pointer or the keys have chosen
  let scales = null;

  function update(newHistory, newStatus) {
    [history, status] = [newHistory, newStatus];
    lines = linesOf(history, status);
    chosen = null;
    tip.hide();
    draw(true);
  }

  function draw(anew = false) {
    const width = Math.round(frame.clientWidth);
    if (history === null || !width || (!anew && drawnAt === `${width}`)) return;
    drawnAt = `${width}`;
    const made = lines.length ? paint(width) : nothing();
    if (picture) picture.replaceWith(made);
    else frame.prepend(made);
    picture = made;
    const end = status.tolerance > 0 ? "beaten" : "out";
    const account = history.kind === "categories" ? "the least account against its options" : "the account against it";
    const needed = plain(Math.exp(history.needed));
    const sentence = `${kind(history)} is ${end} when ${account} reaches the line at ${needed}.`;
    caption.textContent = lines.length ? sentence : "";
    frame.setAttribute("aria-label", `The race. ${status.evidence}. The table of options has the numbers.`);
  }

  function nothing() {
    const words =
      status.results === 0
        ? "The race begins with the first results."
        : history.samples.length === 0
          ? "The race begins once the first trials are complete."
          : "The rule of this study keeps no accounts of single rivals.";
    return el("p", { class: "empty" }, words);
  }

  function paint(width) {
    const named = lines.filter(races).slice(0, MOST_NAMED);
    const longest = Math.max(0, ...named.map((line) => line.name.length));
    const room = width > 520 && named.length ? Math.min(LABEL_WIDTH, 40 + 8 * longest) : 0;
    const [left, right] = [MARGIN.left, width - MARGIN.right - room];
    const most = Math.max(...history.samples, 1);
    const lowest = Math.min(0, ...lines.flatMap((line) => line.points.map(([, value]) => value)));
    const bottom = Math.max(lowest, -0.6 * history.needed);
    const [low, high] = [bottom, history.needed];
    scales = {
      x: (samples) => left + (samples / most) * (right - left),
      y: (value) =>
        HEIGHT -
        MARGIN.bottom -
        ((Math.max(low, Math.min(high, value)) - low) / (high - low)) * (HEIGHT - MARGIN.top - MARGIN.bottom),
    };
    const { x, y } = scales;
    const made = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, "aria-hidden": "true" });
    for (const value of accountTicks(low, history.needed)) {
      made.append(
        svg("line", { x1: left, x2: right, y1: y(Math.log(value)), y2: y(Math.log(value)), class: "grid" }),
        svg("text", { x: left - 8, y: y(Math.log(value)) + 4, class: "tick end" }, plain(value)),
      );
    }
    for (const value of ticks(0, most, width > 500 ? 6 : 4)) {
      made.append(svg("text", { x: x(value), y: HEIGHT - MARGIN.bottom + 18, class: "tick middle" }, count(value)));
    }
    made.append(
      svg("text", { x: right, y: HEIGHT - 4, class: "tick end" }, "results"),
      svg("text", { x: 2, y: 12, class: "tick" }, "account"),
      svg("line", { x1: left, x2: right, y1: y(high), y2: y(high), class: "goal" }),
      svg("text", { x: right, y: y(high) - 6, class: "tick end goal-word" }, status.tolerance > 0 ? "beaten" : "out"),
    );
    for (const line of [...lines].reverse()) {
      const d = line.points
        .map(([at, value], place) => `${place ? "L" : "M"}${x(history.samples[at]).toFixed(1)} ${y(value).toFixed(1)}`)
        .join("");
      line.path = svg("path", { d, class: `line ${line.look}` });
      if (line.out !== null) line.path.style.opacity = String(faded(line.out, most));
      made.append(line.path);
      const [at, value] = line.points.at(-1);
      if (races(line))
        made.append(svg("circle", { cx: x(history.samples[at]), cy: y(value), r: 3, class: `end ${line.look}` }));
    }
    if (room) made.append(...names(named, right, room, y));
    made.append(svg("circle", { r: 5, class: "pointer", visibility: "hidden" }));
    return made;
  }

  /** Names at the ends of lines, moved apart where they would touch. */
  function names(named, right, room, y) {
    const wanted = named.map((line) => ({ line, y: y(line.points.at(-1)[1]) })).sort((a, b) => a.y - b.y);
    wanted.forEach((each, place) => {
      if (place) each.y = Math.max(each.y, wanted[place - 1].y + 17);
    });
    const over = (wanted.at(-1)?.y ?? 0) - (HEIGHT - MARGIN.bottom);
    return wanted.map(({ line, y: at }) => {
      const place = over > 0 ? at - over : at;
      const text = el("div", { class: `end-name ${line.look}` }, label(line.name));
      return svg("foreignObject", { x: right + 8, y: place - 9, width: room - 8, height: 18 }, text);
    });
  }

  function show(line, at) {
    if (chosen && chosen.line !== line) chosen.line.path?.classList.remove("chosen");
    chosen = { line, at };
    line.path.classList.add("chosen");
    const [, value] = line.points.find(([place]) => place === at) ?? line.points.at(-1);
    const [x, y] = [scales.x(history.samples[at]), scales.y(value)];
    const pointer = picture.querySelector(".pointer");
    pointer.setAttribute("cx", x);
    pointer.setAttribute("cy", y);
    pointer.setAttribute("visibility", "visible");
    const held = Math.exp(value);
    const words =
      value >= history.needed - 1e-9
        ? "reached the line"
        : `holds ${plain(held)} of ${plain(Math.exp(history.needed))}`;
    tip.show(x, y, [
      el("strong", {}, label(line.name)),
      el("span", {}, `${words} after ${things(history.samples[at], "result")}`),
    ]);
  }

  function hide() {
    chosen?.line.path?.classList.remove("chosen");
    chosen = null;
    picture?.querySelector?.(".pointer")?.setAttribute("visibility", "hidden");
    tip.hide();
  }

  frame.addEventListener("pointermove", (event) => {
    if (!lines.length || !scales) return;
    const box = frame.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    let best = null;
    for (const line of lines) {
      for (const [at, value] of line.points) {
        const far = Math.hypot(scales.x(history.samples[at]) - px, scales.y(value) - py);
        if (best === null || far < best.far) best = { far, line, at };
      }
    }
    if (best && best.far < 60) show(best.line, best.at);
    else hide();
  });
  frame.addEventListener("pointerleave", hide);
  frame.addEventListener("blur", hide);
  frame.addEventListener("keydown", (event) => {
    if (!lines.length || !scales) return;
    if (event.key === "Escape") return hide();
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    const place = chosen ? Math.max(0, Math.min(lines.length - 1, lines.indexOf(chosen.line) + step[0])) : 0;
    const line = lines[place];
    const points = line.points.map(([at]) => at);
    const now = chosen ? points.findIndex((at) => at >= chosen.at) : points.length - 1;
    const at = Math.max(0, Math.min(points.length - 1, (now < 0 ? points.length - 1 : now) + step[1]));
    show(line, points[at]);
    announce(tip.text());
  });

  return { element, update, close: () => observer.disconnect() };
}

const kind = (history) => (history.kind === "categories" ? "A category" : "An option");

/** A line for each rival: [check, log of the account], those that lack most first. */
function linesOf(history, status) {
  const lines = [];
  history.names.forEach((name, place) => {
    if (history.kind === "arms" && name === (status.best ?? history.best.at(-1))) return;
    const points = [];
    let out = null;
    history.lacking.forEach((row, at) => {
      if (out !== null) return;
      if (points.length && history.left[at][place] === 0) {
        out = history.samples[at];
        points.push([at, history.needed]);
      } else if (row[place] !== null && !(history.kind === "arms" && history.best[at] === name)) {
        points.push([at, history.needed - row[place]]);
      }
    });
    const withdrawn = history.kind === "arms" && status.candidates !== null && !status.candidates.includes(name);
    if (points.length) lines.push({ name, points, out, withdrawn, look: "grey" });
  });
  lines.sort((a, b) =>
    (a.out ?? Infinity) === (b.out ?? Infinity)
      ? a.points.at(-1)[1] - b.points.at(-1)[1]
      : (b.out ?? Infinity) - (a.out ?? Infinity),
  );
  lines
    .filter(races)
    .slice(0, COLOURS)
    .forEach((line, place) => {
      line.look = `colour-${place}`;
    });
  return lines;
}

/** Whether a rival is neither out nor withdrawn. */
const races = (line) => line.out === null && !line.withdrawn;

/** Those that are out for longer are fainter. */
const faded = (out, most) => 0.25 + 0.5 * (out / most);

function accountTicks(low, needed) {
  const found = [];
  const most = Math.exp(needed);
  for (let power = -12; power <= 12; power += 1) {
    for (const lead of most > 500 ? [1] : [1, 2, 5]) {
      const value = lead * 10 ** power;
      if (Math.log(value) >= low - 1e-9 && value < most * 0.8) found.push(value);
    }
  }
  return [...found, most];
}
