// Which view is shown: the part of the address after # says so.

import { readSession, session } from "./api.js";
import { createView } from "./create.js";
import { el } from "./dom.js";
import { joinView } from "./join.js";
import { listView } from "./list.js";
import { loginView, showSession } from "./login.js";
import { attempt, clearNotices, notice } from "./notices.js";
import { studyView } from "./study.js";

const main = document.getElementById("main");
let shown = null;

function view() {
  if (session.needed && session.access === "none") return loginView(start);
  const [, where = "", ...rest] = location.hash.replace(/^#/, "").split("/");
  if (where === "study" && rest.length) return studyView(decoded(rest.join("/")));
  if (where === "join" && rest.length) return joinView(decoded(rest.join("/")));
  if (where === "new") return createView();
  return listView();
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function route(first = false) {
  shown?.close();
  clearNotices();
  shown = view();
  document.title = `${shown.title} - spectralbai`;
  main.replaceChildren(shown.element);
  const now = location.hash.startsWith("#/new") ? "new" : /^#\/(study|join)/.test(location.hash) ? "study" : "list";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.route === now) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!first) {
    scrollTo(0, 0);
    // Screen readers say what has the focus: the name of the view.
    const title = main.querySelector("h1");
    title?.setAttribute("tabindex", "-1");
    (shown.focus ?? title ?? main).focus({ preventScroll: true });
  } else shown.focus?.focus();
}

async function start() {
  const well = await attempt(readSession);
  showSession(start);
  if (well) route(true);
  else
    main.replaceChildren(el("p", { class: "empty" }, "The service does not answer. Load the page again in a while."));
}

addEventListener("hashchange", () => route());
addEventListener("login-needed", async () => {
  if (session.access === "none") return;
  session.access = "none"; // several requests may be refused at once
  await start();
  if (session.access === "none") notice("The token is no longer valid. Log in with another one.");
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
start();
