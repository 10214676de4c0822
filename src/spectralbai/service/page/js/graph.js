// The graph: which options are alike, coloured by their estimates; of thousands, the categories.

import { get, pathOf } from "./api.js";
import { el, label, svg } from "./dom.js";
import { count, plain, things } from "./format.js";
import { tooltip } from "./tooltip.js";

const HEIGHT = 330;
const CLOSEST = 12;
const MOST_BUBBLES = 300;
const MANY_EDGES = 1000; // of which each is fainter, so that the colours of options are seen

export function graphPart(onChoose) {
  const frame = el(
    "div",
    { class: "frame graph", tabindex: "0", role: "img", "aria-label": "The graph" },
    el("p", { class: "empty" }, "The graph is being drawn."),
  );
  const buttons = [
    ["+", "Zoom in", 1.4],
    ["−", "Zoom out", 1 / 1.4],
    ["Fit", "Show all", 0],
  ].map(([text, words, factor]) => {
    const button = el("button", { type: "button", class: "quiet", "aria-label": words, title: words }, text);
    button.addEventListener("click", () => (factor ? zoom(factor) : fit()));
    return button;
  });
  const tools = el("div", { class: "zoom", role: "group", "aria-label": "Zoom" }, buttons);
  const low = el("span", {});
  const high = el("span", {});
  const scale = el(
    "div",
    { class: "colours", hidden: true },
    low,
    el("span", { class: "ramp", "aria-hidden": "true" }),
    high,
  );
  const caption = el("p", { class: "muted caption" });
  const element = el(
    "section",
    { class: "card", "aria-labelledby": "graph-title" },
    el("div", { class: "line-of-title" }, el("h2", { id: "graph-title" }, "The graph"), tools),
    frame,
    scale,
    caption,
  );
  const tip = tooltip(frame);
  let nodes = []; // { name, x, y, r, element, words }
  let drawing = null;
  let kind = "";
  let box = { x: 0, y: 0, w: 1, h: 1 };
  let all = box;
  let wanted = "";

  async function read(name) {
    let graph;
    try {
      graph = await get(pathOf(name, "/graph"));
    } catch (error) {
      if (error.status !== 422) throw error;
      say(error.message);
      return;
    }
    if (graph.nodes.length && !graph.edges.length && !graph.categories.length)
      say("Nothing was said of which options are alike.");
    else if (graph.nodes.length) arms(graph);
    else if (graph.categories.length > MOST_BUBBLES)
      say(`${count(graph.categories.length)} categories are too many to draw; the table of options shows them.`);
    else categories(graph.categories);
  }

  function say(text) {
    [kind, nodes, drawing] = ["none", [], null];
    frame.replaceChildren(el("p", { class: "empty" }, text));
    frame.removeAttribute("tabindex");
    tools.hidden = true;
  }

  function arms(graph) {
    kind = "arms";
    nodes = graph.nodes.map((each) => ({ name: each.label, x: each.x, y: -each.y, category: each.category }));
    const size = (of) => Math.max(...nodes.map(of)) - Math.min(...nodes.map(of));
    if (!graph.categories.length && size((each) => each.y) > size((each) => each.x)) lay(nodes);
    const r = radius(nodes);
    for (const node of nodes) node.r = r;
    paint();
    highlight(wanted);
    const d = graph.edges.map(([a, b]) => `M${nodes[a].x} ${nodes[a].y}L${nodes[b].x} ${nodes[b].y}`).join("");
    drawing.prepend(svg("path", { d, class: graph.edges.length > MANY_EDGES ? "edges many" : "edges" }));
    for (const [name, inside] of grouped(nodes)) if (name !== undefined) drawing.prepend(...hull(name, inside));
    fit();
    const alike = graph.categories.length
      ? `${things(graph.categories.length, "category", "categories")}; options of one are alike.`
      : `${things(graph.edges.length, "edge")} between options that are alike.`;
    caption.textContent = `${alike} Choose an option to find it in the table.`;
  }

  function hull(name, inside) {
    const [x, y] = [mean(inside.map((each) => each.x)), mean(inside.map((each) => each.y))];
    const r = Math.max(...inside.map((each) => Math.hypot(each.x - x, each.y - y))) + 0.5;
    const size = Math.max(0.35, 0.22 * r);
    include(x - r, y - r - 0.2 - size, x + r, y + r);
    return [
      svg("circle", { cx: x, cy: y, r, class: "hull" }),
      svg(
        "text",
        { x, y: y - r - 0.15, "font-size": size, class: "hull-name" },
        name.length > 18 ? `${name.slice(0, 17)}…` : name,
      ),
    ];
  }

  function categories(found) {
    kind = "categories";
    const most = Math.max(...found.map((each) => each.arms));
    const placed = packed(found.map((each) => 0.5 + 1.5 * Math.sqrt(each.arms / most)));
    nodes = found.map((each, place) => ({ name: each.name, arms: each.arms, ...placed[place] }));
    paint();
    if (nodes.length <= 80) {
      for (const node of nodes) {
        const size = Math.min(0.42 * node.r, (1.7 * node.r) / Math.max(4, 0.55 * Math.min(node.name.length, 14)));
        node.word = svg(
          "text",
          { x: node.x, y: node.y + 0.35 * size, "font-size": size, class: "bubble-name" },
          node.name.length > 14 ? `${node.name.slice(0, 13)}…` : node.name,
        );
        drawing.append(node.word);
      }
    }
    caption.textContent = "A disc for each category, as large as it has options, coloured by its best option.";
  }

  /** Makes room for what is drawn there. */
  function include(left, top, right, bottom) {
    const [x, y] = [Math.min(all.x, left), Math.min(all.y, top)];
    all = { x, y, w: Math.max(all.x + all.w, right) - x, h: Math.max(all.y + all.h, bottom) - y };
  }

  function paint() {
    drawing = svg("svg", { height: HEIGHT, "aria-hidden": "true", preserveAspectRatio: "xMidYMid meet" });
    for (const node of nodes) {
      node.element = svg("circle", { cx: node.x, cy: node.y, r: node.r, class: "node unknown" });
      node.element.node = node;
      drawing.append(node.element);
    }
    frame.querySelectorAll("svg, p.empty").forEach((each) => each.remove());
    frame.prepend(drawing);
    frame.setAttribute("tabindex", "0");
    tools.hidden = false;
    const xs = nodes.flatMap((each) => [each.x - each.r, each.x + each.r]);
    const ys = nodes.flatMap((each) => [each.y - each.r, each.y + each.r]);
    const edge = kind === "arms" ? 0.9 : 0.3;
    all = { x: Math.min(...xs) - edge, y: Math.min(...ys) - edge };
    all.w = Math.max(3, Math.max(...xs) + edge - all.x);
    all.h = Math.max(3, Math.max(...ys) + edge - all.y);
    fit();
  }

  function update(status, known) {
    if (!drawing) return;
    const found =
      kind === "arms"
        ? new Map(known.map((each) => [each.label, each]))
        : new Map((status.categories ?? []).map((each) => [each.name, each]));
    const estimates = [...found.values()].map((each) => each.estimate).filter((each) => each !== null);
    const [least, most] = [Math.min(...estimates), Math.max(...estimates)];
    const candidates = status.candidates === null ? null : new Set(status.candidates);
    scale.hidden = estimates.length === 0;
    low.textContent = shown(least, status);
    high.textContent = shown(most, status);
    for (const node of nodes) {
      const each = found.get(node.name);
      const estimate = each?.estimate ?? null;
      const part = estimate === null ? 0 : most > least ? (estimate - least) / (most - least) : 1;
      node.element.style.setProperty("--part", `${(100 * part).toFixed(1)}%`);
      node.element.classList.toggle("unknown", estimate === null);
      const out =
        kind === "arms"
          ? each?.withdrawn || (candidates !== null && !candidates.has(node.name))
          : each?.candidates === 0;
      node.element.classList.toggle("out", Boolean(out));
      node.element.classList.toggle(
        "best",
        status.best !== null && (kind === "arms" ? node.name === status.best : each?.best === status.best),
      );
      node.word?.classList.toggle("on-dark", part > 0.55 && !out && estimate !== null);
      const words =
        estimate === null
          ? "no estimate yet"
          : `${kind === "arms" ? "estimate" : "best option"} ${shown(estimate, status)}`;
      node.words =
        kind === "arms"
          ? [words, each?.account ?? ""]
          : [`${things(node.arms, "option")}, ${each?.candidates ?? "-"} may be best`, words];
    }
    frame.setAttribute(
      "aria-label",
      `The graph of ${things(nodes.length, kind === "arms" ? "option" : "disc")}, coloured by estimate. ` +
        "The table of options has the numbers.",
    );
  }

  /** Shows which nodes have this text in their names. */
  function highlight(text) {
    wanted = text.toLowerCase();
    frame.classList.toggle("searching", wanted !== "");
    for (const node of nodes)
      node.element.classList.toggle("found", wanted !== "" && node.name.toLowerCase().includes(wanted));
  }

  function fit() {
    box = { ...all };
    show();
  }

  function show() {
    drawing?.setAttribute("viewBox", `${box.x} ${box.y} ${box.w} ${box.h}`);
    frame.classList.toggle("near", box.w < all.w * 0.99);
  }

  function zoom(factor, cx = box.x + box.w / 2, cy = box.y + box.h / 2) {
    const now = all.w / box.w;
    const next = Math.max(1, Math.min(CLOSEST, now * factor));
    const by = now / next;
    box = { x: cx - (cx - box.x) * by, y: cy - (cy - box.y) * by, w: box.w * by, h: box.h * by };
    if (next === 1) box = { ...all };
    show();
  }

  function pan(dx, dy) {
    box.x = Math.max(all.x - box.w / 2, Math.min(all.x + all.w - box.w / 2, box.x + dx));
    box.y = Math.max(all.y - box.h / 2, Math.min(all.y + all.h - box.h / 2, box.y + dy));
    show();
  }

  /** Units of the drawing for each pixel, and the place of an event in it. */
  function at(event) {
    const matrix = drawing.getScreenCTM();
    return { x: (event.clientX - matrix.e) / matrix.a, y: (event.clientY - matrix.f) / matrix.d, unit: 1 / matrix.a };
  }

  let held = null;
  frame.addEventListener("pointerdown", (event) => {
    if (!drawing || event.button !== 0) return;
    held = { x: event.clientX, y: event.clientY, moved: false, node: event.target.node };
  });
  frame.addEventListener("pointermove", (event) => {
    if (!drawing) return;
    if (held && box.w < all.w * 0.99) {
      const [dx, dy] = [event.clientX - held.x, event.clientY - held.y];
      if (held.moved || Math.hypot(dx, dy) > 4) {
        if (!held.moved) frame.setPointerCapture(event.pointerId);
        const { unit } = at(event);
        Object.assign(held, { x: event.clientX, y: event.clientY, moved: true });
        pan(-dx * unit, -dy * unit);
        tip.hide();
        return;
      }
    }
    const node = event.target.node;
    if (!node) return tip.hide();
    const place = frame.getBoundingClientRect();
    tip.show(event.clientX - place.left, event.clientY - place.top, [
      el("strong", {}, label(node.name)),
      ...(node.words ?? []).filter((each) => each && each !== "-").map((each) => el("span", {}, each)),
    ]);
  });
  frame.addEventListener("pointerup", () => {
    if (held && !held.moved && held.node && kind === "arms") onChoose(held.node.name);
    held = null;
  });
  frame.addEventListener("pointercancel", () => {
    held = null;
  });
  frame.addEventListener("pointerleave", () => tip.hide());
  frame.addEventListener(
    "wheel",
    (event) => {
      if (!drawing || !(event.ctrlKey || event.metaKey || frame === document.activeElement)) return;
      event.preventDefault();
      const { x, y } = at(event);
      zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, x, y);
    },
    { passive: false },
  );
  frame.addEventListener("keydown", (event) => {
    if (!drawing) return;
    const step = box.w / 10;
    const move = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[event.key];
    if (move) pan(...move);
    else if (event.key === "+" || event.key === "=") zoom(1.4);
    else if (event.key === "-") zoom(1 / 1.4);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
  });

  return { element, read, update, highlight, hasArms: () => kind === "arms" };
}

const mean = (numbers) => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
const shown = (value, status) => (status.rates ? `${plain(100 * value)} %` : plain(value));

/** Turns a drawing that is higher than wide: frames are wide. */
function lay(nodes) {
  for (const node of nodes) [node.x, node.y] = [node.y, node.x];
}

/** How large nodes can be without hiding each other. */
function radius(nodes) {
  const byX = [...nodes].sort((a, b) => a.x - b.x);
  const nearest = byX.map((node, place) => {
    let least = Infinity;
    for (const step of [-1, 1])
      for (let at = place + step; byX[at] && Math.abs(byX[at].x - node.x) < least; at += step)
        least = Math.min(least, Math.hypot(byX[at].x - node.x, byX[at].y - node.y));
    return least;
  });
  nearest.sort((a, b) => a - b);
  const least = 0.006 * Math.max(byX.at(-1).x - byX[0].x, 1); // large enough to be seen in any case
  return Math.max(least, Math.min(0.22, 0.42 * (nearest[Math.floor(nearest.length / 4)] ?? 1)));
}

function grouped(nodes) {
  const found = new Map();
  for (const node of nodes) found.set(node.category, [...(found.get(node.category) ?? []), node]);
  return found;
}

/** Places for discs of these radii, without overlap, in rows of about the shape of the frame. */
function packed(radii) {
  const order = radii.map((r, place) => place).sort((a, b) => radii[b] - radii[a]);
  const limit = 1.5 * Math.sqrt(radii.reduce((sum, r) => sum + (2 * r + 0.2) ** 2, 0));
  const places = [];
  let [x, y, row] = [0, 0, 0];
  for (const place of order) {
    const r = radii[place];
    if (x > 0 && x + 2 * r > limit) [x, y, row] = [0, y + row + 0.2, 0];
    row = Math.max(row, 2 * r);
    places[place] = { x: x + r, y: y + r, r };
    x += 2 * r + 0.2;
  }
  return places;
}
