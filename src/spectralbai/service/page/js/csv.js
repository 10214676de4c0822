// CSV as text: enough of it to show the first rows; the service reads the table itself.

/** The first `most` rows of a CSV text, as lists of cells. */
export function firstRows(text, most) {
  const line = text.slice(0, 5000).split(/\r?\n/, 1)[0];
  const comma = [",", ";", "\t"].reduce((best, each) =>
    line.split(each).length > line.split(best).length ? each : best,
  );
  const rows = [];
  let row = [];
  let cell = "";
  let quoted = false;
  const source = text.replace(/^\uFEFF/, "");
  for (let at = 0; at <= source.length && rows.length < most; at += 1) {
    const sign = source[at];
    if (quoted && sign !== undefined) {
      if (sign === '"' && source[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else if (sign === '"') quoted = false;
      else cell += sign;
    } else if (sign === '"' && cell === "") quoted = true;
    else if (sign === comma || sign === "\n" || sign === undefined) {
      row.push(cell.replace(/\r$/, "").trim());
      cell = "";
      if (sign !== comma) {
        if (row.some((each) => each !== "")) rows.push(row);
        row = [];
      }
    } else cell += sign;
  }
  return rows;
}

/** How many rows of options there are, about. */
export const rowsIn = (text) => Math.max(0, text.split(/\r?\n/).filter((line) => line.trim() !== "").length - 1);

/** Whether a column holds numbers only. */
export const isNumeric = (rows, column) =>
  rows.length > 0 &&
  rows.every((row) => row[column] !== undefined && row[column] !== "" && Number.isFinite(Number(row[column])));
