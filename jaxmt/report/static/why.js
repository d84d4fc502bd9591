// Why one derivation won: what turned the choice, which rules training moved
// and where it saw them, and the score difference by feature and by rule.
"use strict";

// Names of the features that speak most for the second derivation (sign 1) or
// for the first (sign -1), as "name 1.20".
jaxmt.chief = (rows, key, sign, number = 3) => {
  const most = rows
    .filter((row) => row[key] * sign > 0.005)
    .sort((one, two) => Math.abs(two[key]) - Math.abs(one[key]))
    .slice(0, number);
  if (!most.length) return ["nothing above 0.01"];
  return most.flatMap((row, place) => [
    place ? ", " : "",
    jaxmt.feature(row.name),
    ` ${Math.abs(row[key]).toFixed(2)}`,
  ]);
};

// The answer in one line.
jaxmt.inShort = (found) => {
  const [label, meaning] = jaxmt.causes[jaxmt.cause(found)];
  const { h } = jaxmt;
  return h(
    "p",
    { class: "verdict" },
    "What turned the choice: ",
    h("b", {}, label),
    `. ${meaning}`,
  );
};

// Who wins with old and new probabilities and weights: two times two scores.
jaxmt.fourCases = (found, [one, two]) => {
  const { h } = jaxmt;
  const cell = (value, own) =>
    h(
      "td",
      { class: value > 0 ? "good" : "bad" },
      `${value > 0 ? two : one}'s by ${Math.abs(value).toFixed(2)}`,
      own ? h("span", { class: "small faint" }, ` (${own})`) : null,
    );
  const row = (name, values) => h("tr", {}, h("th", {}, name), values);
  const same = Math.abs(found.probabilities) < 1e-3;
  return h(
    "table",
    { class: "cases" },
    h("caption", { class: "small faint" }, "Which of the two derivations scores higher?"),
    h(
      "thead",
      {},
      row("", [h("th", {}, "with the old weights"), h("th", {}, "the new ones")]),
    ),
    h(
      "tbody",
      {},
      row(same ? "rule probabilities: no change" : "old rule probabilities", [
        cell(found.before, one),
        cell(same ? found.after : found.newWeights, same ? two : ""),
      ]),
      same
        ? null
        : row("new rule probabilities", [
            cell(found.newProbabilities, ""),
            cell(found.after, two),
          ]),
    ),
  );
};

// The story in sentences, each a list of texts and elements. `parts` are the
// ranks of the second derivation in the first system's search, or undefined.
jaxmt.story = (found, names, parts) => {
  const [one, two] = names;
  const { before, after, rows } = found;
  // Says which translation a system prefers, and which features speak for it.
  const verdict = (system, value, key) => {
    const sign = value > 0 ? 1 : -1;
    const winner = value > 0 ? two : one;
    return [
      `${system} prefers ${winner === system ? "its own" : `${winner}'s`} translation by ${Math.abs(value).toFixed(2)}. For it speak `,
      ...jaxmt.chief(rows, key, sign),
      "; against it ",
      ...jaxmt.chief(rows, key, -sign),
      ".",
    ];
  };
  const out = [verdict(one, before, "before"), verdict(two, after, "after")];
  if (before > 1e-3)
    out.push([
      `So ${one} made a search error: it likes ${two}'s derivation better than its own, but its beam had lost it.`,
    ]);
  if (after < -1e-3)
    out.push([
      `So ${two} made a search error: its beam lost the derivation of ${one}, which it likes better.`,
    ]);
  if (before <= 0 && after > 0) {
    const share = (name, key) => [
      `new ${name} ${jaxmt.signed(found[key])}, most of it through `,
      ...jaxmt.chief(rows, key, Math.sign(found[key])),
    ];
    out.push([
      `Between the two the difference moved by ${jaxmt.signed(after - before)}: `,
      ...share("rule probabilities", "probabilities"),
      "; ",
      ...share("weights", "weights"),
      ".",
    ]);
  }
  if (parts?.length) {
    const lost = parts
      .filter((part) => !part[6])
      .sort((a, b) => a[1] - a[0] - (b[1] - b[0]));
    out.push([
      lost.length
        ? `In ${one}'s search ${two}'s derivation fell out of the beam at ${lost[0][0]}–${lost[0][1]} (${lost.length} of ${parts.length} parts lost).`
        : `In ${one}'s search every part of ${two}'s derivation stayed in the beam: it lost by score, not by pruning.`,
    ]);
  }
  return out;
};

// The rules whose new probabilities did most for the second derivation, and the
// one that did most against it, with what training saw of them.
jaxmt.movedRules = (context, effects, [first, second], names) => {
  const { h } = jaxmt;
  const moved = effects.filter(
    ({ old, effect }) => old !== null && Math.abs(effect) > 0.02,
  );
  const chosen = moved.filter(({ effect }) => effect > 0).slice(0, 3);
  const worst = moved[moved.length - 1];
  if (worst && worst.effect < 0) chosen.push(worst);
  if (!chosen.length) return null;
  return [
    h("h3", {}, "Rules that training moved here"),
    h(
      "p",
      { class: "small faint" },
      "X0 or NP1 in a rule is a part that another rule translates; NP, VP and the like are constituents of the source parse.",
    ),
    chosen.map((one) =>
      h(
        "div",
        { class: "panel moved" },
        h(
          "p",
          {},
          jaxmt.ruleText(one.rule),
          h(
            "span",
            { class: "small faint" },
            ` in ${names[one.times > 0 ? 1 : 0]}'s translation`,
          ),
        ),
        h(
          "p",
          {},
          `p(rule | its source side): ${one.old.toFixed(3)} → ${one.fresh.toFixed(3)}. `,
          "This and its other probabilities move the difference of the scores by ",
          h(
            "b",
            { class: one.effect > 0 ? "good" : "bad" },
            jaxmt.signed(one.effect),
          ),
          `, ${one.effect > 0 ? "for" : "against"} ${names[1]}'s translation.`,
        ),
        jaxmt.evidence(context, one, first, second, names),
      ),
    ),
  ];
};

// What training saw of a rule: counts before and after, and sentence pairs.
jaxmt.evidence = (context, { number, rule }, first, second, names) => {
  const { h } = jaxmt;
  const count = (value) => jaxmt.number(value, 1);
  const [old, fresh] = [rule.u?.[first], rule.u?.[second]];
  const words = new Set([...rule.s, ...rule.t]);
  const marked = (line) =>
    jaxmt
      .words(line)
      .flatMap((word, place) => [
        place ? " " : "",
        words.has(word) ? h("span", { class: "word-hot" }, word) : word,
      ]);
  const share = Math.round(100 * context.interpolation);
  const mixed = share
    ? ` The new probability is ${share} % the old one, ${100 - share} % what these counts give.`
    : "";
  const told =
    context.trained?.includes(names[1]) && old && fresh
      ? `Extraction met the rule's source side ${count(old[1])} times in the training pairs, ${count(old[0])} of them as this rule. The derivations near the references that training learned from use the source side ${count(fresh[1])} times, ${count(fresh[0])} of them as this rule.${mixed}`
      : null;
  const rows = context.training?.rules[number] ?? [];
  return [
    told ? h("p", { class: "small" }, told) : null,
    rows.length
      ? h(
          "dl",
          { class: "texts small" },
          rows.flatMap((row) => [
            h("dt", {}, `training pair ${row + 1}`),
            h(
              "dd",
              {},
              h("bdi", {}, marked(context.training.texts[row][0])),
              " ‖ ",
              h("bdi", {}, marked(context.training.texts[row][1])),
            ),
          ]),
        )
      : null,
  ];
};

// Draws the comparison of two derivations.
jaxmt.why = (context, one, two, first, second, parts) => {
  const { h } = jaxmt;
  if (!one || !two)
    return h("p", { class: "faint" }, "one of the two has no derivation");
  const names = [context.systems[first], context.systems[second]];
  const found = jaxmt.compare(context, one, two, first, second);
  const effects = jaxmt.ruleEffects(
    context,
    one,
    two,
    first,
    second,
    found.scale,
  );
  const same = JSON.stringify(one.n) === JSON.stringify(two.n);
  return h(
    "div",
    { class: "why" },
    same
      ? h("p", { class: "verdict" }, "Both systems chose the same derivation.")
      : [
          jaxmt.inShort(found),
          jaxmt.fourCases(found, names),
          h(
            "ul",
            {},
            jaxmt.story(found, names, parts).map((line) => h("li", {}, line)),
          ),
          jaxmt.movedRules(context, effects, [first, second], names),
        ],
    h("h3", {}, "The difference of the scores, by feature"),
    h(
      "p",
      { class: "small faint" },
      `Score of ${names[1]}'s derivation less that of ${names[0]}'s: green speaks for ${names[1]}'s, red for ${names[0]}'s. Weights of ${names[1]} are scaled by ${found.scale.toFixed(2)}, so that both sets have the same size; that changes no decision.`,
    ),
    jaxmt.featureTable(found.rows, names),
    h("h3", {}, "Rules that only one of them uses"),
    jaxmt.ruleTable(effects, names),
    jaxmt.termList(),
  );
};

// The difference by feature under both systems, with bars.
jaxmt.featureTable = (every, names) => {
  const { h } = jaxmt;
  const rows = every
    .filter(
      (row) => Math.abs(row.before) > 5e-4 || Math.abs(row.after) > 5e-4,
    )
    .sort(
      (a, b) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before),
    );
  const most = Math.max(
    ...rows.map((row) => Math.max(Math.abs(row.before), Math.abs(row.after))),
    1e-9,
  );
  const bar = (value) =>
    h(
      "span",
      { title: jaxmt.signed(value, 3) },
      `${jaxmt.signed(value)} `,
      h("span", {
        class: "bar",
        style: {
          width: `${(Math.abs(value) / most) * 5}rem`,
          background: value < 0 ? "var(--bad)" : "var(--good)",
        },
      }),
    );
  return [
    jaxmt.table(
      rows.map((row) => ({
        feature: jaxmt.feature(row.name),
        [`under ${names[0]}`]: bar(row.before),
        [`under ${names[1]}`]: bar(row.after),
        "by new probabilities": row.probabilities,
        "by new weights": row.weights,
      })),
      { digits: 2 },
    ),
    jaxmt.glossary(rows.map((row) => row.name)),
  ];
};

// Rules of one derivation only, with their probability before and after, and
// what their own features add to the difference.
jaxmt.ruleTable = (effects, names) => {
  const { h } = jaxmt;
  if (!effects.length) return h("p", { class: "faint" }, "none");
  return [
    jaxmt.table(
      [...effects]
        .sort((a, b) => b.times - a.times || b.effect - a.effect)
        .map(({ rule, times, old, fresh, before, after, effect }) => ({
          "used by": names[times > 0 ? 1 : 0],
          rule: jaxmt.ruleText(rule),
          kind: rule.k,
          "times extracted": rule.c ?? 0,
          [`p under ${names[0]}`]: old,
          [`p under ${names[1]}`]: fresh,
          "effect of new probabilities": effect,
          [`adds under ${names[0]}`]: before,
          [`adds under ${names[1]}`]: after,
        })),
      { digits: 3 },
    ),
    h(
      "p",
      { class: "small faint" },
      "p is p(rule | its source side). “Adds” is what the rule's own features add to the difference above; the language model and the match of labels stand there alone.",
    ),
  ];
};
