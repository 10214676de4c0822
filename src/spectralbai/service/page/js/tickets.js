// The trials that workers are doing now.

import { mayWrite, READ_ONLY } from "./api.js";
import { cell, el, heading, label, reconcile, setText, tableOf } from "./dom.js";
import { apart, count, date } from "./format.js";

const MOST = 50;

export function ticketsPart({ onAbandon }) {
  const { table, body } = tableOf("compact", "Trials under way, one ticket each", [
    heading("Option"),
    heading("Item", "item"),
    heading("Worker", "narrow"),
    heading("Given", "narrow"),
    heading("Lapses"),
    heading(el("span", { class: "unseen" }, "Action")),
  ]);
  const none = el("p", { class: "empty" }, "No trial is under way.");
  const more = el("p", { class: "muted inset", hidden: true });
  const element = el(
    "section",
    { class: "card flush", "aria-labelledby": "tickets-title" },
    el("div", { class: "tools" }, el("h2", { id: "tickets-title" }, "Trials under way")),
    el("div", { class: "scroll" }, table),
    none,
    more,
  );

  function row(ticket) {
    const button = el(
      "button",
      {
        type: "button",
        class: "quiet",
        disabled: !mayWrite(),
        title: mayWrite() ? null : READ_ONLY,
        "aria-label": `Abandon the ticket of ${ticket.label}`,
      },
      "Abandon",
    );
    button.addEventListener("click", () => onAbandon(ticket));
    return el(
      "tr",
      { role: "row" },
      cell("wide", label(ticket.label)),
      cell("item", label(ticket.item ?? "-")),
      cell("muted narrow", label(ticket.worker || "-")),
      el("td", { role: "cell", class: "muted nowrap narrow", title: date(ticket.issued) }),
      el("td", { role: "cell", class: "muted nowrap", title: date(ticket.expires) }),
      cell("action", button),
    );
  }

  let all = [];
  return {
    element,
    shown: () => all,
    update(tickets) {
      all = tickets;
      const shown = tickets.slice(-MOST).reverse();
      none.hidden = shown.length > 0;
      table.hidden = shown.length === 0;
      table.classList.toggle("on-items", shown.some((each) => each.item !== null));
      more.hidden = tickets.length <= MOST;
      setText(more, `And ${count(tickets.length - shown.length)} more.`);
      reconcile(
        body,
        shown,
        (each) => each.ticket,
        row,
        (made, each) => {
          setText(made.children[3], apart(each.issued));
          setText(made.children[4], apart(each.expires));
        },
      );
    },
  };
}
