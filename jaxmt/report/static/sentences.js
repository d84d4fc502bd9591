// The sentence browser: all test sentences, sorted and filtered.
"use strict";

jaxmt.sentences = async (data) => {
  const { h } = jaxmt;
  const index = await jaxmt.block("index");
  const outputs = data.outputs;
  const state = {
    one: 0,
    two: Math.max(Math.min(1, data.systems.length - 1), 0),
    metric: 0,
    sort: 0,
    falling: true,
    differ: false,
    unknown: false,
    error: false,
    charts: false,
    cause: 0,
    text: "",
    least: 0,
    most: Infinity,
    chosen: -1,
  };
  if (outputs.length > 1 && state.two === state.one) state.two = 1;
  const size = index.source.length;
  const every = Array.from({ length: size }, (_, n) => n);
  const lower = (n) =>
    [
      index.source[n],
      ...index.references[n],
      ...outputs.map((name) => index.outputs[name][n]),
    ]
      .join("\n")
      .toLowerCase();
  const texts = every.map(lower);
  const score = (system, n) =>
    index.scores[data.metrics[state.metric].name]?.[outputs[system]]?.[n] ?? 0;
  const sign = () => (data.metrics[state.metric].higher ? 1 : -1);
  const gain = (n) => sign() * (score(state.two, n) - score(state.one, n));
  const sorts = [
    ["gain of the second system", gain],
    ["size of the change", (n) => Math.abs(gain(n))],
    ["score of the second system", (n) => score(state.two, n)],
    ["source length", (n) => index.length[n]],
    ["unknown words", (n) => index.unknown[n]],
    ["search errors", (n) => Number(wrong(n))],
    ["number", (n) => -n],
  ];
  const charts = new Set(data.charts);
  const kinds = Object.keys(jaxmt.causes);
  let causes = null; // of all sentences, once somebody asks
  const findCauses = async () => {
    const both = [state.one, state.two];
    if (!state.cause) return;
    causes = both.every((n) => n < data.systems.length)
      ? await jaxmt.allCauses(data, index, ...both)
      : null;
  };
  const wrong = (n) =>
    [state.one, state.two].some((system) => index.errors[n]?.[system]);
  const matches = (n) =>
    (!state.differ ||
      index.outputs[outputs[state.one]][n] !==
        index.outputs[outputs[state.two]][n]) &&
    (!state.unknown || index.unknown[n] > 0) &&
    (!state.error || wrong(n)) &&
    (!state.charts || charts.has(n)) &&
    (!state.cause || causes?.[n] === kinds[state.cause - 1]) &&
    index.length[n] >= state.least &&
    index.length[n] <= state.most &&
    (!state.text || texts[n].includes(state.text));
  let shown = [];
  const list = h("div", {
    class: "list",
    role: "listbox",
    tabindex: 0,
    "aria-label": "test sentences",
  });
  const inner = h("div", {});
  list.append(inner);
  const count = h("span", {
    class: "small faint",
    id: "sentence-count",
    "aria-live": "polite",
  });
  const detail = h("div", { class: "sentence", id: "sentence" });

  // Only the lines in view are drawn: there may be thousands.
  const drawList = () => {
    const first = Math.max(0, Math.floor(list.scrollTop / 52) - 4);
    const last = Math.min(
      shown.length,
      first + Math.ceil((list.clientHeight || 700) / 52) + 8,
    );
    jaxmt.show(
      inner,
      shown.slice(first, last).map((n, place) => {
        const change = gain(n);
        return h(
          "div",
          {
            class: "item",
            role: "option",
            id: `item-${n}`,
            "data-number": n,
            "aria-selected": String(n === state.chosen),
            style: { top: `${(first + place) * 52}px` },
            click: () => choose(n),
          },
          h(
            "div",
            { class: "small faint" },
            `${n + 1} · ${index.length[n]} words `,
            h(
              "b",
              { class: change > 0 ? "good" : change < 0 ? "bad" : "" },
              jaxmt.signed(change, 1),
            ),
            index.unknown[n] ? ` · ${index.unknown[n]} unknown` : "",
            wrong(n) ? " · search error" : "",
            charts.has(n) ? " · chart" : "",
          ),
          h("div", { dir: "auto" }, index.source[n] || "(empty)"),
        );
      }),
    );
  };
  const refresh = () => {
    const [, key] = sorts[state.sort];
    shown = every.filter(matches).map((n) => [key(n), n]);
    shown.sort(([a, m], [b, n]) => (state.falling ? b - a : a - b) || m - n);
    shown = shown.map(([, n]) => n);
    inner.style.height = `${shown.length * 52}px`;
    count.textContent = `${shown.length.toLocaleString("en")} of ${size.toLocaleString("en")} sentences`;
    drawList();
  };
  const choose = async (n) => {
    state.chosen = n;
    const place = shown.indexOf(n);
    if (place >= 0) {
      if (place * 52 < list.scrollTop) list.scrollTop = place * 52;
      if ((place + 1) * 52 > list.scrollTop + list.clientHeight)
        list.scrollTop = (place + 1) * 52 - list.clientHeight;
    }
    list.setAttribute("aria-activedescendant", `item-${n}`);
    drawList();
    history.replaceState(null, "", `#sentences/${n + 1}`);
    const drawn = await jaxmt.sentence(data, index, n, state.one, state.two);
    if (state.chosen !== n) return;
    jaxmt.show(detail, drawn);
    if (detail.getBoundingClientRect().top < 0) detail.scrollIntoView();
  };
  // Chooses a sentence further down or up the list.
  const walk = (step) => {
    if (!shown.length) return;
    const place = shown.indexOf(state.chosen);
    const next = (place < 0 ? -step : place) + step;
    choose(shown[Math.max(0, Math.min(shown.length - 1, next))]);
  };
  list.addEventListener("scroll", drawList);
  list.addEventListener("keydown", (event) => {
    const step = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: 10,
      PageUp: -10,
    }[event.key];
    if (!step || !shown.length) return;
    event.preventDefault();
    walk(step);
  });
  const again = async () => {
    await findCauses();
    refresh();
    if (state.chosen >= 0) choose(state.chosen);
  };
  const check = (name, label) =>
    h(
      "label",
      { class: "row" },
      h("input", {
        type: "checkbox",
        id: `filter-${name}`,
        change: (event) => {
          state[name] = event.target.checked;
          refresh();
        },
      }),
      label,
    );
  const range = (name, label, empty) =>
    h(
      "label",
      { class: "row small" },
      label,
      h("input", {
        type: "number",
        min: 0,
        style: { width: "5rem" },
        "aria-label": `${label} length`,
        input: (event) => {
          state[name] =
            event.target.value === "" ? empty : Number(event.target.value);
          refresh();
        },
      }),
    );
  const search = h("input", {
    type: "search",
    id: "filter-text",
    placeholder: "words in any text",
    "aria-label": "filter by words",
    input: () => {
      state.text = search.value.trim().toLowerCase();
      refresh();
    },
  });
  const controls = h(
    "div",
    { class: "panel controls" },
    h(
      "div",
      { class: "row" },
      jaxmt.menu(
        "first system",
        outputs,
        state.one,
        (place) => {
          state.one = place;
          again();
        },
        { id: "system-one" },
      ),
      jaxmt.menu(
        "second",
        outputs,
        state.two,
        (place) => {
          state.two = place;
          again();
        },
        { id: "system-two" },
      ),
      jaxmt.menu(
        "by",
        data.metrics.map((one) => one.label),
        0,
        (place) => {
          state.metric = place;
          again();
        },
      ),
      jaxmt.menu(
        "sort by",
        sorts.map(([name]) => name),
        0,
        (place) => {
          state.sort = place;
          refresh();
        },
        { id: "sort" },
      ),
      h(
        "button",
        {
          type: "button",
          id: "turn",
          title: "turn the order round",
          click: () => {
            state.falling = !state.falling;
            refresh();
          },
        },
        "⇅",
      ),
      data.systems.length > 1
        ? jaxmt.menu(
            "turned by",
            ["anything", ...kinds],
            0,
            async (place) => {
              state.cause = place;
              await findCauses();
              refresh();
            },
            { id: "cause" },
          )
        : null,
    ),
    h(
      "div",
      { class: "row" },
      search,
      check("differ", "outputs differ"),
      check("unknown", "unknown words"),
      check("error", "search error"),
      check("charts", "with chart"),
      range("least", "from", 0),
      range("most", "to words", Infinity),
      count,
    ),
  );
  refresh();
  const box = h(
    "div",
    {},
    controls,
    h("div", { class: "browser" }, list, detail),
  );
  box.choose = choose;
  box.chosen = () => state.chosen;
  box.first = () => shown[0] ?? -1;
  box.walk = walk;
  box.focusSearch = () => search.focus();
  return box;
};
