// What was told last.

import { get, pathOf } from "./api.js";
import { cell, el, heading, label, reconcile, setAttribute, setText, tableOf } from "./dom.js";
import { apart, date, plain } from "./format.js";

const SHOWN = 12;

export function resultsPart(name) {
  const { table, body } = tableOf("compact", "The newest results", [
    heading("Result", "number"),
    heading("Option"),
    heading("Item", "item"),
    heading("Outcome", "number"),
    heading("Told"),
    heading("By", "narrow"),
  ]);
  const none = el("p", { class: "empty" }, "Nothing is told yet.");
  const element = el(
    "section",
    { class: "card flush", "aria-labelledby": "results-title" },
    el("div", { class: "tools" }, el("h2", { id: "results-title" }, "Newest results")),
    el("div", { class: "scroll" }, table),
    none,
  );

  function row(each) {
    return el(
      "tr",
      { role: "row" },
      cell("number muted", String(each.number)),
      cell("wide", label(each.label)),
      cell("item", label(each.item ?? "-")),
      cell("number strong", plain(each.outcome)),
      el("td", { role: "cell", class: "muted nowrap", title: date(each.told) }),
      cell("muted narrow", label(each.worker || each.origin || "-")),
    );
  }

  return {
    element,
    read: async () => (await get(pathOf(name, "/results"), { limit: SHOWN })).results,
    update(told) {
      none.hidden = told.length > 0;
      table.hidden = told.length === 0;
      table.classList.toggle("on-items", told.some((each) => each.item !== null));
      reconcile(
        body,
        told,
        (each) => each.number,
        row,
        (made, each) => {
          setText(made.children[4], apart(each.told));
          setAttribute(made, "data-number", each.number);
        },
      );
    },
  };
}
