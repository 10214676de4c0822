// Options that join a study: an instance of all options, or a table of them; first what would change, then the change.

import { get, pathOf, post, postOnce } from "./api.js";
import { el, label } from "./dom.js";
import { group } from "./fields.js";
import { things } from "./format.js";
import { likenessPart } from "./likeness.js";
import { attempt, noticeThere } from "./notices.js";

const MOST_SHOWN = 50;
const isTable = (text) => !text.trimStart().startsWith("{");

export function joinView(name) {
  const back = `#/study/${encodeURIComponent(name)}`;
  const likeness = likenessPart({
    title: "All options: an instance (JSON) or a table (CSV)",
    hint:
      "The present options come first and in their order, then the new ones. An instance is what spectralbai " +
      "instance writes.",
    hintOfStep: "In the units of the outcomes; it must hold for the means from the beginning.",
    accept: ".json,application/json,.csv,text/csv,text/plain",
    isTable,
    onFile: () => changed(),
  });
  const { table } = likeness;
  const present = el("button", { type: "button", class: "quiet" }, "Start from the present options");
  const columns = el("div", { class: "row" }, likeness.labels.element);
  const choices = group("2. Likeness", ...likeness.choices);
  const refused = el("p", { class: "refused", role: "alert", hidden: true, dir: "auto" });
  const show = el("button", { type: "submit", class: "primary" }, "Show what changes");
  const add = el("button", { type: "button", class: "primary" });
  const plan = el("section", { class: "card plan", "aria-labelledby": "changes-title", hidden: true, tabindex: "-1" });
  const form = el(
    "form",
    { class: "create", novalidate: true },
    group("1. Options", table.element, el("p", { class: "after" }, present), likeness.preview, columns),
    choices,
    refused,
    el("p", { class: "buttons" }, show),
  );
  const element = el(
    "div",
    { class: "stack narrow-page" },
    el(
      "div",
      { class: "head" },
      el(
        "div",
        { class: "title" },
        el("p", { class: "crumb" }, el("a", { href: back }, label(name))),
        el("h1", {}, "Add options"),
      ),
    ),
    el(
      "p",
      {},
      "The race goes on, even if the study had decided; options that are out stay out. Noise and tolerance stay the " +
        "same; graph and R may differ. Options must not join because of outcomes.",
    ),
    form,
    plan,
  );
  let instance = null;

  function changed() {
    instance = null;
    plan.hidden = true;
    columns.hidden = choices.hidden = !isTable(table.text()) || !table.text().trim();
  }

  /** The noise of the study, as a request for an instance from tables says it. */
  async function noise() {
    const { instance: now } = (await get(pathOf(name))).definition;
    if (now.noise !== undefined || Array.isArray(now.sigma))
      throw new Error("The noise of this study is not the same for all options; choose an instance (JSON).");
    const { sigma, low, high, binary = false, tolerance, items = null } = now;
    const outcomes = low === undefined ? { sigma: sigma ?? 1 } : { low, high, binary };
    return { ...outcomes, tolerance, items };
  }

  async function made() {
    const text = table.text();
    if (!text.trim()) throw new Error("Choose or paste an instance or a table first.");
    if (isTable(text)) return post("/api/instances", { ...likeness.asked(), ...(await noise()) });
    try {
      return { instance: JSON.parse(text), remarks: [] };
    } catch (error) {
      throw new Error(`This is not JSON: ${error.message}.`);
    }
  }

  form.addEventListener("input", (event) => {
    likeness.onInput(event);
    changed();
  });
  present.addEventListener("click", () =>
    attempt(async () => {
      table.set(JSON.stringify((await get(pathOf(name))).definition.instance, null, 1));
      likeness.read();
      changed();
      table.input.focus();
    }),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    refused.hidden = true;
    show.disabled = true;
    try {
      const found = await made();
      showPlan(await post(pathOf(name, "/join"), { instance: found.instance, check: true }), found.remarks);
      instance = found.instance;
    } catch (error) {
      refused.textContent = error.message;
      refused.hidden = false;
    }
    show.disabled = false;
    if (!refused.hidden) show.focus();
  });

  function showPlan({ joined, changes }, remarks) {
    const more = joined.length > MOST_SHOWN ? [el("li", {}, `and ${things(joined.length - MOST_SHOWN, "other")}`)] : [];
    add.textContent = `Add ${things(joined.length, "option")}`;
    plan.replaceChildren(
      el("h2", { id: "changes-title" }, "What changes"),
      el(
        "ul",
        { class: "new-options" },
        joined.slice(0, MOST_SHOWN).map((each) => el("li", {}, label(each))),
        more,
      ),
      el(
        "ul",
        { class: "remarks" },
        [`The record will say: ${changes}.`, ...remarks].map((each) => el("li", { dir: "auto" }, each)),
      ),
      el("p", {}, "Options that have joined can only be withdrawn again."),
      el("p", { class: "buttons" }, el("a", { class: "button", href: back }, "Cancel"), add),
    );
    plan.hidden = false;
    plan.scrollIntoView({ block: "nearest" });
    add.focus({ preventScroll: true });
  }

  add.addEventListener("click", () =>
    attempt(async () => {
      if (instance === null) return;
      add.disabled = true;
      try {
        const done = await postOnce(pathOf(name, "/join"), { instance });
        noticeThere(back, `${done.changes}.`);
      } finally {
        add.disabled = false;
      }
    }),
  );

  changed();
  return { title: `Add options to ${name}`, element, close() {} };
}
