// The options compared with one of them, the control: differences and lifts, with their limits.

import { get, pathOf } from "./api.js";
import { el, label, reconcile, sentence, setText, svg } from "./dom.js";

const WIDTH = 150;
const HEIGHT = 16;
const MOST_OFFERED = 5000;

export function comparePart({ name, onControl }) {
  const offered = el("datalist", { id: "control-options" });
  const input = el("input", {
    type: "text",
    id: "control",
    list: "control-options",
    autocomplete: "off",
    placeholder: "Label of an option",
    dir: "auto",
  });
  const choose = el("button", { type: "submit" }, "Compare");
  const end = el("button", { type: "button", class: "quiet", hidden: true }, "End the comparison");
  const refused = el("p", { class: "refused inset", role: "alert", hidden: true, dir: "auto" });
  const words = el("p", { class: "muted inset", role: "status", hidden: true });
  const unit = el("th", { scope: "col", role: "columnheader", class: "number" });
  const head = [
    el("th", { scope: "col", role: "columnheader" }, "Option"),
    el("th", { scope: "col", role: "columnheader" }, "For sure"),
    unit,
    el("th", { scope: "col", role: "columnheader" }, "Its interval"),
    el("th", { scope: "col", role: "columnheader", class: "number" }, "Lift"),
    el("th", { scope: "col", role: "columnheader" }, "Its interval"),
  ];
  const body = el("tbody", { role: "rowgroup" });
  const table = el(
    "table",
    { class: "compact comparisons", role: "table" },
    el("caption", { class: "unseen" }, "The options of the table above, compared with the control"),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head)),
    body,
  );
  const scroll = el(
    "div",
    { class: "scroll", hidden: true, tabindex: "0", role: "region", "aria-label": "Comparison with the control" },
    table,
  );
  const form = el(
    "form",
    { class: "tools" },
    el("h2", { id: "compare-title" }, "Compare with a control"),
    el("label", { for: "control", class: "unseen" }, "Control"),
    input,
    offered,
    choose,
    end,
  );
  const element = el(
    "section",
    { class: "card flush", "aria-labelledby": "compare-title" },
    form,
    refused,
    words,
    scroll,
  );
  let control = null;
  let known = 0;
  let wanted = 0;

  input.addEventListener("focus", async () => {
    if (known === wanted) return;
    known = wanted;
    try {
      const labels = (await get(pathOf(name))).definition.instance.labels.slice(0, MOST_OFFERED);
      offered.replaceChildren(...labels.map((each) => el("option", { value: each })));
    } catch {
      known = 0; // labels can be typed all the same
    }
  });

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    refused.hidden = true;
    const text = input.value.trim();
    if (text === "") return set(null);
    choose.disabled = true;
    try {
      await get(pathOf(name, "/status"), { control: text, limit: 0 }); // refused here, if there is no such option
      set(text);
    } catch (error) {
      refused.textContent = error.message;
      refused.hidden = false;
      input.focus();
    }
    choose.disabled = false;
  });
  end.addEventListener("click", () => {
    input.value = "";
    refused.hidden = true;
    set(null);
    input.focus();
  });

  function set(text) {
    control = text;
    onControl();
  }

  function update(status) {
    wanted = status.n_arms;
    const { compared } = status.tables;
    const off = control === null || compared === undefined || status.control !== control;
    scroll.hidden = words.hidden = end.hidden = off;
    if (off) return;
    const text = `Compared with "${control}": ${status.compared}. The options are those of the table above.`;
    if (words.textContent !== text) words.replaceChildren(...sentence(text, [control]));
    setText(unit, compared.headings[2].replace(/^d/, "D"));
    const scale = scaleOf(status.arms);
    const rows = status.arms.map((arm, at) => ({ arm, cells: compared.rows[at], scale, best: status.best }));
    reconcile(body, rows, ({ arm }) => arm.label, row, change);
  }

  return { element, update, control: () => control };
}

function row({ arm }) {
  return el(
    "tr",
    { role: "row" },
    el("th", { scope: "row", role: "rowheader", class: "wide" }, label(arm.label)),
    el("td", { role: "cell", class: "nowrap sure" }),
    el("td", { role: "cell", class: "number strong", "data-heading": "Difference" }),
    el("td", { role: "cell", class: "interval" }, el("span", { class: "drawn" }), el("span", { class: "range" })),
    el("td", { role: "cell", class: "number strong", "data-heading": "Lift" }),
    el("td", { role: "cell", class: "nowrap muted" }),
  );
}

function change(made, { arm, cells, scale, best }) {
  const [, , difference, limits, lift, limitsOfLift, sure] = cells;
  const parts = made.children;
  made.classList.toggle("leads", arm.label === best);
  made.classList.toggle("control", arm.against === null);
  setText(parts[1], sure);
  parts[1].dataset.sure = sure;
  setText(parts[2], difference);
  setText(parts[3].lastChild, limits);
  const drawing = JSON.stringify([scale, arm.against]);
  if (parts[3].drawing !== drawing) {
    parts[3].drawing = drawing;
    parts[3].firstChild.replaceChildren(drawn(arm.against, scale));
  }
  setText(parts[4], lift);
  setText(parts[5], limitsOfLift);
}

/** From where to where differences are drawn; 0 is always among them. */
function scaleOf(arms) {
  const numbers = arms
    .flatMap(({ against }) =>
      against === null ? [] : [against.difference, against.difference_low, against.difference_high],
    )
    .filter((each) => each !== null);
  const [low, high] = [Math.min(0, ...numbers), Math.max(0, ...numbers)];
  return low === high ? { low: -1, high: 1 } : { low, high };
}

function drawn(against, { low, high }) {
  if (against === null || against.difference === null) return "";
  const place = (value) => (3 + ((value - low) / (high - low)) * (WIDTH - 6)).toFixed(1);
  const [from, to] = [place(against.difference_low ?? low), place(against.difference_high ?? high)];
  const claimed = against.difference_low !== null || against.difference_high !== null;
  const middle = HEIGHT / 2;
  return svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      width: WIDTH,
      height: HEIGHT,
      "aria-hidden": "true",
      class: "bar-of-interval",
    },
    svg("line", { x1: 0, x2: WIDTH, y1: middle, y2: middle, class: "base" }),
    svg("line", { x1: place(0), x2: place(0), y1: 0, y2: HEIGHT, class: "zero" }),
    claimed ? svg("line", { x1: from, x2: to, y1: middle, y2: middle, class: "range" }) : null,
    svg("circle", { cx: place(against.difference), cy: middle, r: 3.5, class: "dot" }),
  );
}
