// A new study from a table of options: choose, look at the plan, create.

import { mayWrite, post, READ_ONLY } from "./api.js";
import { firstRows, isNumeric, rowsIn } from "./csv.js";
import { el, label } from "./dom.js";
import { checkbox, field, group, number, radios, select, tableInput } from "./fields.js";
import { count } from "./format.js";
import { attempt, notice } from "./notices.js";

const PREVIEW = 6;
const LOOKED_AT = 200;
const EXAMPLE = `page,kind,expected
current,current,0.30
blue 1,blue,0.11
blue 2,blue,0.12
blue 3,blue,0.13
blue 4,blue,0.11
blue 5,blue,0.12
blue 6,blue,0.13
green 1,green,0.14
green 2,green,0.15
green 3,green,0.16
green 4,green,0.14
green 5,green,0.15
green 6,green,0.16
red 1,red,0.09
red 2,red,0.10
red 3,red,0.11
red 4,red,0.09
red 5,red,0.10
red 6,red,0.11
`;

export function createView() {
  const table = tableInput(
    "arms",
    "Table of options (CSV)",
    "One row for each option; the first line names the columns.",
  );
  const example = el("button", { type: "button", class: "quiet" }, "Use an example");
  const preview = el("div", { class: "preview", hidden: true });
  const labels = select("label", "Column with the labels");
  const guess = select("guess", "Column with guesses of the mean outcomes, if any");

  const alike = radios("alike", "Which options are alike?", [
    ["features", "Those that are near in some columns"],
    ["by", "Those of one category"],
    ["edges", "The pairs in a second table"],
  ]);
  const features = el("div", { class: "checks", role: "group", "aria-label": "Columns to compare by" });
  const neighbors = number("neighbors", "Neighbours of each option", { min: 1, step: 1, placeholder: "as usual" });
  const by = select("by", "Column with the categories");
  const edges = tableInput("edges", "Table of pairs (CSV)", "Columns: label, label and perhaps weight.");
  const step = number(
    "step",
    "Options that are alike differ by at most",
    { min: 0, step: "any", placeholder: "0.1" },
    "In the units of the outcomes. It may be left empty, and the graph is not used then, if a column has guesses.",
  );
  const ofAlike = { features: el("div", {}, features, neighbors.element), by: by.element, edges: edges.element };

  const outcomes = radios("outcomes", "What does a trial tell?", [
    ["binary", "Yes or no (1 or 0)"],
    ["range", "A number in a range"],
    ["sigma", "Any number"],
  ]);
  const low = number("low", "Least", { step: "any", value: "0" });
  const high = number("high", "Largest", { step: "any", value: "1" });
  const sigma = number("sigma", "Standard deviation of one outcome", { min: 0, step: "any", placeholder: "0.3" });
  const ofOutcomes = {
    binary: el("div", {}),
    range: el("div", { class: "row" }, low.element, high.element),
    sigma: sigma.element,
  };

  const goal = select("goal", "Best is", [
    ["max", "the largest mean outcome"],
    ["min", "the least mean outcome"],
  ]);
  const delta = number("delta", "Risk of a wrong answer", {
    min: 0,
    max: 1,
    step: "any",
    value: "0.05",
    required: true,
  });
  const tolerance = number(
    "tolerance",
    "Tolerance",
    { min: 0, step: "any", value: "0" },
    "An option this close to the best is as good.",
  );
  const budget = number(
    "budget",
    "Budget of trials",
    { min: 1, step: 1, placeholder: "none" },
    "The study ends after so many, decided or not.",
  );
  const until = field("until", "Ends at", el("input", { type: "datetime-local" }), "Empty: when it is decided.");
  const name = field(
    "name",
    "Name of the study",
    el("input", { type: "text", required: true, autocomplete: "off", dir: "auto" }),
  );

  const show = el("button", { type: "submit", class: "primary" }, "Show the plan");
  const create = el("button", { type: "button", class: "primary" }, "Create the study");
  const refused = el("p", { class: "refused", role: "alert", hidden: true, dir: "auto" });
  const plan = el("section", { class: "card plan", "aria-labelledby": "plan-title", hidden: true, tabindex: "-1" });
  const form = el(
    "form",
    { class: "create", novalidate: true },
    group(
      "1. Options",
      table.element,
      el("p", { class: "after" }, example),
      preview,
      el("div", { class: "row" }, labels.element, guess.element),
    ),
    group("2. Likeness", alike.element, ...Object.values(ofAlike), step.element),
    group("3. Outcomes", outcomes.element, ...Object.values(ofOutcomes)),
    group(
      "4. Question",
      el("div", { class: "row" }, goal.element, delta.element, tolerance.element),
      el("div", { class: "row" }, budget.element, until.element),
    ),
    refused,
    el("p", { class: "buttons" }, show),
  );
  const note = mayWrite()
    ? null
    : el("p", { class: "muted" }, `${READ_ONLY} You can look at plans, but not create a study.`);
  const element = el(
    "div",
    { class: "stack narrow-page" },
    el("div", { class: "head" }, el("h1", {}, "New study")),
    note,
    form,
    plan,
  );
  let columns = [];
  let planned = null;

  function readTable() {
    const rows = firstRows(table.text(), LOOKED_AT);
    columns = rows[0] ?? [];
    const data = rows.slice(1);
    preview.hidden = columns.length === 0;
    if (columns.length) preview.replaceChildren(previewOf(columns, data, rowsIn(table.text())));
    const named = columns.map((each) => [each, each]);
    labels.options(named, columns[0]);
    guess.options([["", "none"], ...named], "");
    by.options(
      named.slice(1).length ? named.slice(1) : named,
      named.find((each, at) => at > 0 && !isNumeric(data, at))?.[0],
    );
    showFeatures(data);
  }

  function showFeatures(data) {
    const chosen = new Set([...features.querySelectorAll("input:checked")].map((each) => each.value));
    const others = columns.filter((each) => each !== labels.value() && each !== guess.value());
    const first = chosen.size ? null : others.find((each) => isNumeric(data, columns.indexOf(each)));
    features.replaceChildren(...others.map((each) => checkbox("feature", each, chosen.has(each) || each === first)));
    if (!others.length) features.append(el("p", { class: "muted" }, "The table has no other columns."));
  }

  function showChoices() {
    for (const [key, each] of Object.entries(ofAlike)) each.hidden = alike.value() !== key;
    for (const [key, each] of Object.entries(ofOutcomes)) each.hidden = outcomes.value() !== key;
  }

  function asked() {
    const body = {
      arms: table.text(),
      label: labels.value() || null,
      guess: guess.value() || null,
      step: step.number(),
      tolerance: tolerance.number() ?? 0,
      delta: delta.number(),
    };
    const way = alike.value();
    if (way === "features") {
      body.features = [...features.querySelectorAll("input:checked")].map((each) => each.value).join(",");
      body.neighbors = neighbors.number();
    } else if (way === "by") body.by = by.value();
    else body.edges = edges.text();
    if (outcomes.value() === "binary") body.binary = true;
    else if (outcomes.value() === "range") Object.assign(body, { low: low.number(), high: high.number() });
    else body.sigma = sigma.number();
    return body;
  }

  function forget() {
    if (planned === null) return;
    planned = null;
    plan.hidden = true;
  }

  form.addEventListener("input", (event) => {
    if (event.target === table.input) readTable();
    if (event.target === labels.input || event.target === guess.input)
      showFeatures(firstRows(table.text(), LOOKED_AT).slice(1));
    showChoices();
    forget();
  });
  table.onText(() => {
    readTable();
    forget();
  });
  example.addEventListener("click", () => {
    table.set(EXAMPLE);
    readTable();
    labels.set("page");
    guess.set("expected");
    alike.set("by");
    by.set("kind");
    step.set("0.03");
    outcomes.set("binary");
    tolerance.set("0.02");
    name.input.value ||= "pages";
    showFeatures(firstRows(EXAMPLE, LOOKED_AT).slice(1));
    showChoices();
    forget();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    refused.hidden = true;
    if (!table.text().trim()) return refuse("Choose or paste a table of options first.", table.input);
    if (delta.number() === null) return refuse("The risk of a wrong answer is missing; 0.05 is usual.", delta.input);
    show.disabled = true;
    show.textContent = "Planning ...";
    try {
      planned = await post("/api/plan", asked());
      showPlan();
    } catch (error) {
      refuse(error.message, show);
    }
    show.disabled = false;
    show.textContent = "Show the plan";
  });

  function refuse(text, where) {
    refused.textContent = text;
    refused.hidden = false;
    where.focus();
  }

  function showPlan() {
    const { expected, expected_without_graph: without, saving, advice, remarks } = planned;
    const figures = [
      ["Trials to expect", expected === null ? "not known" : `about ${count(expected)}`],
      ["Without the graph", without === null ? "not known" : `about ${count(without)}`],
      ["The graph saves", saving < 0.005 ? "hardly anything" : `${Math.round(100 * saving)} %`],
    ];
    plan.replaceChildren(
      el("h2", { id: "plan-title" }, "The plan"),
      el(
        "dl",
        { class: "figures" },
        figures.map(([title, value]) => el("div", { class: "figure" }, el("dt", {}, title), el("dd", {}, value))),
      ),
      bars(expected, without),
      el("p", { dir: "auto" }, advice),
      el(
        "ul",
        { class: "remarks" },
        remarks.map((each) => el("li", { dir: "auto" }, each)),
      ),
      el("div", { class: "row end" }, name.element, create),
    );
    create.disabled = !mayWrite();
    create.title = mayWrite() ? "" : READ_ONLY;
    plan.hidden = false;
    plan.scrollIntoView({ block: "nearest" });
    name.input.focus({ preventScroll: true });
  }

  create.addEventListener("click", () =>
    attempt(async () => {
      if (planned === null) return;
      const text = name.input.value.trim();
      if (!text) {
        name.input.focus();
        throw new Error("The study needs a name.");
      }
      const body = {
        name: text,
        instance: planned.instance,
        delta: delta.number(),
        goal: goal.value(),
        budget: budget.number(),
      };
      if (until.input.value) body.until = new Date(until.input.value).getTime() / 1000;
      create.disabled = true;
      try {
        await post("/api/studies", body);
      } finally {
        create.disabled = false;
      }
      location.hash = `#/study/${encodeURIComponent(text)}`;
      setTimeout(() => notice("The study is created. Workers can ask for trials now.", "done"), 0);
    }),
  );
  name.input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      create.click();
    }
  });

  alike.set("features");
  outcomes.set("binary");
  showChoices();
  readTable();
  return { title: "New study", element, close() {} };
}

function bars(expected, without) {
  if (!expected || !without) return null;
  const most = Math.max(expected, without);
  const bar = (value, text) => {
    const done = el("span", { class: "done" });
    done.style.width = `${(100 * value) / most}%`;
    return el(
      "div",
      { class: "compared" },
      el("span", {}, text),
      el("div", { class: "meter", "aria-hidden": "true" }, done),
    );
  };
  return el("div", { class: "comparison" }, bar(expected, "with the graph"), bar(without, "without"));
}

function previewOf(columns, data, rows) {
  const shown = data.slice(0, PREVIEW);
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "The first rows of the table" },
    el(
      "table",
      { class: "compact" },
      el("caption", {}, `${count(rows)} rows; the first ${count(shown.length)} are shown`),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          columns.map((each) => el("th", { scope: "col" }, label(each))),
        ),
      ),
      el(
        "tbody",
        {},
        shown.map((row) =>
          el(
            "tr",
            {},
            columns.map((each, at) => el("td", {}, label(row[at] ?? ""))),
          ),
        ),
      ),
    ),
  );
}
