// The options of a study, a page of them at a time.

import { mayWrite, READ_ONLY } from "./api.js";
import { cell, el, heading, label, reconcile, setAttribute, setText, tableOf } from "./dom.js";
import { count, share, things } from "./format.js";
import { showInterval } from "./intervals.js";
import { announce } from "./notices.js";

const PAGE = 25;
const LEADS = "It led when results were last checked. Estimates also count those told since.";

export function optionsPart({ onQuery, onSearch, onWithdraw }) {
  const query = { limit: PAGE, after: 0, search: "", category: "" };
  const search = el("input", { type: "search", id: "find", placeholder: "Search options" });
  const category = el("select", { id: "category" }, el("option", { value: "" }, "All categories"));
  const categories = el(
    "span",
    { class: "field", hidden: true },
    el("label", { for: "category", class: "unseen" }, "Category"),
    category,
  );
  const found = el("p", { class: "muted" });
  const raw = heading("Results", "number");
  const { table, body } = tableOf(
    "options",
    "Options: the one that leads first, then those that may be the best, then the others",
    [
      heading("Option"),
      raw,
      heading("Estimate", "number"),
      heading("Interval"),
      heading("Behind the best", "number behind"),
      heading("Next trials", "number"),
      heading("Account against it"),
      heading(el("span", { class: "unseen" }, "Action")),
    ],
  );
  const before = el("button", { type: "button" }, "Previous");
  const next = el("button", { type: "button" }, "Next");
  const where = el("span", { class: "muted" });
  const pager = el("nav", { class: "pager", "aria-label": "Pages of options", hidden: true }, before, where, next);
  const none = el("p", { class: "empty", hidden: true }, "No option has this in its label.");
  const waiting = el("p", { class: "muted", hidden: true }, "Estimates and intervals are being computed.");
  const element = el(
    "section",
    { class: "card flush", "aria-labelledby": "options-title" },
    el(
      "div",
      { class: "tools" },
      el("h2", { id: "options-title" }, "Options"),
      el("label", { for: "find", class: "unseen" }, "Search options"),
      search,
      categories,
      found,
      waiting,
    ),
    el("div", { class: "scroll" }, table),
    none,
    pager,
  );
  let timer = 0;
  let asked = false; // whether somebody waits for what a search finds
  let shownCategories = "";

  function ask(change) {
    Object.assign(query, { after: 0 }, change);
    asked = true;
    onQuery();
  }

  search.addEventListener("input", () => {
    onSearch(search.value.trim());
    clearTimeout(timer);
    timer = setTimeout(() => ask({ search: search.value.trim() }), 150);
  });
  category.addEventListener("change", () => ask({ category: category.value }));
  before.addEventListener("click", () => ask({ after: Math.max(0, query.after - PAGE) }));
  next.addEventListener("click", () => ask({ after: query.after + PAGE }));

  function update(status) {
    showCategories(status);
    const texts = textsOf(status);
    const scale = scaleOf(status);
    const rows = status.arms.map((arm, place) => ({ arm, status, text: texts(place), scale }));
    reconcile(body, rows, ({ arm }) => arm.label, row, change);
    raw.textContent = status.arms.some((arm) => arm.hits !== null) ? "Successes" : "Results";
    none.hidden = rows.length > 0;
    table.classList.toggle("on-items", status.items !== null);
    table.hidden = rows.length === 0;
    const filtered = query.search || query.category;
    const words = filtered
      ? `${count(status.arms_found)} of ${count(status.n_arms)} options`
      : `${count(status.n_arms)} in all`;
    setText(found, words);
    if (asked) announce(filtered ? `${words} found` : `All ${things(status.n_arms, "option")}`);
    asked = false;
    waiting.hidden = !status.computing || status.arms.some((arm) => arm.estimate !== null);
    pager.hidden = status.arms_found <= PAGE;
    setText(where, `${count(query.after + 1)} to ${count(query.after + rows.length)} of ${count(status.arms_found)}`);
    before.disabled = query.after === 0;
    next.disabled = status.next === null;
    if (!rows.length && query.after > 0) ask({ after: 0 });
  }

  function showCategories(status) {
    const names = (status.categories ?? []).map((each) => each.name).sort();
    categories.hidden = names.length === 0;
    if (shownCategories === names.join("\n")) return;
    shownCategories = names.join("\n");
    category.replaceChildren(
      el("option", { value: "" }, "All categories"),
      ...names.map((each) => el("option", { value: each }, each)),
    );
    category.value = query.category;
  }

  function row({ arm }) {
    const made = el(
      "tr",
      { role: "row" },
      el(
        "th",
        { scope: "row", role: "rowheader" },
        label(arm.label),
        arm.category === null ? null : el("bdi", { dir: "auto", class: "category", title: arm.category }, arm.category),
      ),
      cell("number"),
      cell("number strong"),
      cell("interval", el("span", { class: "drawn" }), el("span", { class: "range" })),
      cell("number behind"),
      cell("number"),
      cell(
        "account",
        el("span", { class: "meter small", hidden: true }, el("span", { class: "done" })),
        el("span", { class: "said" }),
      ),
      cell("action"),
    );
    const button = el("button", { type: "button", class: "quiet", "aria-label": `Withdraw ${arm.label}` }, "Withdraw");
    button.addEventListener("click", () => onWithdraw(arm.label));
    made.lastChild.append(button);
    return made;
  }

  function change(made, { arm, status, text, scale }) {
    const [, results, estimate, interval, behind, share_, held, action] = made.children;
    made.classList.toggle("out", arm.out_at !== null || arm.withdrawn);
    made.classList.toggle("leads", arm.label === status.best);
    setText(results, text.raw);
    setText(estimate, text.estimate);
    setText(interval.lastChild, text.interval);
    setText(behind, text.behind);
    setAttribute(behind, "title", text.behind && `${text.apart}, from the items that both were tried on`);
    const leader = { at: scale?.leader ?? null, kind: "leader" };
    showInterval(interval, [arm.low, arm.estimate, arm.high], scale, leader, text.interval);
    setText(share_, status.state !== "running" || arm.omega === null ? "-" : share(arm.omega));
    setText(held.lastChild, arm.account);
    setAttribute(held.lastChild, "title", arm.account === "leads" ? LEADS : null);
    const meter = held.firstChild;
    meter.hidden = arm.lacking === null || arm.lacking <= 0 || arm.out_at !== null || arm.withdrawn;
    if (!meter.hidden) {
      const part = Math.max(0, Math.min(1, 1 - arm.lacking / Math.log(1 / status.delta)));
      meter.firstChild.style.width = `${100 * part}%`;
    }
    const button = action.firstChild;
    const reason = !mayWrite()
      ? READ_ONLY
      : arm.withdrawn
        ? "It is withdrawn."
        : ["ended", "inconsistent"].includes(status.state)
          ? "The study is over."
          : "";
    button.disabled = reason !== "";
    setAttribute(button, "title", reason || null);
    button.hidden = arm.withdrawn;
  }

  return {
    element,
    update,
    query: () => query,
    find(text) {
      search.value = text;
      onSearch(text);
      ask({ search: text });
      search.focus({ preventScroll: true });
      element.scrollIntoView({ block: "start", behavior: "auto" });
    },
  };
}

/** The cells of the table that the service writes, by name. */
function textsOf(status) {
  const { headings, rows } = status.tables.arms;
  const place = (name) => headings.indexOf(name);
  const [raw, estimate, interval] = [
    Math.max(place("raw rate"), place("results")),
    place("estimate"),
    place("interval"),
  ];
  const [behind, apart] = [place("behind the best"), place("its interval")];
  return (at) => ({
    raw: rows[at][raw],
    estimate: rows[at][estimate],
    interval: rows[at][interval],
    behind: rows[at][behind] ?? "",
    apart: rows[at][apart] ?? "",
  });
}

/** From where to where intervals are drawn, and where the leader is. */
function scaleOf(status) {
  const numbers = status.arms.flatMap((arm) => [arm.low, arm.estimate, arm.high]).filter((each) => each !== null);
  if (!numbers.length) return null;
  let [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const leader = status.arms.find((arm) => arm.label === status.best);
  return { low, high, leader: leader?.estimate ?? null };
}
