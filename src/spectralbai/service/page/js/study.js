// One study: where it stands, its options, race, graph, results and tickets.

import { download, get, mayWrite, pathOf, post, READ_ONLY, remove } from "./api.js";
import { comparePart } from "./compare.js";
import { busyButton, confirm } from "./dialogs.js";
import { el, label, sentence, setText } from "./dom.js";
import { stateOf, things } from "./format.js";
import { graphPart } from "./graph.js";
import { itemsPart } from "./items.js";
import { stateWord } from "./list.js";
import { listen, paced } from "./live.js";
import { announce, notice, noticeOfRefresh, noticeThere } from "./notices.js";
import { optionsPart } from "./options.js";
import { factsPart, progressPart } from "./progress.js";
import { racePart } from "./race.js";
import { resultsPart } from "./results.js";
import { ticketsPart } from "./tickets.js";

const EVERY = 5000; // ms after which it is said anew how long ago tickets were given
const PATIENCE = 1; // s after which the page is shown without what takes longer to compute

export function studyView(name) {
  const DELETED = `The study "${name}" was deleted.`;
  const state = el("span", { class: "state-place" });
  const answer = el("p", { class: "verdict" }, "Reading the study ...");
  const advice = el("ul", { class: "advice", hidden: true });
  const stop = el("button", { type: "button", class: "danger", disabled: true }, "Stop the study");
  const erase = el("button", { type: "button", class: "danger", disabled: true }, "Delete");
  const join = el("button", { type: "button", disabled: true }, "Add options");
  const progress = progressPart();
  const race = racePart();
  const graph = graphPart((text) => options.find(text));
  const options = optionsPart({
    onQuery: () => refresh(true),
    onSearch: (text) => graph.highlight(text),
    onWithdraw: withdraw,
  });
  const compare = comparePart({ name, onControl: () => refresh(true) });
  const results = resultsPart(name);
  const tickets = ticketsPart({ onAbandon: abandon });
  const items = itemsPart(name);
  const facts = factsPart();
  const saved = [
    busyButton("Report", report, { title: "Download the report, a page with pictures (HTML)" }),
    busyButton("Export", () => download(pathOf(name, "/export"), "study.json"), {
      title: "Download all of the study (JSON)",
    }),
    busyButton("Results", () => download(pathOf(name, "/results.csv"), "results.csv"), {
      title: "Download the results as a table (CSV)",
    }),
    busyButton("Table", () => download(pathOf(name, "/table.csv"), "table.csv"), {
      title: "Download the outcomes of options on items, a row for each option (CSV)",
    }),
  ];
  const note = mayWrite()
    ? null
    : el("p", { class: "muted", id: "read-only" }, `${READ_ONLY} Buttons that change the study are off.`);
  const body = el(
    "div",
    { class: "stack", hidden: true },
    progress.element,
    items.element,
    el("div", { class: "pair" }, race.element, graph.element),
    options.element,
    compare.element,
    el("div", { class: "pair even" }, results.element, tickets.element),
    facts.element,
  );
  const element = el(
    "article",
    { class: "stack" },
    el(
      "div",
      { class: "head" },
      el(
        "div",
        { class: "title" },
        el("p", { class: "crumb" }, el("a", { href: "#/" }, "All studies")),
        el("h1", {}, label(name), " ", state),
      ),
      el("div", { class: "actions", role: "group", "aria-label": "Downloads and actions" }, saved, join, stop, erase),
    ),
    note,
    el("section", { class: "card answer", "aria-label": "Answer" }, answer, advice),
    body,
  );
  let status = null;
  const known = { drawn: "", arms: -1, said: "" };
  let gone = false;

  function report() {
    return download(pathOf(name, "/report.html"), "report.html", { control: compare.control() });
  }

  const refresh = paced(async () => {
    if (gone) return;
    try {
      await read();
    } catch (error) {
      if (error.status === 404) left(status === null ? `There is no study "${name}".` : DELETED);
      else noticeOfRefresh(error);
    }
  });

  async function read() {
    const query = { ...options.query(), control: compare.control(), patience: PATIENCE };
    const now = await get(pathOf(name, "/status"), query);
    if (gone) return;
    status = now;
    showAnswer();
    body.hidden = false;
    saved.at(-1).hidden = status.items === null;
    progress.update(status);
    options.update(status);
    compare.update(status);
    showTickets(status.pending);
    facts.update(status);
    if (drawn() !== known.drawn) draw();
    if (status.computing) setTimeout(refresh, 200);
  }

  /** What the pictures and the list of results show. */
  const drawn = () => [status.results, status.state, status.n_arms, status.computing].join(" ");

  // Pictures of thousands of options take longer, and nobody who searches the table shall wait for them.
  const draw = paced(async () => {
    if (gone) return;
    const [at, shown] = [status, drawn()];
    try {
      const [history, told, outcomes] = await Promise.all([
        get(pathOf(name, "/history")),
        results.read(),
        at.items === null ? null : items.read(),
      ]);
      if (gone) return;
      items.update(outcomes, at);
      race.update(history, at);
      results.update(told, at);
      if (at.n_arms !== known.arms) await graph.read(name);
      graph.update(at, await everyArm(at));
      // known only now: what a lost connection cut off is read again
      Object.assign(known, { drawn: shown, arms: at.n_arms });
    } catch (error) {
      if (error.status !== 404) noticeOfRefresh(error); // the next refresh says that it was deleted
    }
  });

  /** The arms that the graph shows: those at hand, if they are all. */
  async function everyArm(at) {
    if (!graph.hasArms()) return [];
    if (at.arms.length === at.n_arms) return at.arms;
    const query = { limit: at.n_arms, order: "study", patience: PATIENCE };
    return (await get(pathOf(name, "/status"), query)).arms;
  }

  function showAnswer() {
    const word = stateOf(status);
    const labels = [status.best, ...(status.candidates ?? []).slice(0, 20)].filter((each) => each !== null);
    if (answer.textContent !== status.answer) answer.replaceChildren(...sentence(status.answer, labels));
    element.querySelector(".answer").dataset.state = word;
    if (state.dataset.state !== word) {
      state.dataset.state = word;
      state.replaceChildren(stateWord(word));
    }
    if (advice.shown !== status.advice.join("\n")) {
      advice.shown = status.advice.join("\n");
      advice.hidden = status.advice.length === 0;
      advice.replaceChildren(...status.advice.map((each) => el("li", { dir: "auto" }, each)));
    }
    const said = `${word} ${status.best} ${status.candidates?.length}`;
    if (known.said && said !== known.said) announce(status.answer);
    known.said = said;
    document.title = `${name}: ${word} - spectralbai`;
    const running = status.state === "running";
    stop.disabled = !mayWrite() || !running;
    const over =
      status.state === "ended"
        ? "The study has ended."
        : status.consistent === false || status.state === "inconsistent"
          ? "The data contradict R, so that no option can join."
          : "";
    join.disabled = !mayWrite() || over !== "";
    join.title = !mayWrite() ? READ_ONLY : over || "Let options join this study";
    erase.disabled = !mayWrite();
    erase.title = mayWrite() ? "Delete this study for good" : READ_ONLY;
    stop.title = !mayWrite() ? READ_ONLY : running ? "End this study by hand" : "It is not running.";
  }

  function left(text) {
    gone = true;
    end();
    setText(answer, text);
    body.hidden = true;
    join.disabled = stop.disabled = erase.disabled = true;
    for (const each of saved) each.disabled = true;
  }

  stop.addEventListener("click", () =>
    confirm(
      {
        title: "Stop this study?",
        body: [
          el(
            "p",
            {},
            "The study ",
            label(name),
            " ends without a decision. Workers get no more trials; results of tickets that are out " +
              "still count. It cannot be started again.",
          ),
        ],
        action: "Stop the study",
        danger: true,
      },
      async () => {
        await post(pathOf(name, "/stop"));
        notice("The study is stopped.", "done");
        refresh(true);
      },
    ),
  );

  join.addEventListener("click", () => {
    location.hash = `#/join/${encodeURIComponent(name)}`;
  });
  erase.addEventListener("click", () => {
    const told = things(status.results, "result");
    confirm(
      {
        title: "Delete this study?",
        body: [
          el(
            "p",
            {},
            "The study ",
            label(name),
            ` is deleted with ${told} and all its tickets. It cannot be restored, except from an export.`,
          ),
        ],
        action: "Delete for good",
        danger: true,
        typed: name,
      },
      async () => {
        await remove(pathOf(name));
        end();
        noticeThere("#/", `The study "${name}" is deleted, with ${told}.`);
      },
    );
  });

  function withdraw(text) {
    confirm(
      {
        title: "Withdraw this option?",
        body: [
          el("p", {}, label(text, { class: "label whole" }), " is not tried any more, and will not be the answer."),
          el(
            "p",
            {},
            "Withdraw options for reasons other than their results: out of stock, or unsafe. It cannot be undone.",
          ),
        ],
        action: "Withdraw",
        danger: true,
      },
      async () => {
        const done = await post(pathOf(name, "/withdraw"), { label: text });
        notice(done.new ? "The option is withdrawn." : "The option was withdrawn before.", "done");
        refresh(true);
      },
    );
  }

  function abandon(ticket) {
    confirm(
      {
        title: "Abandon this ticket?",
        body: [
          el(
            "p",
            {},
            "The trial of ",
            label(ticket.label, { class: "label whole" }),
            ticket.worker ? " by " : "",
            ticket.worker ? el("bdi", { dir: "auto" }, ticket.worker) : "",
            " will not be done. Another one takes its place.",
          ),
        ],
        action: "Abandon",
        danger: true,
      },
      async () => {
        await post(pathOf(name, "/abandon"), { tickets: [ticket.ticket] });
        notice("The ticket is abandoned.", "done");
        refresh(true);
      },
    );
  }

  function showTickets(pending = tickets.shown()) {
    tickets.update(pending);
    progress.pending(pending.length);
  }

  const readTickets = paced(async () => {
    if (gone || status === null) return;
    try {
      const found = (await get(pathOf(name, "/tickets"))).tickets;
      if (!gone) showTickets(found);
    } catch (error) {
      noticeOfRefresh(error);
    }
  });
  const clock = setInterval(() => !document.hidden && showTickets(), EVERY);
  const stopListening = listen(
    pathOf(name, "/events"),
    () => refresh(),
    () => left(DELETED),
    () => readTickets(),
  );
  let ended = false;
  function end() {
    if (ended) return;
    ended = true;
    clearInterval(clock);
    stopListening();
    race.close();
    items.close();
  }
  refresh();
  return {
    title: name,
    element,
    close() {
      gone = true;
      end();
    },
  };
}
