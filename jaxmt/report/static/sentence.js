// One sentence in detail.
"use strict";

// One sentence in detail: texts, why the translation changed, derivations side
// by side, charts, lists, parse.
jaxmt.sentence = async (data, index, n, one, two) => {
  const parts = await jaxmt.sentenceParts(data, index, n, one, two);
  const heads = parts.flat(Infinity).filter((part) => part?.localName === "h2");
  parts.splice(
    1,
    0,
    jaxmt.h(
      "p",
      { class: "row controls small" },
      heads.slice(1).map((head) =>
        jaxmt.h(
          "button",
          { type: "button", click: () => head.scrollIntoView() },
          head.dataset.short ?? head.textContent,
        ),
      ),
    ),
  );
  return parts;
};

jaxmt.sentenceParts = async (data, index, n, one, two) => {
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
                { class: "word-unknown", title: "not in the training data" },
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
    outputs.flatMap((name, place) => {
      const line = index.outputs[name][n];
      const nearest = jaxmt.nearest(line, index.references[n]);
      const other = outputs[{ [one]: two, [two]: one }[place]];
      return [
        h("dt", {}, name),
        h(
          "dd",
          { dir: "auto" },
          jaxmt.diff(line, index.references[n][nearest] ?? "", {
            other: other && index.outputs[other][n],
          }),
          h(
            "span",
            { class: "small faint" },
            `  ${value(name)}${index.references[n].length > 1 ? `, nearest: reference ${nearest + 1}` : ""}`,
          ),
        ),
      ];
    }),
  );
  const parts = [
    h("h2", {}, `Sentence ${n + 1}`),
    texts,
    h(
      "p",
      { class: "small faint" },
      h("span", { class: "word-same" }, "green"),
      " words are in the nearest reference in this order, ",
      h("span", { class: "word-extra" }, "red"),
      " ones are not; ",
      h("span", { class: "word-changed" }, "underlined"),
      " ones are not in the other system's translation.",
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
    training: await jaxmt.block("training"),
    interpolation: data.config.interpolation ?? 0,
  };
  const [first, second] = [own.d[one], own.d[two]];
  if (one !== two) {
    const changed =
      index.outputs[outputs[one]][n] !== index.outputs[outputs[two]][n];
    parts.push(
      h(
        "h2",
        { "data-short": changed ? "Why" : "Difference" },
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
  const rules = [own.d[one], own.d[two]].map(
    (view) => new Set(view?.n.map(([number]) => number)),
  );
  const shared = new Set([...rules[0]].filter((rule) => rules[1].has(rule)));
  const boxes = [];
  const follow = (begin, end, from) =>
    boxes.forEach((box) => box !== from && box.highlightSpan?.(begin, end));
  const columns = choices.map(([name, view, system, place]) => {
    const ranks = searched?.[system].ranks[place];
    const box = jaxmt.derivation(context, view, {
      system,
      ranks: name === good ? ranks : undefined,
      shared: place < data.systems.length && one !== two ? shared : undefined,
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
      "Point at a rule to see its span in both languages and in the other derivations; click a number, which is what the rule adds to the score, for its features. Rules with a bar are in one of the two derivations only.",
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
      "Move a weight and the list is ranked anew; nothing is searched anew. BLEU+1 of a list, and what is called its best translation, compare with the first reference alone; the scores at the top of the page with all references.",
    ),
    list,
  ];
};
