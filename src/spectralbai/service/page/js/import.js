// A study from an export, under its old name or another.

import { postOnce } from "./api.js";
import { confirm } from "./dialogs.js";
import { el } from "./dom.js";
import { field } from "./fields.js";
import { noticeThere } from "./notices.js";

export function importStudy() {
  const file = field(
    "import-file",
    "Exported study (JSON)",
    el("input", { type: "file", accept: ".json,application/json" }),
    "The file that Export or spectralbai study export writes.",
  );
  const name = field(
    "import-name",
    "Name of the study",
    el("input", { type: "text", autocomplete: "off", dir: "auto" }),
    "Empty: its old name.",
  );
  confirm(
    {
      title: "Import a study",
      body: [file.element, name.element],
      action: "Import",
      focus: file.input,
    },
    async () => {
      const [chosen] = file.input.files;
      if (chosen === undefined) throw new Error("Choose a file first.");
      const study = await postOnce("/api/imports", {
        document: read(await chosen.text()),
        name: name.input.value.trim() || null,
      });
      noticeThere(`#/study/${encodeURIComponent(study.name)}`, "The study is restored.");
    },
  );
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`This file is not JSON: ${error.message}.`);
  }
}
