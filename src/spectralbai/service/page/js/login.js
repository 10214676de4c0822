// A token is needed: the form that asks for it, and the way out.

import { post, readSession, session } from "./api.js";
import { el } from "./dom.js";
import { attempt } from "./notices.js";

export function showSession(onChange) {
  const place = document.getElementById("session");
  if (!session.needed || session.access === "none") {
    place.replaceChildren();
    return;
  }
  const who = `${session.label || "token"}, ${session.access}`;
  const out = el("button", { type: "button", class: "quiet" }, "Log out");
  out.addEventListener("click", () =>
    attempt(async () => {
      await post("/api/logout");
      await readSession();
      onChange();
    }),
  );
  place.replaceChildren(el("bdi", { class: "who", title: who }, who), out);
}

export function loginView(onChange) {
  const refused = el("p", { class: "refused", role: "alert", hidden: true });
  const field = el("input", {
    id: "token",
    type: "password",
    name: "token",
    autocomplete: "current-password",
    required: true,
    spellcheck: "false",
  });
  const form = el(
    "form",
    { class: "card login" },
    el("h1", {}, "Log in"),
    el(
      "p",
      {},
      "This service needs a token. Who runs it makes one with ",
      el("code", {}, "spectralbai serve token create"),
      ".",
    ),
    el("label", { for: "token" }, "Token"),
    field,
    refused,
    el("p", { class: "buttons" }, el("button", { type: "submit", class: "primary" }, "Log in")),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await post("/api/login", { token: field.value });
      await readSession();
      onChange();
    } catch (error) {
      refused.textContent = error.message;
      refused.hidden = false;
      field.select();
    }
  });
  return { title: "Log in", element: form, focus: field, close() {} };
}
