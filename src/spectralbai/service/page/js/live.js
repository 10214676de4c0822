// Server-sent events: who shows something is told when it has changed, and people when the connection is lost.

import { setText } from "./dom.js";

const LONGEST = 15_000;

function show(state) {
  const link = document.getElementById("link");
  link.dataset.state = state;
  setText(link, { live: "Live", lost: "Connection lost, trying again", off: "", wait: "Connecting" }[state]);
}

/** Listens at a path; returns a function that ends it. A page that nobody sees does not listen. Where nothing has
 * changed but tickets, `onTickets` is called in place of `onChange`. */
export function listen(path, onChange, onDeleted = () => {}, onTickets = () => {}) {
  const last = new Map();
  let source = null;
  let timer = 0;
  let wait = 1000;
  let over = false;

  function open() {
    clearTimeout(timer);
    if (over || document.hidden || source !== null) return;
    source = new EventSource(path);
    source.addEventListener("open", () => {
      wait = 1000;
      show("live");
      onChange(); // what happened meanwhile
    });
    source.addEventListener("study", (event) => {
      const { study, folded, results, state } = JSON.parse(event.data);
      const known = `${folded} ${results} ${state}`;
      const same = last.get(study) === known; // then only tickets have changed
      last.set(study, known);
      (same ? onTickets : onChange)();
    });
    source.addEventListener("deleted", (event) => onDeleted(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      show("lost");
      if (source?.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
      close();
      onChange(); // what is refused there is refused here, in words
      timer = setTimeout(open, wait);
      wait = Math.min(2 * wait, LONGEST);
    });
  }

  function close() {
    source?.close();
    source = null;
  }

  function onVisibility() {
    if (document.hidden) close();
    else open();
  }

  show("wait");
  document.addEventListener("visibilitychange", onVisibility);
  open();
  return () => {
    over = true;
    clearTimeout(timer);
    close();
    document.removeEventListener("visibilitychange", onVisibility);
    show("off");
  };
}

/** Returns a function that calls `work` soon: never twice at once, not more often than every `pause` ms, and resting
 * twice as long as it takes, so that a page of a large study does not keep the service busy. Who is in a hurry, since
 * somebody waits, need not wait for the rest to end. */
export function paced(work, pause = 800) {
  let running = false;
  let again = false;
  let hurried = false;
  let wake = () => {};
  return async function run(hurry = false) {
    if (running) {
      again = true;
      hurried ||= hurry;
      if (hurry) wake();
      return;
    }
    running = true;
    do {
      again = false;
      hurried = false;
      const begun = performance.now();
      await work();
      const rest = Math.max(pause, 2 * (performance.now() - begun));
      if (!hurried)
        await new Promise((done) => {
          wake = done;
          setTimeout(done, rest);
        });
    } while (again);
    running = false;
  };
}
