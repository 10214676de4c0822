// What went wrong, or was done, in words, where screen readers hear it.

import { el } from "./dom.js";

const SECONDS = 12;

export function notice(text, kind = "error") {
  const region = document.getElementById("notices");
  for (const old of region.querySelectorAll("p")) if (old.firstChild.textContent === text) old.remove();
  const close = el("button", { type: "button", class: "quiet", "aria-label": "Close this message" }, "Close");
  const line = el("p", { class: `notice ${kind}` }, el("span", { dir: "auto" }, text), close);
  close.addEventListener("click", () => line.remove());
  region.append(line);
  if (kind !== "error") setTimeout(() => line.remove(), SECONDS * 1000);
}

/** Goes to another view, and says there what was done. */
export function noticeThere(hash, text) {
  addEventListener("hashchange", () => notice(text, "done"), { once: true }); // after the view of that address
  location.hash = hash;
}

export function clearNotices() {
  document.getElementById("notices").replaceChildren();
}

/** Says something to screen readers only. */
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}

/** Says why the page could not be refreshed; that the service cannot be reached is said at the top already. */
export function noticeOfRefresh(error) {
  if (error.name !== "AbortError" && error.status !== 401 && error.status !== 0) notice(error.message);
}

/** Calls `work`; what it refuses is shown. Returns whether all went well. */
export async function attempt(work) {
  try {
    await work();
    return true;
  } catch (error) {
    if (error.name !== "AbortError" && error.status !== 401) notice(error.message);
    return false;
  }
}
