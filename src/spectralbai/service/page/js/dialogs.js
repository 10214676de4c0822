// Questions before something is done that cannot be undone.

import { el } from "./dom.js";
import { attempt } from "./notices.js";

/** Asks; if the answer is yes, does `work` while the dialog is open, and says in it what was refused. */
export function confirm({ title, body, action, danger = false }, work) {
  const opener = document.activeElement;
  const yes = el("button", { type: "submit", class: danger ? "danger" : "primary" }, action);
  const no = el("button", { type: "button" }, "Cancel");
  const refused = el("p", { class: "refused", role: "alert", hidden: true, dir: "auto" });
  const heading = el("h2", { id: "dialog-title" }, title);
  const form = el("form", { method: "dialog" }, heading, ...body, refused, el("p", { class: "buttons" }, no, yes));
  const dialog = el("dialog", { "aria-labelledby": "dialog-title" }, form);
  no.addEventListener("click", () => dialog.close());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
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
    if (opener?.isConnected) opener.focus();
    else document.getElementById("main").focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  no.focus();
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
