// How far a study is, in figures, and what it is about.

import { el, setAttribute, setText } from "./dom.js";
import { apart, count, date, plain, share, things } from "./format.js";

function figure(name) {
  const value = el("dd", {});
  const more = el("dd", { class: "more" });
  return { value, more, element: el("div", { class: "figure" }, el("dt", {}, name), value, more) };
}

export function progressPart() {
  const results = figure("Results");
  const remaining = figure("Still to come");
  const items = figure("Items done");
  const left = figure("May be the best");
  const pending = figure("Trials under way");
  const risk = figure("Risk of an error");
  const bar = el(
    "div",
    {
      class: "meter",
      role: "meter", // screen readers say every change of a progress bar
      "aria-label": "Results, of all that are expected or allowed",
      "aria-valuemin": 0,
      "aria-valuemax": 100,
    },
    el("span", { class: "done" }),
    el("span", { class: "mark", hidden: true }),
  );
  const words = el("p", { class: "muted" });
  const figures = [results, items, remaining, left, pending, risk];
  const element = el(
    "section",
    { class: "card", "aria-label": "Progress" },
    el(
      "dl",
      { class: "figures" },
      figures.map((each) => each.element),
    ),
    bar,
    words,
  );

  function update(status) {
    setText(results.value, count(status.results));
    setText(results.more, status.unprocessed ? `${count(status.unprocessed)} not yet processed` : "");
    items.element.hidden = status.items === null;
    if (status.items !== null) {
      const { done, available, missing } = status.items;
      setText(items.value, count(done));
      const of = available === null ? "" : `of ${count(available)}`;
      setText(items.more, [of, missing ? `${things(missing, "pair")} missing` : ""].filter(Boolean).join("; "));
    }
    const running = status.state === "running";
    const forecast = running && status.remaining !== null;
    setText(remaining.value, forecast ? `about ${count(Math.round(status.remaining))}` : running ? "-" : "none");
    setText(remaining.more, forecast ? "trials, at the present estimate" : running ? unknown(status) : "");
    setText(left.value, status.candidates === null ? "-" : count(status.candidates.length));
    setText(left.more, `of ${count(status.n_arms)} options`);
    const claimed = status.consistent !== false;
    setText(risk.value, claimed ? plain(status.risk) : "-");
    setText(
      risk.more,
      !claimed ? "nothing is claimed" : "at most: this is proved",
    );
    showBar(status, running);
  }

  function showPending(number) {
    setText(pending.value, count(number));
    setText(pending.more, number === 1 ? "ticket" : "tickets");
  }

  function showBar(status, running) {
    const { budget, until } = status;
    const trials = status.results - (status.items?.known ?? 0);
    const expected = running && status.remaining !== null ? trials + status.remaining : null;
    const whole = budget ?? expected;
    bar.hidden = !whole && !running; // while the study runs it keeps its place, so that nothing below it moves
    const part = whole ? Math.min(1, trials / whole) : 0;
    bar.firstChild.style.width = `${100 * part}%`;
    setAttribute(bar, "aria-valuenow", Math.round(100 * part));
    const mark = bar.lastChild;
    mark.hidden = budget === null || expected === null || expected > budget;
    if (!mark.hidden) mark.style.left = `${(100 * expected) / budget}%`;
    const parts = [];
    if (budget !== null)
      parts.push(
        `${count(trials)} of a budget of ${count(budget)} trials (${share(trials / budget)}).`,
      );
    else if (expected !== null) parts.push(`${share(part)} of the trials expected at the present estimate.`);
    else if (running) parts.push(`How many trials are needed is ${unknown(status)}.`);
    if (!mark.hidden) parts.push("The mark is where the decision is expected.");
    if (until !== null)
      parts.push(
        running ? `Ends ${date(until)} (${apart(until)}).` : status.state === "ended" ? ended(status) : "",
      );
    if (running && status.room !== null && budget === null)
      parts.push(`About ${count(Math.round(status.room))} trials until then at the pace so far.`);
    setText(words, parts.join(" ").trim());
    words.hidden = words.textContent === "";
  }

  return { element, update, pending: showPending };
}

const unknown = ({ computing }) => (computing ? "being computed" : "not known yet");
const ended = ({ by_hand, until }) => `${by_hand ? "Stopped by hand" : "Ended"} ${date(until)}.`;

/** The terms of the study: what was asked, and on which promises the answer rests. */
export function factsPart() {
  const list = el("dl", { class: "facts" });
  const element = el("details", { class: "card" }, el("summary", {}, "What the study is about"), list);
  let shown = "";

  function update(status) {
    const R = Array.isArray(status.R)
      ? several(status.R)
      : status.R === null
        ? "infinite: the graph is not used"
        : plain(status.R);
    const rows = [
      ["Question", `which option has the ${status.goal === "max" ? "largest" : "least"} mean outcome`],
      [
        "Tolerance",
        status.tolerance ? `${plain(status.tolerance)}: an option this close to the best is as good` : "none",
      ],
      ["Risk (delta)", plain(status.delta)],
      ["Smoothness (R)", R],
      ["Do the data agree with R?", status.agreement],
      ["Evidence", status.evidence],
      ["As of", date(status.time)],
    ];
    const text = JSON.stringify(rows);
    if (text === shown) return;
    shown = text;
    list.replaceChildren(
      ...rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", { dir: "auto" }, value))),
    );
  }

  return { element, update };
}

function several(radii) {
  const numbers = radii.filter((each) => typeof each === "number" && each > 0);
  if (!numbers.length) return "infinite";
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  return low === high ? `${plain(low)} in each part` : `${plain(low)} to ${plain(high)}, one for each part`;
}
