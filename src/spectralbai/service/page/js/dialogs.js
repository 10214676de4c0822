// Questions before something is done that cannot be undone.

import { el } from "./dom.js";
import { attempt } from "./notices.js";

/** Asks; if the answer is yes, does `work` while the dialog is open, and says in it what was refused. If `typed` is
 * given, it must be typed first. */
export function confirm({ title, body, action, danger = false, focus = null, typed = null }, work) {
  const opener = document.activeElement;
  const yes = el("button", { type: "submit", class: danger ? "danger" : "primary" }, action);
  const no = el("button", { type: "button" }, "Cancel");
  const refused = el("p", { class: "refused", role: "alert", hidden: true, dir: "auto" });
  const heading = el("h2", { id: "dialog-title" }, title);
  const field = el("input", { type: "text", id: "typed", autocomplete: "off", spellcheck: "false", dir: "auto" });
  const asked = el("div", { class: "field" }, el("label", { for: "typed" }, "Type its name to confirm"), field);
  const form = el(
    "form",
    { method: "dialog" },
    heading,
    el("div", { id: "dialog-body", class: "dialog-body" }, body),
    typed === null ? null : asked,
    refused, el("p", { class: "buttons" }, no, yes),
  );
  const ready = () => typed === null || field.value.trim() === typed.trim();
  const dialog = el("dialog", { "aria-labelledby": "dialog-title", "aria-describedby": "dialog-body" }, form);
  no.addEventListener("click", () => dialog.close());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!ready()) return;
    yes.disabled = true;
    try {
      await work();
      dialog.close();
    } catch (error) {
      refused.textContent = error.message;
      refused.hidden = false;
      yes.disabled = false;
    }
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (!opener?.isConnected) document.getElementById("main").focus(); // if it is there, the browser has done so
  });
  yes.disabled = !ready();
  field.addEventListener("input", () => {
    yes.disabled = !ready();
  });
  document.body.append(dialog);
  dialog.showModal();
  (focus ?? (typed === null ? no : field)).focus();
}

/** A button that does something at once, and cannot be pressed meanwhile. */
export function busyButton(text, work, attributes = {}) {
  const button = el("button", { type: "button", ...attributes }, text);
  button.addEventListener("click", async () => {
    button.disabled = true;
    button.setAttribute("aria-busy", "true");
    await attempt(work);
    button.removeAttribute("aria-busy");
    button.disabled = false;
  });
  return button;
}
