// The options compared with one of them, the control: differences and lifts, with their limits.

import { get, pathOf } from "./api.js";
import { cell, el, heading, label, reconcile, sentence, setText, tableOf } from "./dom.js";
import { showInterval } from "./intervals.js";

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
  const unit = heading("", "number");
  const { table, body } = tableOf(
    "compact comparisons",
    "The options of the table above, compared with the control",
    [
      heading("Option"),
      heading("For sure"),
      unit,
      heading("Its interval"),
      heading("Lift", "number"),
      heading("Its interval"),
    ],
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
    cell("nowrap sure"),
    el("td", { role: "cell", class: "number strong", "data-heading": "Difference" }),
    cell("interval", el("span", { class: "drawn" }), el("span", { class: "range" })),
    el("td", { role: "cell", class: "number strong", "data-heading": "Lift" }),
    cell("nowrap muted"),
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
  showInterval(parts[3], limitsOf(arm), scale, { at: 0, kind: "zero" });
  setText(parts[4], lift);
  setText(parts[5], limitsOfLift);
}

/** The difference of an option and the control, with its limits. */
const limitsOf = ({ against }) =>
  against === null ? [null, null, null] : [against.difference_low, against.difference, against.difference_high];

/** From where to where differences are drawn; 0 is always among them. */
function scaleOf(arms) {
  const numbers = arms.flatMap(limitsOf).filter((each) => each !== null);
  const [low, high] = [Math.min(0, ...numbers), Math.max(0, ...numbers)];
  return low === high ? { low: -1, high: 1 } : { low, high };
}
