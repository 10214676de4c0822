// Elements. Text is always set as text: labels and names are data.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, call] of Object.entries(value)) element.addEventListener(event, call);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** A table with a caption for screen readers; its rows are added to `body`. */
export function tableOf(kind, caption, headings) {
  const body = el("tbody", { role: "rowgroup" });
  const table = el(
    "table",
    { class: kind, role: "table" },
    el("caption", { class: "unseen" }, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, headings)),
    body,
  );
  return { table, body };
}

export function heading(text, kind = null) {
  return el("th", { scope: "col", role: "columnheader", class: kind }, text);
}

export function cell(kind, ...children) {
  return el("td", { role: "cell", class: kind }, ...children);
}

/** A label: kept apart from the direction of the text around it, and shown in full when pointed at. */
export function label(text, attributes = {}) {
  return el("bdi", { dir: "auto", class: "label", title: text, ...attributes }, text === "" ? "(no name)" : text);
}

/** A sentence in which these labels, in quotation marks, keep their own direction. */
export function sentence(text, labels = []) {
  const parts = [text];
  for (const each of labels) {
    const quoted = `"${each}"`;
    for (let at = 0; at < parts.length; at += 1) {
      if (typeof parts[at] !== "string" || !parts[at].includes(quoted)) continue;
      const [before, ...after] = parts[at].split(quoted);
      parts.splice(at, 1, before, '"', el("bdi", { dir: "auto" }, each), '"', after.join(quoted));
      at += 3;
    }
  }
  return parts;
}

/** Sets text only if it differs, so that nothing flickers and selections last. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
  if (value === null || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

/** Makes the children of `parent` those of `items`, in order; elements of the same key are kept and updated. */
export function reconcile(parent, items, key, make, update) {
  const known = parent.keyed ?? new Map();
  const kept = new Map();
  let place = parent.firstChild;
  for (const item of items) {
    const id = key(item);
    const element = known.get(id) ?? make(item);
    kept.set(id, element);
    update?.(element, item);
    if (element === place) place = place.nextSibling;
    else if (element.parentNode === parent && element.contains(document.activeElement)) {
      while (place !== element) {
        // the one with the focus stays where it is; others move around it
        const next = place.nextSibling;
        parent.append(place);
        place = next;
      }
      place = element.nextSibling;
    } else parent.insertBefore(element, place);
  }
  for (const [id, element] of known) if (!kept.has(id)) element.remove();
  parent.keyed = kept;
}
