// How far a study is, in a small picture: how much of their way to the line the accounts have come, on average.

import { svg } from "./dom.js";
import { things } from "./format.js";

const WIDTH = 120;
const HEIGHT = 28;

/** The part of their way that the accounts have come at each check, on average; null where there are none. */
export function waysOf(history) {
  return history.lacking.map((row, at) => {
    if (row === null) return null;
    const lacking = row.filter((each, name) => each !== null && history.names[name] !== history.best[at]);
    if (!lacking.length) return null;
    const ways = lacking.map((each) => Math.max(0, Math.min(1, 1 - each / history.needed)));
    return ways.reduce((sum, each) => sum + each, 0) / ways.length;
  });
}

export function sparkline(history, results) {
  const parts = waysOf(history);
  const most = Math.max(1, results, ...history.samples);
  const points = parts.flatMap((part, at) => (part === null ? [] : [[history.samples[at], part]]));
  const place = ([x, y]) =>
    `${(2 + (WIDTH - 6) * (x / most)).toFixed(1)} ${(HEIGHT - 3 - (HEIGHT - 6) * y).toFixed(1)}`;
  const last = points.at(-1);
  const words =
    last === undefined
      ? "No accounts yet"
      : `After ${things(last[0], "result")} accounts have come ${Math.round(100 * last[1])} % of their way, on average`;
  const picture = svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      width: WIDTH,
      height: HEIGHT,
      role: "img",
      "aria-label": words,
      class: "spark",
    },
    svg("title", {}, words),
    svg("line", { x1: 2, x2: WIDTH - 4, y1: 3, y2: 3, class: "goal" }),
  );
  if (last !== undefined) {
    picture.append(
      svg("path", { d: `M2 ${HEIGHT - 3}L${points.map(place).join("L")}`, class: "line" }),
      svg("circle", { cx: place(last).split(" ")[0], cy: place(last).split(" ")[1], r: 2.5, class: "dot" }),
    );
  }
  return picture;
}
