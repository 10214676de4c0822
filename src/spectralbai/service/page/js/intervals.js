// An interval as a small picture: from where to where, the estimate, and a line that it is compared with.

import { svg } from "./dom.js";

const WIDTH = 150;
const HEIGHT = 16;

/** Draws [low, estimate, high], null where unknown, into a cell, if it has changed. `line` says where the line is, null
 * for none, and which class it has. */
export function showInterval(cell, limits, scale, line, title = null) {
  const drawing = JSON.stringify([limits, scale, line]);
  if (cell.drawing === drawing) return;
  cell.drawing = drawing;
  cell.firstChild.replaceChildren(drawn(limits, scale, line, title));
}

function drawn([low, estimate, high], scale, line, title) {
  if (estimate === null) return "";
  const place = (value) => (3 + ((value - scale.low) / (scale.high - scale.low)) * (WIDTH - 6)).toFixed(1);
  const level = (x1, x2, kind) => svg("line", { x1, x2, y1: HEIGHT / 2, y2: HEIGHT / 2, class: kind });
  const unknown = low === null && high === null;
  return svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      width: WIDTH,
      height: HEIGHT,
      "aria-hidden": "true",
      class: "bar-of-interval",
    },
    title === null ? null : svg("title", {}, title),
    level(0, WIDTH, "base"),
    line.at === null
      ? null
      : svg("line", { x1: place(line.at), x2: place(line.at), y1: 0, y2: HEIGHT, class: line.kind }),
    unknown ? null : level(place(low ?? scale.low), place(high ?? scale.high), "range"),
    svg("circle", { cx: place(estimate), cy: HEIGHT / 2, r: 3.5, class: "dot" }),
  );
}
