// Charts: a triangle of cells; a cell shows its beam and what fell out of it.
//
// A chart is {k: beam width, c: [[begin, end, glue, fill, scored, beam, pruned]]}
// and, for a search from left to right, stacks: 1, its cells being [0, words, 1].
// with beam and pruned lists of [text, score]. Derivations to follow through it
// are [{name, parts}], parts as `PartView` has them:
// [begin, end, glue, rank, competing, gap, kept].
"use strict";

jaxmt.chart = (source, chart, followed = []) => {
  const { h, svg } = jaxmt;
  const size = source.length;
  const step = size > 40 ? 16 : size > 24 ? 22 : 32;
  const depth = Math.max(
    ...chart.c.map(([begin, end, glue]) => (glue ? 0 : end - begin)),
    1,
  );
  const top = step + 22;
  const drawing = svg("svg", {
    width: size * step + 90,
    height: chart.stacks ? top + 24 : top + depth * step + 30,
    role: "group",
    "aria-label": "chart cells",
  });
  const state = { colour: 0, follow: followed.length ? 0 : -1, chosen: -1 };
  const panel = h(
    "div",
    { class: "panel", "aria-live": "polite" },
    h(
      "p",
      { class: "faint" },
      "Click a cell, or move with the arrow keys, to see its beam.",
    ),
  );
  const spot = ([begin, end, glue]) =>
    glue
      ? [end * step - step, 18]
      : [
          begin * step + ((end - begin - 1) * step) / 2,
          top + (depth - (end - begin)) * step,
        ];
  const finest = chart.c.map((cell) =>
    cell[5].length ? cell[5][0][1] / Math.max(cell[1] - cell[0], 1) : null,
  );
  const known = finest.filter((value) => value !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const shade = (cell, place) => {
    const share =
      state.colour === 0
        ? cell[3] / chart.k
        : finest[place] === null
          ? 0
          : (finest[place] - low) / (high - low || 1);
    return 0.06 + 0.84 * share;
  };
  const rects = chart.c.map((cell, place) => {
    const [x, y] = spot(cell);
    const name = `${cell[2] ? "glue " : ""}${cell[0]}–${cell[1]}: ${cell[3]} of ${chart.k} hypotheses`;
    const rect = svg(
      "rect",
      {
        class: "cell",
        x: x + 1,
        y: y + 1,
        width: step - 2,
        height: step - 2,
        rx: 3,
        fill: "var(--accent)",
        tabindex: place ? -1 : 0,
        role: "button",
        "aria-label": name,
        "data-cell": `${cell[0]}-${cell[1]}-${cell[2]}`,
      },
      svg("title", {}, name),
    );
    rect.addEventListener("click", () => open(place));
    rect.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        open(place);
        return;
      }
      const move = {
        ArrowLeft: [-1, -1],
        ArrowRight: [1, 1],
        ArrowUp: [0, 1],
        ArrowDown: [0, -1],
      }[event.key];
      if (!move) return;
      event.preventDefault();
      const other = chart.c.findIndex(
        (one) =>
          one[0] === cell[0] + move[0] &&
          one[1] === cell[1] + move[1] &&
          one[2] === cell[2],
      );
      if (other >= 0) {
        rects[other].focus();
        open(other);
      }
    });
    return rect;
  });
  const rings = svg("g", {});
  const rows = chart.stacks ? 0 : depth;
  const lengths = Array.from({ length: rows }, (_, n) =>
    svg(
      "text",
      {
        x: size * step + 6,
        y: top + (depth - n - 1) * step + step * 0.65,
        class: "faint",
      },
      n ? `${n + 1}` : "1 word",
    ),
  );
  drawing.append(
    svg(
      "text",
      { x: size * step + 6, y: 18 + step * 0.65, class: "faint" },
      chart.stacks ? "stacks" : "glue",
    ),
    ...lengths,
    ...rects,
    rings,
  );
  if (step > 18)
    source.forEach((word, place) =>
      drawing.append(
        svg(
          "text",
          {
            x: place * step + step / 2,
            y: chart.stacks ? top + 12 : top + depth * step + 16,
            "text-anchor": "middle",
          },
          chart.stacks
            ? String(place + 1)
            : [...word].slice(0, step > 30 ? 4 : 2).join(""),
          svg("title", {}, chart.stacks ? `${place + 1} words` : word),
        ),
      ),
    );
  const paint = () => {
    rects.forEach((rect, place) =>
      rect.setAttribute("fill-opacity", shade(chart.c[place], place)),
    );
    rings.replaceChildren();
    const own = followed[state.follow];
    if (!own) return;
    const worst = jaxmt.mostBehind(own.parts);
    for (const part of own.parts) {
      const [begin, end, glue, , , , kept] = part;
      const [x, y] = spot([begin, end, glue]);
      if (!glue && end - begin > depth) continue;
      rings.append(
        svg("rect", {
          class: `ring ${kept ? "kept" : "lost"}${part === worst ? " worst" : ""}`,
          x: x + 3,
          y: y + 3,
          width: step - 6,
          height: step - 6,
          rx: 3,
        }),
      );
    }
    jaxmt.show(summary, jaxmt.fallOut(own));
  };
  const summary = h("p", { class: "small" });
  const open = (place) => {
    state.chosen = place;
    rects.forEach((rect, other) =>
      rect.classList.toggle("chosen", other === place),
    );
    jaxmt.show(panel, jaxmt.cell(source, chart, chart.c[place], followed));
  };
  const controls = h(
    "div",
    { class: "row controls" },
    jaxmt.choice("colour", ["beam fill", "best score per word"], 0, (place) => {
      state.colour = place;
      paint();
    }),
    followed.length
      ? jaxmt.choice(
          "follow",
          followed.map((one) => one.name),
          0,
          (place) => {
            state.follow = place;
            paint();
          },
        )
      : null,
  );
  paint();
  // The cell where the first derivation is most behind is open.
  const worst = followed.length ? jaxmt.mostBehind(followed[0].parts) : null;
  const first = chart.c.findIndex(
    (cell) => worst && [0, 1, 2].every((n) => cell[n] === worst[n]),
  );
  if (first >= 0) open(first);
  return h(
    "div",
    { class: "chart" },
    controls,
    summary,
    h(
      "p",
      { class: "small faint" },
      chart.stacks
        ? "A square is a stack: hypotheses that cover that many source words, ranked by their score and the future cost of the other words. Rings follow a derivation: green parts are in their stack, red dashed ones fell out."
        : "A square is a span of the source: rows are lengths, the lowest are single words, the row on top holds what glue has joined from the left. Strong colour is a full beam, or a good score. Rings follow a derivation: green parts are in the beam, red dashed ones fell out.",
    ),
    h(
      "div",
      { class: "chart-columns" },
      h("div", { class: "chart-cells" }, drawing),
      panel,
    ),
  );
};

// The part that is most behind the best of its cell, if any is.
jaxmt.mostBehind = (parts) => {
  const [most] = [...parts].sort((one, two) => (two[5] ?? 0) - (one[5] ?? 0));
  return most?.[5] > 0 ? most : undefined;
};

// Where a followed derivation fell out, and where it was most behind.
jaxmt.fallOut = ({ name, parts }) => {
  const lost = parts.filter((part) => !part[6]);
  if (!parts.length) return `${name}: no derivation`;
  const most = jaxmt.mostBehind(parts);
  const violation = most
    ? ` The largest violation (score of the beam's best less its own, thick ring) is ${most[5].toFixed(2)} at ${most[0]}–${most[1]}.`
    : "";
  if (!lost.length)
    return `${name}: all ${parts.length} parts are in the beam.${violation}`;
  const first = [...lost].sort((a, b) => a[1] - a[0] - (b[1] - b[0]))[0];
  return `${name}: ${lost.length} of ${parts.length} parts fell out, the smallest at ${first[0]}–${first[1]}.${violation}`;
};

// The beam of a cell.
jaxmt.cell = (source, chart, cell, followed) => {
  const { h } = jaxmt;
  const [begin, end, glue, fill, scored, beam, pruned] = cell;
  const best = beam.length ? beam[0][1] : 0;
  const here = followed.flatMap(({ name, parts }) =>
    parts
      .filter(
        (part) => part[0] === begin && part[1] === end && part[2] === glue,
      )
      .map((part) => ({ name, part })),
  );
  const row = (mark, text, score, kind) =>
    h(
      "tr",
      { class: kind },
      h("td", { class: "number" }, mark),
      h("td", { class: "number" }, score.toFixed(2)),
      h("td", { class: "number" }, (best - score).toFixed(2)),
      h("td", { dir: "auto" }, text || "∅"),
    );
  return [
    h(
      "h3",
      {},
      chart.stacks
        ? `Stack of ${end} covered words`
        : [
            `${glue ? "Glue " : "Cell "}${begin}–${end}: `,
            h("bdi", {}, source.slice(begin, end).join(" ")),
          ],
    ),
    h(
      "p",
      { class: "small" },
      `${fill} of ${chart.k} places filled; ${scored} candidates scored, ${Math.max(scored - fill, 0)} merged or pruned.`,
    ),
    here.map(({ name, part }) =>
      h(
        "p",
        {},
        `${name}: `,
        jaxmt.rankText(part),
        part[5] === null
          ? ""
          : `, ${Math.max(part[5], 0).toFixed(2)} behind the best`,
      ),
    ),
    h(
      "div",
      { class: "scroll" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["rank", "score", "behind", "hypothesis"].map((name, n) =>
              h("th", { class: n < 3 ? "number" : null }, name),
            ),
          ),
        ),
        h(
          "tbody",
          {},
          beam.map(([text, score], n) =>
            row(
              n + 1,
              text,
              score,
              here.some(({ part }) => part[6] && part[3] === n + 1)
                ? "here"
                : null,
            ),
          ),
          fill > beam.length
            ? h(
                "tr",
                {},
                h(
                  "td",
                  { colspan: 4, class: "faint" },
                  `${fill - beam.length} more in the beam`,
                ),
              )
            : null,
          pruned.map(([text, score]) => row("pruned", text, score, "pruned")),
        ),
      ),
    ),
  ];
};

jaxmt.components.chart = (data) =>
  jaxmt.chart(data.source, data.chart, data.followed ?? []);
