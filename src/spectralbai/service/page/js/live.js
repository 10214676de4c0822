// Server-sent events: who shows something is told when it has changed, and people when the connection is lost.

import { setText } from "./dom.js";

const LONGEST = 15_000;

function show(state) {
  const link = document.getElementById("link");
  link.dataset.state = state;
  setText(link, { live: "Live", lost: "Connection lost, trying again", off: "", wait: "Connecting" }[state]);
}

/** Listens at a path; returns a function that ends it. A page that nobody sees does not listen. */
export function listen(path, onChange, onDeleted = () => {}) {
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
      onChange(null); // what happened meanwhile
    });
    source.addEventListener("study", (event) => onChange(JSON.parse(event.data)));
    source.addEventListener("deleted", (event) => onDeleted(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      show("lost");
      if (source?.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
      close();
      onChange(null); // what is refused there is refused here, in words
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

/** Returns a function that calls `work` soon: never twice at once, and not more often than every `pause` ms. */
export function paced(work, pause = 800) {
  let running = false;
  let again = false;
  return async function run() {
    if (running) {
      again = true;
      return;
    }
    running = true;
    do {
      again = false;
      await work();
      if (again) await new Promise((done) => setTimeout(done, pause));
    } while (again);
    running = false;
  };
}
