for (const part of document.querySelectorAll(".paged")) {
  const data = JSON.parse(part.querySelector("script").textContent);
  const controls = part.querySelector(".controls"), body = part.querySelector("tbody");
  const search = controls.querySelector("input"), kind = controls.querySelector("select");
  const [back, next] = controls.querySelectorAll("button"), where = controls.querySelector(".where");
  const cell = (column, row) => Array.isArray(column) ? column[row] : column.different[column.which[row]];
  const first = data.columns[0], total = data.total;
  const words = Array.from({length: total}, (_, row) => cell(first, row).toLowerCase());
  const number = new Intl.NumberFormat("en");
  let found = [], from = 0;
  const show = () => {
    const shown = found.slice(from, from + data.rows);
    body.replaceChildren(...shown.map(row => {
      const line = document.createElement("tr");
      data.columns.forEach((column, place) => {
        const here = document.createElement("td");
        here.textContent = cell(column, row);
        here.style.textAlign = place ? "right" : "left";
        line.append(here);
      });
      return line;
    }));
    back.disabled = from === 0;
    next.disabled = from + data.rows >= found.length;
    where.textContent = found.length
      ? `${number.format(from + 1)} to ${number.format(from + shown.length)} of ${number.format(found.length)}`
      : "none found";
  };
  const look = () => {
    const text = search.value.trim().toLowerCase(), chosen = kind ? kind.value : "";
    found = [];
    for (let row = 0; row < total; row++)
      if ((chosen === "" || data.kinds.which[row] === +chosen) && words[row].includes(text)) found.push(row);
    from = 0;
    show();
  };
  const turn = step => { from += step * data.rows; show(); };
  search.addEventListener("input", look);
  if (kind) kind.addEventListener("change", look);
  back.addEventListener("click", () => turn(-1));
  next.addEventListener("click", () => turn(1));
  controls.hidden = false;
  look();
}
