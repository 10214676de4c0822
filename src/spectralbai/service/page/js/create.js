// A new study from a table of options: choose, look at the plan, create.

import { mayWrite, post, READ_ONLY } from "./api.js";
import { firstRows } from "./csv.js";
import { el } from "./dom.js";
import { amount, field, group, number, radios, select, tableInput } from "./fields.js";
import { count } from "./format.js";
import { likenessPart } from "./likeness.js";
import { attempt, noticeThere } from "./notices.js";

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
  const likeness = likenessPart({
    title: "Table of options (CSV)",
    hint: "One row for each option; the first line names the columns.",
    hintOfStep:
      "In the units of the outcomes. It may be left empty, and the graph is not used then, if a column has guesses.",
    onFile: () => forget(),
  });
  const { table, labels, guess, alike, by, step } = likeness;
  const example = el("button", { type: "button", class: "quiet" }, "Use an example");

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

  const items = tableInput(
    "items",
    "Items, if options are tried on some",
    "Such as questions: a name a line. Options are then compared on the same items.",
    ".txt,.csv,text/plain,text/csv",
  );
  const sample = radios("sample", "What are they?", [
    ["listed", "All that count: the answer is about these items"],
    ["fresh", "A random sample: the answer is about all that are like them"],
  ]);

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
  const tolerance = amount(
    "tolerance",
    "Tolerance",
    { value: "0" },
    "An option this close to the best is as good: 0.005, or 0.5% of clicks.",
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
      likeness.preview,
      el("div", { class: "row" }, labels.element, guess.element),
    ),
    group("2. Likeness", ...likeness.choices),
    group("3. Outcomes", outcomes.element, ...Object.values(ofOutcomes)),
    group("4. Items", items.element, sample.element),
    group(
      "5. Question",
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
  let planned = null;

  function showChoices() {
    likeness.show();
    for (const [key, each] of Object.entries(ofOutcomes)) each.hidden = outcomes.value() !== key;
    sample.element.hidden = names().length === 0;
  }

  const names = () => namesIn(items.text());

  function asked() {
    const body = { ...likeness.asked(), tolerance: tolerance.value() ?? 0 };
    if (names().length) body.items = { [sample.value()]: names().length };
    else body.delta = delta.number();
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
    likeness.onInput(event);
    showChoices();
    forget();
  });
  example.addEventListener("click", () => {
    table.set(EXAMPLE);
    likeness.read();
    labels.set("page");
    guess.set("expected");
    alike.set("by");
    by.set("kind");
    step.set("0.03");
    outcomes.set("binary");
    tolerance.set("0.02");
    name.input.value ||= "pages";
    likeness.showFeatures();
    showChoices();
    forget();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    refused.hidden = true;
    if (!table.text().trim()) return refuse("Choose or paste a table of options first.", table.input);
    if (delta.number() === null) return refuse("The risk of a wrong answer is missing; 0.05 is usual.", delta.input);
    const body = asked();
    if (body.features === "")
      return refuse(
        "Choose a column of numbers to compare by, or say in another way which options are alike.",
        alike.element.querySelector("input"),
      );
    if (alike.value() === "none" && !names().length)
      return refuse("Trials on items do without options that are alike; without items, say which are.", items.input);
    if (body.step === null && body.guess === null && alike.value() !== "none")
      return refuse(
        "Say by how much options that are alike differ at most, or choose a column with guesses of the mean outcomes.",
        step.input,
      );
    show.disabled = true;
    show.textContent = "Planning ...";
    try {
      const tried = names();
      planned = { names: tried, ...(await post(tried.length ? "/api/instances" : "/api/plan", body)) };
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
    const { expected, expected_without_graph: without, remarks } = planned;
    const [figures, advice] = planned.names.length ? onItems(planned) : withGraph(planned);
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
        items: planned.names.length ? planned.names : null,
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
      noticeThere(`#/study/${encodeURIComponent(text)}`, "The study is created. Workers can ask for trials now.");
    }),
  );
  name.input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      create.click();
    }
  });

  items.onText(() => {
    showChoices();
    forget();
  });
  outcomes.set("binary");
  sample.set("listed");
  showChoices();
  return { title: "New study", element, close() {} };
}

/** The names in a text: a name a line or, of a table with a column "item", the cells of that column. */
function namesIn(text) {
  const lines = text.split(/\r?\n/).map((each) => each.trim());
  const named = lines.filter((each) => each !== "");
  const columns = named.length ? firstRows(named[0], 1)[0] : [];
  const at = columns.indexOf("item");
  return at < 0 ? named : firstRows(text, named.length).slice(1).map((row) => row[at]);
}

/** Figures and advice of a plan with a graph. */
function withGraph({ expected, expected_without_graph: without, saving, advice }) {
  return [
    [
      ["Trials to expect", expected === null ? "not known" : `about ${count(expected)}`],
      ["Without the graph", without === null ? "not known" : `about ${count(without)}`],
      ["The graph saves", saving < 0.005 ? "hardly anything" : `${Math.round(100 * saving)} %`],
    ],
    advice,
  ];
}

/** Figures and advice of options on items. */
function onItems({ names, instance }) {
  const pairs = names.length * instance.n_arms;
  return [
    [
      ["Options", count(instance.n_arms)],
      ["Items", count(names.length)],
      ["Pairs", `at most ${count(pairs)}`],
    ],
    names.length < 100
      ? "On fewer than 100 items little is saved: expect that most pairs of the better options are tried."
      : "How many pairs are needed depends on how close the best options are: on real lists of 300 items and more, " +
        "mostly 4 to 16 % of them.",
  ];
}

function bars(expected, without) {
  if (!expected || !without) return "";
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
