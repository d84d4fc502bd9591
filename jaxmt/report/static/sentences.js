// The sentence browser: all test sentences, sorted and filtered; one in detail.
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
  const wrong = (n) =>
    [state.one, state.two].some((system) => index.errors[n]?.[system]);
  const matches = (n) =>
    (!state.differ ||
      index.outputs[outputs[state.one]][n] !==
        index.outputs[outputs[state.two]][n]) &&
    (!state.unknown || index.unknown[n] > 0) &&
    (!state.error || wrong(n)) &&
    (!state.charts || charts.has(n)) &&
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
    if (state.chosen === n) jaxmt.show(detail, drawn);
  };
  list.addEventListener("scroll", drawList);
  list.addEventListener("keydown", (event) => {
    const step = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: 10,
      PageUp: -10,
      j: 1,
      k: -1,
    }[event.key];
    if (!step || !shown.length) return;
    event.preventDefault();
    const place = shown.indexOf(state.chosen);
    choose(
      shown[
        Math.max(
          0,
          Math.min(shown.length - 1, (place < 0 ? -step : place) + step),
        )
      ],
    );
  });
  const again = () => {
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
  box.focusSearch = () => search.focus();
  return box;
};

// One sentence in detail: texts, why the translation changed, derivations side
// by side, charts, lists, parse.
jaxmt.sentence = async (data, index, n, one, two) => {
  const { h } = jaxmt;
  const reference = index.references[n][0] ?? "";
  const outputs = data.outputs;
  const value = (name) =>
    data.metrics
      .map(
        (metric) =>
          `${metric.label} ${jaxmt.number(index.scores[metric.name][name][n], 1)}`,
      )
      .join(", ");
  const texts = h(
    "dl",
    { class: "texts" },
    h("dt", {}, "source"),
    h(
      "dd",
      { dir: "auto", class: "source-text" },
      jaxmt
        .words(index.source[n])
        .flatMap((word, place) => [
          place ? " " : "",
          index.unknown[n] && index.unknownWords.includes(word)
            ? h(
                "span",
                { class: "word-missing", title: "not in the training data" },
                word,
              )
            : word,
        ]),
    ),
    index.references[n].flatMap((line, place) => [
      h(
        "dt",
        {},
        index.references[n].length > 1 ? `reference ${place + 1}` : "reference",
      ),
      h("dd", { dir: "auto" }, line || "(empty)"),
    ]),
    outputs.flatMap((name) => [
      h("dt", {}, name),
      h(
        "dd",
        { dir: "auto" },
        jaxmt.diff(index.outputs[name][n], reference),
        h("span", { class: "small faint" }, `  ${value(name)}`),
      ),
    ]),
  );
  const parts = [
    h("h2", {}, `Sentence ${n + 1}`),
    texts,
    h(
      "p",
      { class: "small faint" },
      h("span", { class: "word-same" }, "green"),
      " words are in the reference in this order, ",
      h("span", { class: "word-extra" }, "red"),
      " ones are not.",
    ),
  ];
  if (one >= data.systems.length || two >= data.systems.length) {
    parts.push(
      h(
        "p",
        { class: "faint" },
        "This system has no derivations; choose two systems that have.",
      ),
    );
    return parts;
  }
  const chunk = await jaxmt.block(`sentences-${Math.floor(n / data.chunk)}`);
  const own = chunk?.[n % data.chunk];
  if (!own?.d) return parts;
  const searched = data.charts.includes(n)
    ? await jaxmt.block(`chart-${n}`)
    : null;
  const context = {
    source: jaxmt.words(index.source[n]),
    systems: data.systems,
    features: data.features,
    weights: data.weights,
    rules: await jaxmt.block("rules"),
    trained: Object.keys(data.training),
  };
  const [first, second] = [own.d[one], own.d[two]];
  if (one !== two) {
    const changed =
      index.outputs[outputs[one]][n] !== index.outputs[outputs[two]][n];
    parts.push(
      h(
        "h2",
        {},
        changed
          ? `Why ${outputs[two]} translates it differently`
          : `Both translate it alike; their derivations compared`,
      ),
      jaxmt.why(context, first, second, one, two, searched?.[one].ranks[two]),
    );
  }
  parts.push(
    h("h2", {}, "Derivations"),
    jaxmt.derivations(data, context, own, searched, one, two),
  );
  if (own.why)
    parts.push(
      h(
        "p",
        { class: "small faint" },
        `The rules cannot derive the reference: ${own.why}.`,
      ),
    );
  if (searched)
    parts.push(
      ...jaxmt.searchViews(data, context, own, searched, one, two, reference),
    );
  else
    parts.push(
      h(
        "p",
        { class: "faint" },
        "Charts and lists are in this file for the sentences that changed most and for a sample (filter: with chart). For any other sentence: ",
        h("code", {}, `python launch/serve.py --workdir=${data.workdir}`),
      ),
    );
  if (own.p)
    parts.push(
      h("h2", {}, "Source parse"),
      jaxmt.parse({ words: context.source, nodes: own.p }),
    );
  if (own.h)
    parts.push(
      h("h2", {}, "Source dependencies"),
      h(
        "p",
        { class: "small faint" },
        "An arrow leads from a head to its dependent, as the rules for heads of constituents find them.",
      ),
      jaxmt.dependency({
        words: context.source,
        tags: own.h[0],
        trees: [["heads", own.h[1], own.h[2]]],
      }),
    );
  return parts;
};

// Two derivations and, if there is one, that of the reference.
jaxmt.derivations = (data, context, own, searched, one, two) => {
  const { h } = jaxmt;
  const good = own.e ? "reference" : "best translation in the lists";
  const choices = [[data.systems[one], own.d[one], one, one]];
  if (one !== two) choices.push([data.systems[two], own.d[two], two, two]);
  if (own.r) choices.push([good, own.r, two, data.systems.length]);
  const boxes = [];
  const follow = (begin, end, from) =>
    boxes.forEach((box) => box !== from && box.highlightSpan?.(begin, end));
  const columns = choices.map(([name, view, system, place]) => {
    const ranks = searched?.[system].ranks[place];
    const box = jaxmt.derivation(context, view, {
      system,
      ranks: name === good ? ranks : undefined,
      onSpan: follow,
    });
    boxes.push(box);
    const scores = view
      ? data.systems
          .map((other, n) => `${other} ${jaxmt.number(view.z[n], 2)}`)
          .join(", ")
      : "";
    return h(
      "div",
      { class: "panel" },
      h("h3", {}, name),
      h("p", { class: "small faint" }, `score: ${scores}`),
      box,
    );
  });
  return [
    h(
      "p",
      { class: "small faint" },
      "Point at a rule to see its span in both languages and in the other derivations; click a number for its features.",
    ),
    h("div", { class: "columns" }, columns),
  ];
};

// Chart explorer and k-best lists of a sentence that was searched again.
jaxmt.searchViews = (data, context, own, searched, one, two, reference) => {
  const { h } = jaxmt;
  const good = own.e ? "reference" : "best translation in the lists";
  const names = [...data.systems, good];
  const chart = h("div", {});
  const list = h("div", {});
  const lattice = h("div", {});
  const phrases = Boolean(searched[two].lattice);
  const draw = (system) => {
    const { chart: cells, kbest, ranks } = searched[system];
    if (phrases) jaxmt.show(lattice, jaxmt.lattice(searched[system].lattice));
    const followed = names
      .map((name, place) => ({ name, parts: ranks[place] }))
      .filter(({ parts }) => parts.length)
      .reverse();
    jaxmt.show(chart, jaxmt.chart(context.source, cells, followed));
    jaxmt.show(
      list,
      jaxmt.kbest(data.features, data.weights[system], kbest, reference),
    );
  };
  draw(two);
  const pair = one === two ? [one] : [one, two];
  const pick = () =>
    jaxmt.choice(
      "system",
      pair.map((n) => data.systems[n]),
      pair.length - 1,
      (place) => draw(pair[place]),
    );
  return [
    h("h2", {}, phrases ? "Search: the stacks" : "Search: the chart"),
    pick(),
    chart,
    phrases
      ? [
          h("h2", {}, "Phrase lattice"),
          h(
            "p",
            { class: "small faint" },
            "Phrases that hypotheses in the stacks have used, over the source words; thick: those of the best translation. Point at one to see how much the best translation with it is behind.",
          ),
          lattice,
        ]
      : null,
    h("h2", {}, "The best translations"),
    h(
      "p",
      { class: "small faint" },
      "Move a weight and the list is ranked anew; nothing is searched anew.",
    ),
    list,
  ];
};
