// The report of an experiment: sections, their tables and figures.
"use strict";

jaxmt.report = async () => {
  const { h } = jaxmt;
  const data = await jaxmt.block("report");
  const root = document.getElementById("report");
  const makers = {
    overview: ["Overview", () => jaxmt.overview(data)],
    sentences: [
      "Sentences",
      async () => (jaxmt.browser = await jaxmt.sentences(data)),
    ],
    tuning: ["Tuning", () => jaxmt.tuning(data)],
    training: ["Training", () => jaxmt.training(data)],
    search: ["Search", () => jaxmt.search(data)],
    data: ["Data", () => jaxmt.dataSection(data)],
    config: ["Config", () => jaxmt.config(data)],
  };
  const sections = {};
  const tabs = {};
  const open = async (name) => {
    for (const other of Object.keys(makers)) {
      sections[other].hidden = other !== name;
      tabs[other].setAttribute("aria-pressed", String(other === name));
    }
    await jaxmt.drawSection(sections[name], makers[name][1]);
    window.scrollTo(0, 0); // the address names the section: not a place in it
    if (name === "sentences") {
      const wanted = Number(location.hash.split("/")[1]);
      if (
        wanted >= 1 &&
        wanted <= data.size &&
        jaxmt.browser.chosen() !== wanted - 1
      )
        await jaxmt.browser.choose(wanted - 1);
      else if (jaxmt.browser.chosen() < 0 && jaxmt.browser.first() >= 0)
        await jaxmt.browser.choose(jaxmt.browser.first());
    }
  };
  const go = (name) => {
    location.hash = name;
  };
  const nav = document.querySelector("nav");
  for (const [name, [title]] of Object.entries(makers)) {
    tabs[name] = h(
      "button",
      {
        type: "button",
        id: `tab-${name}`,
        "aria-pressed": "false",
        click: () => go(name),
      },
      title,
    );
    sections[name] = h("section", {
      id: name,
      hidden: true,
      "aria-label": title,
    });
    root.append(sections[name]);
  }
  nav.append(...Object.values(tabs));
  jaxmt.themeButton(document.querySelector("header"));
  const route = () => {
    const name = location.hash.slice(1).split("/")[0];
    return open(name in makers ? name : "overview");
  };
  window.addEventListener("hashchange", route);
  window.addEventListener("beforeprint", () => {
    for (const name of Object.keys(makers))
      if (name !== "sentences")
        jaxmt.drawSection(sections[name], makers[name][1]);
  });
  document.addEventListener("keydown", (event) => {
    if (
      event.target.closest?.("input, select, textarea") ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey
    )
      return;
    const names = Object.keys(makers);
    if (event.key >= "1" && event.key <= String(names.length))
      go(names[Number(event.key) - 1]);
    if (event.key === "/" && !sections.sentences.hidden) {
      event.preventDefault();
      jaxmt.browser?.focusSearch();
    }
  });
  await route();
  document.body.dataset.ready = "";
};

// Fills a section when it is first opened.
jaxmt.drawSection = async (section, make) => {
  if (section.childElementCount) return;
  try {
    jaxmt.show(section, await make());
  } catch (error) {
    jaxmt.show(
      section,
      jaxmt.h(
        "p",
        { class: "bad" },
        `This part cannot be shown: ${error.message}. Reports need a browser of 2023 or newer.`,
      ),
    );
    throw error;
  }
};

jaxmt.themeButton = (header) => {
  const themes = ["auto", "light", "dark"];
  const button = jaxmt.h(
    "button",
    { type: "button", title: "light or dark" },
    "◐",
  );
  let at = 0;
  button.addEventListener("click", () => {
    at = (at + 1) % themes.length;
    if (at) document.body.dataset.theme = themes[at];
    else delete document.body.dataset.theme;
    button.title = `light or dark: ${themes[at]}`;
  });
  header.append(button);
};

jaxmt.overview = (data) => {
  const { h } = jaxmt;
  const rows = data.comparison.map((row) => ({ ...row }));
  const bars = data.metrics.map((metric) =>
    jaxmt.bars(
      data.scores
        .filter((row) => row.metric === metric.name)
        .map((row) => ({
          name: row.system,
          value: row.score,
          margin: row.margin,
        })),
      {
        title: `${metric.label} on test, 95 % interval (${metric.higher ? "higher" : "lower"} is better)`,
      },
    ),
  );
  return [
    h("h2", {}, "Systems"),
    h("p", {}, data.about),
    jaxmt.table(rows),
    h(
      "p",
      { class: "small faint" },
      `* differs from ${data.baseline}, p < 0.05.`,
    ),
    data.stories.length
      ? [
          h("h2", {}, "Where to look first"),
          h(
            "ul",
            {},
            data.stories.map(({ text, sentence }) =>
              h(
                "li",
                {},
                h(
                  "a",
                  { href: `#sentences/${sentence + 1}` },
                  `sentence ${sentence + 1}`,
                ),
                `: ${text}`,
              ),
            ),
          ),
        ]
      : null,
    h("div", { class: "columns" }, bars),
    Object.keys(data.pairwise).length
      ? [
          h("h2", {}, "Is the difference chance?"),
          h(
            "p",
            { class: "small faint" },
            "p-values of paired tests, row against column; green: the row's system is better, red: worse.",
          ),
          h(
            "div",
            { class: "columns" },
            data.metrics
              .filter(({ name }) => data.pairwise[name])
              .map((metric) => jaxmt.pairwise(data, metric)),
          ),
        ]
      : null,
    h("h2", {}, "Time and memory by stage"),
    jaxmt.table(data.stages, { digits: 1 }),
    h("h2", {}, "Settings that are not the default"),
    data.changes.length
      ? jaxmt.table(data.changes)
      : h("p", { class: "faint" }, "none"),
  ];
};

jaxmt.pairwise = (data, metric) => {
  const { h } = jaxmt;
  const matrix = data.pairwise[metric.name];
  const cell = (one, two) => {
    if (one === two) return h("td", {});
    const [p, difference] = matrix[one][two];
    const better = difference * (metric.higher ? 1 : -1) > 0;
    return h(
      "td",
      {
        class: `number ${p < 0.05 ? (better ? "good" : "bad") : "faint"}`,
        title: `difference ${jaxmt.signed(difference)}`,
      },
      p < 0.001 ? "< 0.001" : p.toFixed(3),
    );
  };
  return h(
    "table",
    {},
    h("caption", { class: "small" }, metric.label),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", {}),
        data.outputs.map((name) => h("th", { class: "number" }, name)),
      ),
    ),
    h(
      "tbody",
      {},
      data.outputs.map((name, one) =>
        h(
          "tr",
          {},
          h("th", {}, name),
          data.outputs.map((_, two) => cell(one, two)),
        ),
      ),
    ),
  );
};

jaxmt.tuning = (data) => {
  const { h } = jaxmt;
  const series = (key) =>
    Object.fromEntries(
      Object.entries(data.tuning)
        .map(([name, rows]) => [name, rows.map((row) => [row.round, row[key]])])
        .filter(([, points]) =>
          points.some(([, y]) => y !== undefined && y !== null),
        ),
    );
  const weights = Object.entries(data.tuning)
    .filter(([, rows]) => rows.some((row) => row.weights))
    .map(([name, rows]) => {
      const known = rows.filter((row) => row.weights);
      const names = Object.keys(known[known.length - 1].weights);
      const most = [...names]
        .sort(
          (a, b) =>
            Math.abs(known[known.length - 1].weights[b]) -
            Math.abs(known[known.length - 1].weights[a]),
        )
        .slice(0, 8);
      return jaxmt.lines(
        Object.fromEntries(
          most.map((feature) => [
            feature,
            known.map((row) => [row.round, row.weights[feature]]),
          ]),
        ),
        { x: "round", title: `${name}: the largest weights by round` },
      );
    });
  const importance = data.importance.map(({ system, rows }) =>
    jaxmt.bars(
      rows.slice(0, 12).map((row) => ({
        ...row,
        colour: row.value < 0 ? jaxmt.colour(1) : jaxmt.colour(0),
      })),
      {
        title: `${system}: weight × spread of the feature within k-best lists`,
        left: 190,
        digits: 3,
      },
    ),
  );
  return [
    h("h2", {}, "Score by round"),
    h(
      "div",
      { class: "columns" },
      jaxmt.lines(series("score"), {
        x: "round",
        title: `${data.tuneMetric} on the tuning part, decoded`,
        legend: true,
      }),
      Object.keys(series("loss")).length
        ? jaxmt.lines(series("loss"), {
            x: "round",
            title: "objective of the optimiser",
            legend: true,
          })
        : null,
      jaxmt.lines(series("length_ratio"), {
        x: "round",
        title: "length of the output / length of the reference",
        legend: true,
      }),
    ),
    weights.length
      ? [
          h("h2", {}, "Weights by round"),
          h("div", { class: "columns" }, weights),
        ]
      : null,
    importance.length
      ? [
          h("h2", {}, "Which features decide"),
          h(
            "p",
            { class: "small faint" },
            "A feature decides as much as its value varies among the translations of a sentence, times its weight.",
          ),
          h("div", { class: "columns" }, importance),
        ]
      : null,
    h("h2", {}, "Weights"),
    jaxmt.table(
      data.features.map((feature, place) => ({
        feature: jaxmt.feature(feature),
        ...Object.fromEntries(
          data.systems.map((name, system) => [
            name,
            data.weights[system][place],
          ]),
        ),
      })),
      { digits: 4 },
    ),
    jaxmt.glossary(data.features),
    h("h2", {}, "Rounds"),
    jaxmt.table(
      Object.entries(data.tuning).flatMap(([system, rows]) =>
        rows.map(({ weights: _, span_shares: __, ...row }) => ({
          system,
          ...row,
        })),
      ),
      { digits: 4 },
    ),
  ];
};

jaxmt.training = (data) => {
  const { h } = jaxmt;
  const entries = Object.entries(data.training);
  return [
    entries.length
      ? jaxmt.iterations(data, entries)
      : h(
          "p",
          { class: "faint" },
          "No system of this run trains rule probabilities.",
        ),
    jaxmt.violations(data),
    data.ranks.length
      ? [
          h("h2", {}, "Where good derivations stand in the beams"),
          h(
            "p",
            { class: "small faint" },
            "Of the sample: the derivation of the reference, or of the best translation in the lists. Ranks are places among the hypotheses of a cell; a part beyond the beam is lost.",
          ),
          jaxmt.table(data.searchRows),
          jaxmt.rankFigures(data),
        ]
      : null,
  ];
};

// What violation-fixing learning did by epoch, and where its updates were.
jaxmt.violations = (data) => {
  const { h } = jaxmt;
  const learned = Object.entries(data.tuning).filter(([, rows]) =>
    rows.some((row) => row.span_shares),
  );
  if (!learned.length) return null;
  const series = (key) =>
    Object.fromEntries(
      learned.map(([name, rows]) => [
        name,
        rows.map((row) => [row.round, row[key]]),
      ]),
    );
  const lengths = ["1", "2", "3–4", "5–8", "9–16", "17 and more"];
  return [
    h("h2", {}, "Violations"),
    h(
      "p",
      { class: "small faint" },
      "A violation is by how much the best hypothesis of a span scores above the best one that leads to the reference. Max-violation updates where it is largest.",
    ),
    h(
      "div",
      { class: "columns" },
      jaxmt.lines(series("violation"), {
        x: "epoch",
        title: "mean violation of the updates",
        legend: true,
      }),
      jaxmt.lines(series("valid_share"), {
        x: "epoch",
        title: "share of updates that mend a violation",
        legend: true,
      }),
      learned.map(([name, rows]) =>
        jaxmt.bars(
          rows[rows.length - 1].span_shares.map((share, place) => ({
            name: `${lengths[place]} words`,
            value: 100 * share,
            colour: jaxmt.colour(0),
          })),
          {
            title: `${name}: where the last epoch's updates were, % by words of the span`,
            digits: 1,
          },
        ),
      ),
    ),
  ];
};

// Iterations of training rule probabilities, and the rules that moved.
jaxmt.iterations = (data, entries) => {
  const { h } = jaxmt;
  const series = (key) =>
    Object.fromEntries(
      entries.map(([name, rows]) => [
        name,
        rows.map((row) => [row.iteration, row[key]]),
      ]),
    );
  return [
    h("h2", {}, "Iterations"),
    h(
      "p",
      { class: "small faint" },
      "Admissible sentences have a derivation near enough to their reference; the others fall back to what the search finds.",
    ),
    h(
      "div",
      { class: "columns" },
      jaxmt.lines(series("model_score"), {
        x: "iteration",
        title: "model score of the derivations that are learned from",
        legend: true,
      }),
      jaxmt.lines(series("fallbacks"), {
        x: "iteration",
        title: "sentences that fell back",
        legend: true,
      }),
      jaxmt.lines(series("tune_bleu"), {
        x: "iteration",
        title: "BLEU on the tuning part",
        legend: true,
      }),
    ),
    jaxmt.table(
      entries.flatMap(([system, rows]) =>
        rows.map((row) => ({ system, ...row })),
      ),
    ),
    data.moved.map(({ system, rows }) => [
      h("h2", {}, `Rules that gained and lost in ${system}`),
      h(
        "p",
        { class: "small faint" },
        "p(rule | source side), before and after; moved: the change times how often the source side was seen.",
      ),
      jaxmt.table(rows),
    ]),
  ];
};

// Ranks before and after, and how long the spans are where derivations fall out.
jaxmt.rankFigures = (data) => {
  if (!data.ranks.length) return null;
  const ranks = Object.fromEntries(
    data.ranks.map((row) => [row.system, row.ranks]),
  );
  const spans = Object.fromEntries(
    data.ranks
      .map((row) => [row.system, row.lost])
      .filter(([, values]) => values.length),
  );
  const worst = Object.fromEntries(
    data.ranks
      .map((row) => [row.system, row.violations])
      .filter(([, values]) => values.length),
  );
  return jaxmt.h(
    "div",
    { class: "columns" },
    jaxmt.histogram(ranks, {
      x: "rank",
      title: "rank of the parts that are kept",
    }),
    Object.keys(spans).length
      ? jaxmt.histogram(spans, {
          x: "words of the span",
          title: "length of spans whose part was lost",
        })
      : null,
    Object.keys(worst).length
      ? jaxmt.histogram(worst, {
          x: "words of the span",
          title: "length of the span of the largest violation",
        })
      : null,
  );
};

jaxmt.search = (data) => {
  const { h } = jaxmt;
  return [
    h("h2", {}, "Search errors"),
    h(
      "p",
      { class: "small faint" },
      "A search error is proven where a derivation is known that the system itself scores higher than the one it found: another system's, or the reference's. There may be more. launch/explain.py compares with a wider and with an exact search.",
    ),
    jaxmt.table(
      data.searchRows.map((row) => ({
        system: row.system,
        "proven search errors": row["proven search errors"],
        "test sentences": row["test sentences"],
      })),
    ),
    data.beams.length
      ? [
          h("h2", {}, "Search errors by beam"),
          h(
            "div",
            { class: "columns" },
            jaxmt.lines(data.beamSeries, {
              x: "beam",
              title:
                "sentences whose best found score is below that of the widest beam, %",
              legend: true,
            }),
          ),
          jaxmt.table(data.beams),
        ]
      : null,
    data.fill.length
      ? [
          h("h2", {}, "Beam fill"),
          h(
            "div",
            { class: "columns" },
            jaxmt.lines(
              Object.fromEntries(
                data.fill.map((row) => [row.system, row.points]),
              ),
              {
                x: data.stacks ? "covered words" : "words of the span",
                title: data.stacks
                  ? "hypotheses per stack, mean"
                  : "hypotheses per cell, mean",
                legend: true,
              },
            ),
          ),
          h(
            "p",
            { class: "small faint" },
            "A cell that is full may have lost something; one that is not has all it could build.",
          ),
        ]
      : null,
  ];
};

jaxmt.dataSection = (data) => {
  const { h } = jaxmt;
  return [
    h("h2", {}, "Corpus"),
    jaxmt.table(data.corpus),
    h(
      "div",
      { class: "columns" },
      jaxmt.histogram(data.lengths, {
        x: "source words",
        title: "length of sentences, % of the part",
        share: true,
      }),
      jaxmt.histogram(
        { test: data.unknownCounts },
        {
          x: "unknown words in a sentence",
          title: "source words of test sentences that training did not have",
        },
      ),
    ),
    h("h2", {}, "Reachability"),
    h("p", {}, data.reach),
    data.alignment.length
      ? [
          h("h2", {}, "Word alignment"),
          jaxmt.table(data.alignment),
          data.alignments.length ? jaxmt.alignmentExamples(data) : null,
        ]
      : null,
    h("h2", {}, "Language model"),
    jaxmt.table(data.lm),
    data.grammar.length
      ? [h("h2", {}, "Grammar"), jaxmt.table(data.grammar)]
      : null,
  ];
};

jaxmt.alignmentExamples = (data) => {
  const { h } = jaxmt;
  const box = h("div", {});
  const draw = (place) =>
    jaxmt.show(box, jaxmt.alignment(data.alignments[place]));
  draw(0);
  return [
    h("h3", {}, "Training pairs with their links"),
    jaxmt.choice(
      "pair",
      data.alignments.map((_, n) => String(n + 1)),
      0,
      draw,
    ),
    box,
  ];
};

jaxmt.config = (data) => {
  const { h } = jaxmt;
  return [
    h("h2", {}, "Metrics"),
    jaxmt.table(data.signatures),
    h("h2", {}, "All settings"),
    h("pre", {}, JSON.stringify(data.config, null, 1)),
    h("h2", {}, "Made by"),
    h("p", {}, data.made),
  ];
};
