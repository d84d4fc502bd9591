// The overview: systems, what turned their translations, significance, costs.
"use strict";

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
  // What needs all derivations is filled in when the rest can be read.
  const turned = h("div", { id: "turned" });
  if (data.features.length && data.systems.length > 1)
    jaxmt.turned(data).then((parts) => jaxmt.show(turned, parts));
  return [
    h("h2", {}, "Systems"),
    h("p", {}, data.about),
    jaxmt.termList(),
    jaxmt.table(rows),
    h(
      "p",
      { class: "small faint" },
      `* differs from ${data.baseline}, p < 0.05; the column p is of ${data.metrics[0].label}.${data.comparison.some((row) => "fall-back" in row) ? " Fall-back: the share of the training counts that come from sentences without a derivation near their reference." : ""}`,
    ),
    h("div", { class: "columns" }, bars),
    turned,
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
    h(
      "p",
      { class: "small faint" },
      `${jaxmt.number(
        data.stages.reduce((sum, { seconds }) => sum + (seconds ?? 0), 0),
        0,
      )} seconds in all; a stage that was reused shows what it took when it ran.`,
    ),
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

// What turned the translations of the first system into those of the others,
// and sentences to look at first.
jaxmt.turned = async (data) => {
  const { h } = jaxmt;
  const index = await jaxmt.block("index");
  const last = data.systems.length - 1;
  const rows = [];
  for (let two = 1; two <= last; two++)
    rows.push(...(await jaxmt.causeRows(data, index, two)));
  const causes = await jaxmt.allCauses(data, index, 0, last);
  return [
    h("h2", {}, "What turned the translations"),
    h(
      "p",
      { class: "small faint" },
      `Test sentences that a system translates differently from ${data.baseline}, by what it takes to prefer the new translation: the new rule probabilities alone, the new weights alone, either of them, or both together. Weights are tuned anew for every system, so both change. Search: the model does not prefer what was chosen; the beam decided. Every sentence shows its own case.`,
    ),
    jaxmt.table(rows, { digits: 1 }),
    h("h2", {}, "Where to look first"),
    h(
      "ul",
      {},
      jaxmt
        .firstToSee(data, index, causes)
        .map((n) => h("li", {}, jaxmt.storyLine(data, index, causes, n))),
    ),
  ];
};

// By how much a sentence is better under a system, by the first metric.
jaxmt.gain = (data, index, n, one, two) => {
  const [metric] = data.metrics;
  const score = (system) => index.scores[metric.name][data.outputs[system]][n];
  return (score(two) - score(one)) * (metric.higher ? 1 : -1);
};

jaxmt.causeRows = async (data, index, two) => {
  const causes = await jaxmt.allCauses(data, index, 0, two);
  return Object.entries(jaxmt.causes)
    .map(([kind, [label]]) => {
      const gains = causes.flatMap((cause, n) =>
        cause === kind ? [jaxmt.gain(data, index, n, 0, two)] : [],
      );
      return {
        system: data.systems[two],
        "turned by": kind.startsWith("search")
          ? `${label} of ${data.systems[kind === "search before" ? 0 : two]}`
          : label,
        sentences: gains.length,
        better: gains.filter((gain) => gain > 0).length,
        worse: gains.filter((gain) => gain < 0).length,
        [`mean gain, ${data.metrics[0].label} of sentences`]:
          gains.reduce((sum, gain) => sum + gain, 0) / (gains.length || 1),
      };
    })
    .filter(({ sentences }) => sentences)
    .sort((one, two) => two.sentences - one.sentences);
};

// The largest gain for each cause, and the two largest losses; of sentences
// that have charts.
jaxmt.firstToSee = (data, index, causes) => {
  const last = data.systems.length - 1;
  const gain = (n) => jaxmt.gain(data, index, n, 0, last);
  const order = data.charts
    .filter((n) => causes[n])
    .sort((one, two) => gain(two) - gain(one) || one - two);
  const best = Object.keys(jaxmt.causes)
    .map((kind) => order.find((n) => causes[n] === kind && gain(n) > 0))
    .filter((n) => n !== undefined);
  const worst = order.reverse().filter((n) => gain(n) < 0);
  return [...best, ...worst.slice(0, 2)];
};

// A sentence in short: both translations, by how much they differ, and why.
jaxmt.storyLine = (data, index, causes, n) => {
  const { h } = jaxmt;
  const last = data.systems.length - 1;
  const pair = [0, last].map((system) => index.outputs[data.outputs[system]][n]);
  const line = (system, text, other) => {
    const references = index.references[n];
    const nearest = references[jaxmt.nearest(text, references)] ?? "";
    return [
      h("dt", {}, data.systems[system]),
      h("dd", { dir: "auto" }, jaxmt.diff(text, nearest, { other })),
    ];
  };
  return [
    h("a", { href: `#sentences/${n + 1}` }, `sentence ${n + 1}`),
    ` ${jaxmt.signed(jaxmt.gain(data, index, n, 0, last), 1)} ${data.metrics[0].label}, turned by ${jaxmt.causes[causes[n]][0]}`,
    h(
      "dl",
      { class: "texts small" },
      line(0, pair[0], pair[1]),
      line(last, pair[1], pair[0]),
    ),
  ];
};
