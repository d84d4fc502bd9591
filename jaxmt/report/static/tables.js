// Tables that sort by any column.
"use strict";

// Returns a table of rows, an object each; columns in order of appearance.
jaxmt.table = (rows, options = {}) => {
  const columns = options.columns ?? [
    ...new Set(rows.flatMap((row) => Object.keys(row))),
  ];
  const { h } = jaxmt;
  const numeric = columns.map((name) =>
    rows.every(
      (row) =>
        row[name] === null ||
        row[name] === undefined ||
        typeof row[name] === "number",
    ),
  );
  const cell = (row, place) => {
    const value = row[columns[place]];
    const shown =
      value instanceof Node ? value : jaxmt.number(value, options.digits ?? 3);
    return h(
      "td",
      {
        class: numeric[place] ? "number" : null,
        dir: numeric[place] ? null : "auto",
      },
      shown,
    );
  };
  const table = h(
    "table",
    {},
    options.caption
      ? h("caption", { class: "faint small" }, options.caption)
      : null,
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        columns.map((name, place) =>
          h(
            "th",
            { class: numeric[place] ? "number" : null },
            name.replaceAll("_", " "),
          ),
        ),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map((row) =>
        h(
          "tr",
          {},
          columns.map((_, place) => cell(row, place)),
        ),
      ),
    ),
  );
  return h(
    "div",
    { class: "scroll" },
    options.sort === false ? table : jaxmt.sortable(table),
  );
};

// The number a cell begins with, or its text in lower case.
jaxmt.sortKey = (cell) => {
  const text = cell ? cell.textContent.trim() : "";
  const found = text
    .replace(/,/g, "")
    .replace("−", "-")
    .match(/^[-+]?\d+(\.\d+)?(e[-+]?\d+)?/i);
  return found ? Number(found[0]) : text === "" ? null : text.toLowerCase();
};

// Makes the columns of any table sort its rows; empty cells come last.
jaxmt.sortable = (table) => {
  const heads = [...table.querySelectorAll("thead th")];
  const body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = jaxmt.h(
      "button",
      { type: "button", title: "sort by this column" },
      ...head.childNodes,
    );
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const keyed = [...body.rows].map((row) => [
        jaxmt.sortKey(row.cells[column]),
        row,
      ]);
      keyed.sort(([one], [two]) => {
        if (one === null || two === null)
          return (one === null) - (two === null);
        const order =
          typeof one === typeof two
            ? one < two
              ? -1
              : one > two
                ? 1
                : 0
            : typeof one === "number"
              ? -1
              : 1;
        return falling ? -order : order;
      });
      body.append(...keyed.map(([, row]) => row));
    });
  });
  return table;
};
