// The trials that workers are doing now.

import { mayWrite, READ_ONLY } from "./api.js";
import { el, label, reconcile, setText } from "./dom.js";
import { apart, count, date } from "./format.js";

const MOST = 50;

export function ticketsPart({ onAbandon }) {
  const body = el("tbody", { role: "rowgroup" });
  const head = ["Option", "Worker", "Given", "Lapses"].map((text) =>
    el("th", { scope: "col", role: "columnheader", class: ["Worker", "Given"].includes(text) ? "narrow" : null }, text),
  );
  head.push(el("th", { scope: "col", role: "columnheader" }, el("span", { class: "unseen" }, "Action")));
  const table = el(
    "table",
    { class: "compact", role: "table" },
    el("caption", { class: "unseen" }, "Trials under way, one ticket each"),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head)),
    body,
  );
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
      el("td", { role: "cell", class: "wide" }, label(ticket.label)),
      el("td", { role: "cell", class: "muted narrow" }, label(ticket.worker || "-")),
      el("td", { role: "cell", class: "muted nowrap narrow", title: date(ticket.issued) }),
      el("td", { role: "cell", class: "muted nowrap", title: date(ticket.expires) }),
      el("td", { role: "cell", class: "action" }, button),
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
      more.hidden = tickets.length <= MOST;
      setText(more, `And ${count(tickets.length - shown.length)} more.`);
      reconcile(
        body,
        shown,
        (each) => each.ticket,
        row,
        (made, each) => {
          setText(made.children[2], apart(each.issued));
          setText(made.children[3], apart(each.expires));
        },
      );
    },
  };
}
