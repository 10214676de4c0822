// The options of a study in a table, and which of them are alike: what `spectralbai instance` needs to know of both.

import { firstRows, isNumeric, rowsIn } from "./csv.js";
import { el, label } from "./dom.js";
import { amount, checkbox, number, radios, select, tableInput } from "./fields.js";
import { count } from "./format.js";

const PREVIEW = 6;
const LOOKED_AT = 200;

/** Fields of a form. Who shows them calls `onInput` with the events of the form, and is told of files by `onFile`. */
export function likenessPart({ title, hint, hintOfStep, accept, onFile, isTable = () => true }) {
  const table = tableInput("arms", title, hint, accept);
  const preview = el("div", { class: "preview", hidden: true });
  const labels = select("label", "Column with the labels");
  const guess = select("guess", "Column with guesses of the mean outcomes, if any");
  const alike = radios("alike", "Which options are alike?", [
    ["features", "Those that are near in some columns"],
    ["by", "Those of one category"],
    ["edges", "The pairs in a second table"],
    ["none", "None of them"],
  ]);
  const features = el("div", { class: "checks", role: "group", "aria-label": "Columns to compare by" });
  const neighbors = number("neighbors", "Neighbours of each option", { min: 1, step: 1, placeholder: "as usual" });
  const by = select("by", "Column with the categories");
  const edges = tableInput("edges", "Table of pairs (CSV)", "Columns: label, label and perhaps weight.");
  const step = amount(
    "step",
    "Options that are alike differ by at most",
    { placeholder: "0.1" },
    hintOfStep,
  );
  const ofAlike = { features: el("div", {}, features, neighbors.element), by: by.element, edges: edges.element };
  let columns = [];

  function read() {
    const rows = isTable(table.text()) ? firstRows(table.text(), LOOKED_AT) : [];
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

  function showFeatures(data = firstRows(table.text(), LOOKED_AT).slice(1)) {
    const chosen = new Set([...features.querySelectorAll("input:checked")].map((each) => each.value));
    const others = columns.filter((each) => each !== labels.value() && each !== guess.value());
    const first = chosen.size ? null : others.find((each) => isNumeric(data, columns.indexOf(each)));
    features.replaceChildren(...others.map((each) => checkbox("feature", each, chosen.has(each) || each === first)));
    if (!others.length) features.append(el("p", { class: "muted" }, "The table has no other columns."));
  }

  function show() {
    for (const [key, each] of Object.entries(ofAlike)) each.hidden = alike.value() !== key;
    step.element.hidden = alike.value() === "none";
  }

  table.onText(() => {
    read();
    onFile();
  });
  alike.set("features");
  read();
  show();
  return {
    table,
    labels,
    guess,
    alike,
    by,
    step,
    preview,
    choices: [alike.element, ...Object.values(ofAlike), step.element],
    read,
    show,
    showFeatures,
    onInput(event) {
      if (event.target === table.input) read();
      if (event.target === labels.input || event.target === guess.input) showFeatures();
      show();
    },
    /** The part of a request that says all this. */
    asked() {
      const body = {
        arms: table.text(),
        label: labels.value() || null,
        guess: guess.value() || null,
        step: step.value(),
      };
      const way = alike.value();
      if (way === "features") {
        body.features = [...features.querySelectorAll("input:checked")].map((each) => each.value).join(",");
        body.neighbors = neighbors.number();
      } else if (way === "by") body.by = by.value();
      else if (way === "edges") body.edges = edges.text();
      return body;
    },
  };
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
