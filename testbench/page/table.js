// Tables that sort by a click, or the Enter key, on a column's title.

/**
 * `columns`: {title, value(row), show(row), number, hint, mark(row)}; `value` is what is sorted,
 * `show` the text, `mark` a class of the cell. Sorts by column `order` first, if there is one, the
 * largest on top.
 */
function sortedTable(columns, rows, order) {
  const head = element("tr");
  const body = element("tbody");
  const cells = columns.map((column) => {
    const cell = element("th", "sorts" + (column.number ? " number" : ""), column.title);
    if (column.hint) cell.title = column.hint;
    cell.tabIndex = 0;
    head.append(cell);
    return cell;
  });
  const fill = (sorted) => body.replaceChildren(...sorted.map((row) => {
    const line = element("tr");
    for (const column of columns) {
      const text = (column.show || column.value)(row);
      let name = column.number ? "number" : "text";
      if (column.mark) name += " " + column.mark(row);
      line.append(element("td", name, text === null || text === undefined ? "-" : String(text)));
    }
    return line;
  }));
  const sort = (index, up) => {
    const column = columns[index];
    const key = (row) => {
      const value = column.value(row);
      return value === null || value === undefined || Number.isNaN(value) ? -Infinity : value;
    };
    const sorted = [...rows].sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
    });
    cells.forEach((cell, i) => i === index ?
        cell.setAttribute("aria-sort", up ? "ascending" : "descending") :
        cell.removeAttribute("aria-sort"));
    fill(sorted);
  };
  cells.forEach((cell, index) => {
    const turn = () => {
      const last = cell.getAttribute("aria-sort");
      sort(index, last ? last === "descending" : !columns[index].number);
    };
    cell.addEventListener("click", turn);
    cell.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        turn();
      }
    });
  });
  fill(rows);
  if (order !== undefined) sort(order, false);
  return element("div", "wide", element("table", "", element("thead", "", head), body));
}

/** Two columns of label and value. */
function factTable(facts) {
  const body = element("tbody");
  for (const [label, value] of facts) {
    body.append(element("tr", "", element("td", "text", label),
                        element("td", "number", value === null ? "-" : String(value))));
  }
  return element("table", "", body);
}
