// What was told last.

import { get, pathOf } from "./api.js";
import { el, label, reconcile, setAttribute, setText } from "./dom.js";
import { apart, date, plain } from "./format.js";

const SHOWN = 12;

export function resultsPart(name) {
  const body = el("tbody", { role: "rowgroup" });
  const head = ["Result", "Option", "Outcome", "Told", "By"].map((text) =>
    el(
      "th",
      { scope: "col", role: "columnheader", class: { Result: "number", Outcome: "number", By: "narrow" }[text] },
      text,
    ),
  );
  const table = el(
    "table",
    { class: "compact", role: "table" },
    el("caption", { class: "unseen" }, "The newest results"),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head)),
    body,
  );
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
      el("td", { role: "cell", class: "number muted" }, String(each.number)),
      el("td", { role: "cell", class: "wide" }, label(each.label)),
      el("td", { role: "cell", class: "number strong" }, plain(each.outcome)),
      el("td", { role: "cell", class: "muted nowrap", title: date(each.told) }),
      el("td", { role: "cell", class: "muted narrow" }, label(each.worker || each.origin || "-")),
    );
  }

  return {
    element,
    read: async () => (await get(pathOf(name, "/results"), { limit: SHOWN })).results,
    update(told) {
      none.hidden = told.length > 0;
      table.hidden = told.length === 0;
      reconcile(
        body,
        told,
        (each) => each.number,
        row,
        (made, each) => {
          setText(made.children[3], apart(each.told));
          setAttribute(made, "data-number", each.number);
        },
      );
    },
  };
}
