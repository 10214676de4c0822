// The list of studies.

import { get, mayWrite, pathOf } from "./api.js";
import { el, heading, label, reconcile, setAttribute, setText, tableOf } from "./dom.js";
import { apart, count, date, things } from "./format.js";
import { importStudy } from "./import.js";
import { listen, paced } from "./live.js";
import { noticeOfRefresh } from "./notices.js";
import { sparkline } from "./sparkline.js";

const PAGE = 1000;
const MOST_ROWS = 200;
const HEADINGS = ["Study", "State", "Options", "Results", "Best so far", "Progress", "Created"];
const NUMBERS = new Set(["Options", "Results"]);

/** What a state looks like: a word, with a mark whose colour says the same. */
export function stateWord(state) {
  return el("span", { class: "state", "data-state": state }, state);
}

export function listView() {
  const search = el("input", { type: "search", id: "search", placeholder: "Search by name or best option" });
  const headings = HEADINGS.map((text) => heading(text, NUMBERS.has(text) ? "number" : null));
  const { table, body } = tableOf("studies", "Studies, newest first", headings);
  const about = el("p", { class: "muted", role: "status" });
  const empty = el("div", { class: "empty", hidden: true });
  const tools = el("div", { class: "tools" }, el("label", { for: "search", class: "unseen" }, "Search"), search, about);
  const frame = el("div", { class: "card flush", hidden: true }, el("div", { class: "scroll" }, table));
  const create = el("div", { class: "actions" }, importButton(), newStudy());
  const element = el(
    "div",
    {},
    el("div", { class: "head" }, el("h1", {}, "Studies"), mayWrite() ? create : null),
    tools,
    frame,
    empty,
  );
  let studies = [];
  let over = false;
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      entry.target.visible = entry.isIntersecting;
      if (entry.isIntersecting) draw(entry.target);
    }
  });

  const refresh = paced(async () => {
    try {
      const found = [];
      for (let after = null; ;) {
        const page = await get("/api/studies", { limit: PAGE, after });
        found.push(...page.studies);
        after = page.next;
        if (after === null) break;
      }
      studies = found.reverse();
      if (!over) show();
    } catch (error) {
      noticeOfRefresh(error);
    }
  }, 1500);

  function show() {
    const wanted = search.value.trim().toLowerCase();
    const found = studies.filter((each) => `${each.name}\n${each.best ?? ""}`.toLowerCase().includes(wanted));
    const shown = found.slice(0, MOST_ROWS);
    frame.hidden = shown.length === 0;
    tools.hidden = studies.length === 0;
    empty.hidden = shown.length > 0;
    if (!shown.length) empty.replaceChildren(...nothing(wanted !== "" && studies.length > 0));
    const more = found.length > shown.length ? `, of which ${count(shown.length)} are shown` : "";
    setText(about, wanted ? `${things(found.length, "study", "studies")} found${more}` : counted(studies) + more);
    reconcile(body, shown, (each) => each.name, row, update);
  }

  function row(each) {
    const made = el(
      "tr",
      { role: "row" },
      el(
        "th",
        { scope: "row", role: "rowheader" },
        el("a", { href: `#/study/${encodeURIComponent(each.name)}` }, label(each.name)),
      ),
      ...HEADINGS.slice(1).map((text) =>
        el("td", { role: "cell", class: NUMBERS.has(text) ? "number" : null, "data-heading": text }),
      ),
    );
    seen.observe(made);
    return made;
  }

  function update(made, each) {
    const [, state, options, results, best, , created] = made.children;
    if (state.dataset.state !== each.state) {
      state.dataset.state = each.state;
      state.replaceChildren(stateWord(each.state));
    }
    setAttribute(state, "title", each.damage ?? "");
    setText(options, count(each.n_arms));
    setText(results, count(each.results));
    setAttribute(results, "data-unit", each.results === 1 ? "result" : "results");
    const shownBest = each.best ?? "";
    if (best.shown !== shownBest) {
      best.shown = shownBest;
      best.replaceChildren(each.best === null ? el("span", { class: "muted" }, "-") : label(each.best));
    }
    setText(created, apart(each.created));
    setAttribute(created, "title", date(each.created));
    made.wanted = { name: each.name, results: each.results };
    if (made.visible) draw(made);
  }

  /** Draws rows one after the other: each may have the service read a whole study. */
  const draw = (made) => {
    if (made.drawn === made.wanted.results) return;
    waiting.add(made);
    drawAll();
  };
  const waiting = new Set();
  const drawAll = paced(async () => {
    for (const made of waiting) {
      waiting.delete(made);
      if (over || !made.visible || !made.isConnected) continue;
      if (made.querySelector('[data-state="damaged"]')) continue;
      const { name, results } = made.wanted;
      made.drawn = results;
      try {
        made.children[5].replaceChildren(sparkline(await get(pathOf(name, "/history"), { limit: 40 }), results));
      } catch {
        // deleted meanwhile, say; the list itself says so
      }
    }
  }, 100);

  search.addEventListener("input", show);
  const clock = setInterval(() => studies.length && show(), 30_000);
  const stop = listen(
    "/api/events",
    () => refresh(),
    () => refresh(),
  );
  refresh();
  return {
    title: "Studies",
    element,
    close() {
      over = true;
      stop();
      seen.disconnect();
      clearInterval(clock);
    },
  };
}

const newStudy = () => el("a", { class: "button primary", href: "#/new" }, "New study");

function importButton() {
  const button = el("button", { type: "button", title: "Restore an exported study (JSON)" }, "Import");
  button.addEventListener("click", importStudy);
  return button;
}

function counted(studies) {
  const running = studies.filter((each) => each.state === "running").length;
  return `${things(studies.length, "study", "studies")}, ${count(running)} running`;
}

function nothing(searched) {
  if (searched) return [el("p", {}, "No study has this in its name or best option.")];
  return [
    el("h2", {}, "No studies yet"),
    el(
      "p",
      {},
      "A study finds the best of many related options with few trials. Make one of a table of options, or " +
        "on the command line with ",
      el("code", {}, "spectralbai study create"),
      ".",
    ),
    mayWrite() ? el("p", { class: "actions" }, newStudy(), importButton()) : null,
  ].filter((each) => each !== null);
}
