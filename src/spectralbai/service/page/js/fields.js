// Fields of forms: a label, an input, and a hint that belongs to it.

import { el } from "./dom.js";

export function field(id, text, input, hint = "") {
  input.id = id;
  input.name = id;
  if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
  const element = el(
    "div",
    { class: "field" },
    el("label", { for: id }, text),
    input,
    hint ? el("p", { class: "hint", id: `${id}-hint` }, hint) : null,
  );
  return { element, input };
}

export function number(id, text, attributes = {}, hint = "") {
  const made = field(id, text, el("input", { type: "number", inputmode: "decimal", ...attributes }), hint);
  return {
    ...made,
    number: () => (made.input.value === "" ? null : Number(made.input.value)),
    set: (value) => {
      made.input.value = value;
    },
  };
}

/** A number, or a text such as 0.5%, which is sent as it is: the service understands it. */
export function amount(id, text, attributes = {}, hint = "") {
  const input = el("input", { type: "text", inputmode: "decimal", autocomplete: "off", ...attributes });
  const made = field(id, text, input, hint);
  const given = () => made.input.value.trim();
  return {
    ...made,
    value: () => (given() === "" ? null : Number.isNaN(Number(given())) ? given() : Number(given())),
    set: (value) => {
      made.input.value = value;
    },
  };
}

export function select(id, text, choices = []) {
  const made = field(id, text, el("select", {}));
  const options = (pairs, first) => {
    const before = made.input.value;
    made.input.replaceChildren(...pairs.map(([value, words]) => el("option", { value }, words)));
    made.input.value = pairs.some(([value]) => value === before && before !== "")
      ? before
      : (first ?? pairs[0]?.[0] ?? "");
  };
  options(choices);
  return {
    ...made,
    options,
    value: () => made.input.value,
    set: (value) => {
      made.input.value = value;
    },
  };
}

export function radios(name, text, choices) {
  const inputs = choices.map(([value]) => el("input", { type: "radio", name, value, id: `${name}-${value}` }));
  const element = el(
    "div",
    { class: "choices", role: "radiogroup", "aria-label": text },
    el("p", { class: "asked", "aria-hidden": "true" }, text),
    choices.map(([value, words], at) => el("label", { class: "choice", for: `${name}-${value}` }, inputs[at], words)),
  );
  return {
    element,
    value: () => inputs.find((each) => each.checked)?.value,
    set: (value) =>
      inputs.forEach((each) => {
        each.checked = each.value === value;
      }),
  };
}

export function checkbox(name, value, checked) {
  const input = el("input", { type: "checkbox", name, value });
  input.checked = checked;
  return el("label", { class: "choice" }, input, el("bdi", { dir: "auto" }, value));
}

/** A table as text: pasted, or read from a file. */
export function tableInput(id, text, hint, accept = ".csv,text/csv,text/plain") {
  const area = el("textarea", { rows: 6, spellcheck: "false", wrap: "off", autocomplete: "off" });
  const made = field(id, text, area, hint);
  const file = el("input", {
    type: "file",
    accept,
    id: `${id}-file`,
    "aria-label": `${text}: choose a file`,
  });
  let told = () => {};
  file.addEventListener("change", async () => {
    if (!file.files.length) return;
    area.value = await file.files[0].text();
    told();
  });
  made.element.insertBefore(file, area);
  return {
    ...made,
    text: () => area.value,
    set: (value) => {
      area.value = value;
    },
    onText: (call) => {
      told = call;
    },
  };
}

export function group(title, ...children) {
  return el("fieldset", { class: "card" }, el("legend", {}, title), ...children);
}
