// A few words beside the pointer.

import { el } from "./dom.js";

export function tooltip(frame) {
  const box = el("div", { class: "tooltip", hidden: true, "aria-hidden": "true" });
  frame.append(box);
  return {
    /** Shows lines at a place in the frame; a place right of its middle has them on its left. */
    show(x, y, lines) {
      box.replaceChildren(...lines);
      box.hidden = false;
      const { clientWidth: width } = frame;
      const left = x > width / 2 ? x - box.offsetWidth - 12 : x + 12;
      box.style.left = `${Math.max(4, Math.min(left, width - box.offsetWidth - 4))}px`;
      box.style.top = `${Math.max(4, Math.min(y - box.offsetHeight / 2, frame.clientHeight - box.offsetHeight - 4))}px`;
    },
    text: () => [...box.children].map((each) => each.textContent).join(" "),
    hide() {
      box.hidden = true;
    },
  };
}
