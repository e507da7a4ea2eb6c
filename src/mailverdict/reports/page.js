"use strict";
// Tables that can be sorted by a click on a head, and filtered where they are long. Without this script all rows show.
const FEW = 12;
const make = (tag, text, fields) => Object.assign(document.createElement(tag), { textContent: text }, fields);
const order = new Intl.Collator("en", { numeric: true }).compare;
const valueOf = (row, at) => row.cells[at].dataset.sort ?? row.cells[at].textContent;

function sortable(table, body, heads, redraw) {
  heads.forEach((head, at) => {
    if (!head.textContent) return;
    const isNumber = head.classList.contains("mv-number");
    const button = make("button", head.textContent, { type: "button" });
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const isDown = before ? before === "ascending" : isNumber;
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      const rows = [...body.rows].sort((a, b) => order(valueOf(a, at), valueOf(b, at)) * (isDown ? -1 : 1));
      body.append(...rows);
      redraw();
    });
    head.replaceChildren(button);
  });
}

for (const table of document.querySelectorAll("table.mv-sort")) {
  const body = table.tBodies[0];
  const all = body.rows.length;
  const name = table.getAttribute("aria-label");
  const field = make("input", "", { type: "search", placeholder: "Filter", ariaLabel: `Filter: ${name}` });
  const count = make("span", "", { role: "status" });
  const more = make("button", `Show all ${all}`, { type: "button" });
  let isWhole = all <= FEW;
  const redraw = () => {
    const wanted = field.value.trim().toLowerCase();
    let found = 0;
    for (const row of body.rows) {
      const fits = !wanted || row.textContent.toLowerCase().includes(wanted);
      row.hidden = !fits || (!wanted && !isWhole && found >= FEW);
      found += fits;
    }
    const shown = wanted ? found : isWhole ? all : FEW; // printed, too: paper has the rows of the screen
    count.textContent = shown < all ? `${wanted ? "" : "The first "}${shown} of ${all}` : "";
    more.hidden = isWhole || wanted !== "";
  };
  sortable(table, body, [...table.tHead.rows[0].cells], redraw);
  if (all > FEW) {
    const tools = make("div", "", { className: "mv-tools" });
    tools.append(field, more, count);
    table.parentElement.before(tools);
    field.addEventListener("input", redraw);
    more.addEventListener("click", () => { isWhole = true; redraw(); field.focus(); });
  }
  redraw();
}
