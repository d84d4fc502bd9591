// Alignment matrices, lattices, dependency trees, constituency trees.
"use strict";

// A matrix of word links, one letter-free mark for each layer of links.
jaxmt.alignment = ({ source, target, layers }) => {
  const { h } = jaxmt;
  const linked = new Map();
  layers.forEach(([, links], layer) =>
    links.forEach(([one, two]) =>
      linked.set(`${one} ${two}`, [
        ...(linked.get(`${one} ${two}`) ?? []),
        layer,
      ]),
    ),
  );
  const cell = (one, two) => {
    const own = linked.get(`${one} ${two}`) ?? [];
    const marks = own.map((layer) =>
      h(
        "span",
        { style: { color: jaxmt.colour(layer) } },
        ["■", "◆", "●"][layer % 3],
      ),
    );
    return h(
      "td",
      {
        "data-s": one,
        "data-t": two,
        title: own.length
          ? `${source[one]} – ${target[two]}: ${own.map((layer) => layers[layer][0]).join(", ")}`
          : null,
      },
      marks,
    );
  };
  const table = h(
    "table",
    { class: "matrix" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", {}),
        target.map((word) => h("th", {}, word)),
      ),
    ),
    h(
      "tbody",
      {},
      source.map((word, one) =>
        h(
          "tr",
          {},
          h("th", { dir: "auto" }, word),
          target.map((_, two) => cell(one, two)),
        ),
      ),
    ),
  );
  table.addEventListener("mouseover", (event) => {
    const at = event.target.closest?.("td");
    for (const other of table.querySelectorAll("td"))
      other.classList.toggle(
        "hot",
        Boolean(at) &&
          (other.dataset.s === at.dataset.s ||
            other.dataset.t === at.dataset.t),
      );
  });
  return h(
    "div",
    { class: "scroll" },
    layers.length > 1 ? jaxmt.legend(layers.map(([name]) => name)) : null,
    table,
  );
};

// A lattice: states from left to right, edges as arcs, the best path marked.
jaxmt.lattice = ({ states, edges, best, words = [], hidden = 0 }) => {
  const { h, svg } = jaxmt;
  const step = Math.max(
    70,
    ...edges.map(([one, two, text]) => (7.5 * text.length + 24) / (two - one)),
  );
  const shown = Math.min(step, 190);
  const chosen = new Set(best);
  // Edges between the same states stand above each other, long ones highest.
  const levels = [];
  const order = edges
    .map((_, place) => place)
    .sort(
      (one, two) =>
        edges[one][1] - edges[one][0] - (edges[two][1] - edges[two][0]) ||
        chosen.has(two) - chosen.has(one) ||
        edges[two][3] - edges[one][3],
    );
  const level = new Array(edges.length).fill(0);
  for (const place of order) {
    const [from, to] = edges[place];
    let at = 0;
    while ((levels[at] ??= []).some(([a, b]) => from < b && a < to)) at++;
    levels[at].push([from, to]);
    level[place] = at;
  }
  const height = levels.length * 26 + 40;
  const x = (state) => 20 + state * shown;
  const drawing = svg("svg", {
    width: 40 + (states.length - 1) * shown,
    height,
    role: "img",
    "aria-label": "lattice",
  });
  edges.forEach(([from, to, text, score], place) => {
    const y = height - 40 - level[place] * 26;
    const title = `${text || "∅"}  ${jaxmt.number(score, 3)}  (${states[from]} to ${states[to]})`;
    const room = Math.floor(((to - from) * shown - 18) / 7);
    drawing.append(
      svg(
        "path",
        {
          class: chosen.has(place) ? "best" : null,
          d: `M${x(from) + 4} ${y}H${x(to) - 4}m-5 -4l5 4l-5 4`,
        },
        svg("title", {}, title),
      ),
      svg(
        "text",
        {
          x: (x(from) + x(to)) / 2,
          y: y - 5,
          "text-anchor": "middle",
          class: chosen.has(place) ? null : "faint",
        },
        text.length > room
          ? `${text.slice(0, Math.max(room - 1, 1))}…`
          : text || "∅",
        svg("title", {}, title),
      ),
    );
  });
  states.forEach((name, state) =>
    drawing.append(
      svg("circle", {
        cx: x(state),
        cy: height - 18,
        r: 4,
        fill: "var(--accent)",
      }),
      svg(
        "text",
        { x: x(state), y: height - 3, "text-anchor": "middle", class: "faint" },
        name,
      ),
    ),
  );
  words.forEach((word, place) =>
    drawing.append(
      svg(
        "text",
        {
          x: (x(place) + x(place + 1)) / 2,
          y: height - 14,
          "text-anchor": "middle",
        },
        word.length > shown / 8 ? `${word.slice(0, shown / 8)}…` : word,
        svg("title", {}, word),
      ),
    ),
  );
  const note = hidden
    ? h("p", { class: "small faint" }, `${hidden} more, with lower scores`)
    : null;
  return h("div", {}, h("div", { class: "graph scroll" }, drawing), note);
};

// Dependency trees as arcs over words; the first tree above, arcs that it does
// not share with the second one marked as wrong.
jaxmt.dependency = ({ words, tags, trees }) => {
  const { h, svg } = jaxmt;
  const gap = words.map(
    (word, place) =>
      Math.max(9 * [...word].length, 8 * (tags[place] ?? "").length, 30) + 14,
  );
  const middle = [];
  gap.reduce((left, width, place) => {
    middle[place] = left + width / 2;
    return left + width;
  }, 10);
  const [name, heads, labels] = trees[0];
  const gold = trees[1]?.[1];
  const reach = heads.map((head, place) =>
    head < 0 ? 0 : Math.abs(head - place),
  );
  const tall = 26 + 15 * Math.max(...reach, 1);
  const width = gap.reduce((sum, one) => sum + one, 20);
  const drawing = svg("svg", {
    width,
    height: tall + 46,
    role: "img",
    "aria-label": `dependency tree ${name}`,
  });
  heads.forEach((head, place) => {
    const wrong = gold && gold[place] !== head;
    const style = wrong ? "wrong" : null;
    const text = labels[place] ?? "";
    if (head < 0) {
      drawing.append(
        svg("path", {
          class: style,
          d: `M${middle[place]} 4V${tall}m-4 -6l4 6l4 -6`,
        }),
        svg(
          "text",
          { x: middle[place] + 5, y: 14, class: "faint" },
          text || "root",
        ),
      );
      return;
    }
    const y = tall - 12 - 15 * reach[place];
    const side = head < place ? 6 : -6;
    drawing.append(
      svg(
        "path",
        {
          class: style,
          d: `M${middle[head] + side} ${tall}C${middle[head] + side} ${y},${middle[place]} ${y},${middle[place]} ${tall}m-4 -6l4 6l4 -6`,
        },
        svg(
          "title",
          {},
          `${words[head]} → ${words[place]}${text ? `: ${text}` : ""}${wrong ? `; ${trees[1][0]}: ${gold[place] < 0 ? "root" : words[gold[place]]}` : ""}`,
        ),
      ),
      svg(
        "text",
        {
          x: (middle[head] + middle[place]) / 2,
          y: tall - 12 - 11 * reach[place] - 4,
          "text-anchor": "middle",
          class: "faint",
        },
        text,
      ),
    );
  });
  words.forEach((word, place) =>
    drawing.append(
      svg(
        "text",
        { x: middle[place], y: tall + 18, "text-anchor": "middle" },
        word,
      ),
      svg(
        "text",
        {
          x: middle[place],
          y: tall + 36,
          "text-anchor": "middle",
          class: "faint",
        },
        tags[place] ?? "",
      ),
    ),
  );
  const note = gold
    ? h(
        "p",
        { class: "small faint" },
        `${name}; arcs that ${trees[1][0]} does not have are dashed: ${heads.filter((head, place) => head !== gold[place]).length} of ${heads.length}`,
      )
    : null;
  return h("div", { class: "graph scroll" }, drawing, note);
};

// A constituency tree: every word in a column, constituents as bars above.
jaxmt.parse = ({ words, nodes }) => {
  const { h, svg } = jaxmt;
  if (!nodes.length) return h("p", { class: "faint" }, "no parse");
  const depth = [];
  nodes.forEach(([, , , parent], place) => {
    depth[place] = parent < 0 ? 0 : depth[parent] + 1;
  });
  const step = Math.max(...words.map((word) => 15 * [...word].length), 56);
  const tall = (Math.max(...depth) + 1) * 24;
  const drawing = svg("svg", {
    width: words.length * step + 10,
    height: tall + 24,
    role: "img",
    "aria-label": "parse",
  });
  nodes.forEach(([label, begin, end], place) => {
    const y = depth[place] * 24 + 2;
    drawing.append(
      svg(
        "rect",
        {
          x: begin * step + 2,
          y,
          width: (end - begin) * step - 4,
          height: 20,
          rx: 3,
          fill: "var(--accent)",
          "fill-opacity": 0.12,
        },
        svg("title", {}, `${label}: ${words.slice(begin, end).join(" ")}`),
      ),
      svg(
        "text",
        { x: ((begin + end) / 2) * step, y: y + 15, "text-anchor": "middle" },
        label,
      ),
    );
  });
  words.forEach((word, place) =>
    drawing.append(
      svg(
        "text",
        { x: (place + 0.5) * step, y: tall + 16, "text-anchor": "middle" },
        word,
      ),
    ),
  );
  return h("div", { class: "graph scroll" }, drawing);
};

Object.assign(jaxmt.components, {
  alignment: jaxmt.alignment,
  lattice: jaxmt.lattice,
  dependency: jaxmt.dependency,
  parse: jaxmt.parse,
});
