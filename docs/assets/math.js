// Shows the formulas that pymdownx.arithmatex has marked. The number of an equation stands beside it, not inside, so
// that a wide equation can be scrolled on a narrow screen.
document.addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll(".arithmatex")) {
    const display = place.tagName === "DIV";
    let source = place.textContent.trim().replace(/^\\[([]/, "").replace(/\\[)\]]$/, "");
    const tag = source.match(/\\tag\{([^}]*)\}/);
    source = source.replace(/\\tag\{[^}]*\}/, "");
    place.textContent = "";
    const formula = place.appendChild(document.createElement("span"));
    formula.className = "formula";
    katex.render(source, formula, { displayMode: display, throwOnError: false });
    if (tag) {
      const number = place.appendChild(document.createElement("a"));
      number.className = "number";
      number.href = `#${place.id}`;
      number.textContent = `(${tag[1]})`;
    }
  }
  // Formulas have changed the height of the page: go to the place again that was asked for.
  const wanted = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (wanted) wanted.scrollIntoView();
});
