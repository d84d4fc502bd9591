// The sections on tuning and training.
"use strict";

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
      // Those that decide most, see below; without lists the largest ones.
      const deciding = data.importance.find(({ system }) => system === name);
      const size = (feature) =>
        Math.abs(
          deciding
            ? (deciding.rows.find((row) => row.name === feature)?.value ?? 0)
            : known[known.length - 1].weights[feature],
        );
      const most = names.sort((a, b) => size(b) - size(a)).slice(0, 8);
      return jaxmt.lines(
        Object.fromEntries(
          most.map((feature) => [
            feature,
            known.map((row) => [row.round, row.weights[feature]]),
          ]),
        ),
        { x: "round", title: `${name}: weights of the features that decide most` },
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
      ["loss", "pool_score"].map((key) =>
        Object.keys(series(key)).length
          ? jaxmt.lines(series(key), {
              x: "round",
              title:
                key === "loss"
                  ? "objective: the loss that the optimiser lowers"
                  : "objective: the score of the lists that the optimiser raises",
              legend: true,
            })
          : null,
      ),
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
    h(
      "p",
      { class: "small faint" },
      "Pool: all candidates so far; new: those of this round; change: how far the weights moved.",
    ),
    jaxmt.table(
      Object.entries(data.tuning).flatMap(([system, rows]) =>
        rows.map(({ weights: _, span_shares: __, round, ...row }) => ({
          system,
          round,
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
    jaxmt.trainingRanks(data),
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

// Where the derivations that training learned from stand in the beams.
jaxmt.trainingRanks = (data) => {
  const { h } = jaxmt;
  if (!data.trainingRanks.length) return null;
  return [
    h("h2", {}, "Ranks of what is learned from"),
    h(
      "p",
      { class: "small faint" },
      `Parts of the derivations near the references, by their place in their beam, in percent: in the training search, which the loss draws towards the reference, and in that of the plain decoder with a part of the training text. What stands beyond the decoder's beam of ${data.config.search.beam} cannot be found when translating; the beam loss is there to avoid it.`,
    ),
    jaxmt.table(data.trainingRanks, { digits: 1 }),
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
