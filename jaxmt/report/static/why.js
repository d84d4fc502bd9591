// Why one derivation won: the score difference of two derivations, by feature
// and by rule, under two systems.
"use strict";

// Numbers of a comparison. `one` and `two` are derivations, found by the systems
// `first` and `second`. Weights of the second system are scaled so that their
// absolute values sum to the first's: that changes no decision, and differences
// can then be compared.
jaxmt.compare = (context, one, two, first, second) => {
  const size = (weights) =>
    weights.reduce((sum, w) => sum + Math.abs(w), 0) || 1;
  const before = context.weights[first];
  const scale = size(before) / size(context.weights[second]);
  const after = context.weights[second].map((w) => w * scale);
  const differ = (system) => {
    const [a, b] = [
      jaxmt.totals(context, one, system),
      jaxmt.totals(context, two, system),
    ];
    return b.map((value, place) => value - a[place]);
  };
  const [old, fresh] = [differ(first), differ(second)];
  const rows = context.features.map((name, place) => ({
    name,
    old: old[place],
    fresh: fresh[place],
    before: old[place] * before[place],
    after: fresh[place] * after[place],
    probabilities: (fresh[place] - old[place]) * before[place],
    weights: fresh[place] * (after[place] - before[place]),
    newWeights: old[place] * after[place],
  }));
  const sum = (key) => rows.reduce((total, row) => total + row[key], 0);
  // Features that the page has no values of (sparse ones) are the rest.
  const restBefore = two.z[first] - one.z[first] - sum("before");
  const restAfter = (two.z[second] - one.z[second]) * scale - sum("after");
  const other = Math.abs(restBefore) + Math.abs(restAfter) > 0.02;
  if (other)
    rows.push({
      name: "other features",
      old: null,
      fresh: null,
      before: restBefore,
      after: restAfter,
      probabilities: 0,
      weights: restAfter - restBefore,
      newWeights: restAfter,
    });
  return {
    rows,
    before: sum("before"),
    after: sum("after"),
    probabilities: sum("probabilities"),
    weights: sum("weights"),
    newWeights: sum("newWeights"), // with the old rule probabilities
    newProbabilities: sum("before") + sum("probabilities"), // with old weights
    scale,
  };
};

// The rules that only one of two derivations uses.
jaxmt.ruleDifference = (context, one, two) => {
  const count = (view) => {
    const found = new Map();
    for (const [rule] of view.n) found.set(rule, (found.get(rule) ?? 0) + 1);
    return found;
  };
  const [a, b] = [count(one), count(two)];
  const out = [];
  for (const rule of new Set([...a.keys(), ...b.keys()])) {
    const times = (b.get(rule) ?? 0) - (a.get(rule) ?? 0);
    if (times) out.push({ rule: context.rules[rule], times });
  }
  return out;
};

// p(rule | source side) of a rule under a system; null for glue and copies.
jaxmt.chance = (context, rule, system) => {
  const place = context.features.indexOf("rule_given_source");
  if (place < 0 || rule.k === "glue" || rule.k === "copy") return null;
  const found = (rule.v[system] ?? []).find(([name]) => name === place);
  return Math.exp(found ? found[1] : 0);
};

// The rule of the second derivation that gained most, and the rule of the first
// that lost most, in sentences.
jaxmt.movedRules = (context, one, two, first, second, names) => {
  const moved = jaxmt
    .ruleDifference(context, one, two)
    .map(({ rule, times }) => {
      const old = jaxmt.chance(context, rule, first);
      const fresh = jaxmt.chance(context, rule, second);
      return { rule, times, old, fresh, change: fresh - old };
    })
    .filter(({ old }) => old !== null);
  const tell = ({ rule, old, fresh }, verb, name) =>
    `Of the rules that only ${name}'s translation uses, “${jaxmt.rulePlain(rule)}” ${verb} most: p(rule | source side) from ${old.toFixed(3)} to ${fresh.toFixed(3)}.`;
  const gained = moved
    .filter(({ times, change }) => times > 0 && change > 0.001)
    .sort((a, b) => b.change - a.change);
  const lost = moved
    .filter(({ times, change }) => times < 0 && change < -0.001)
    .sort((a, b) => a.change - b.change);
  return [
    ...gained.slice(0, 1).map((one) => tell(one, "gained", names[1])),
    ...lost.slice(0, 1).map((one) => tell(one, "lost", names[0])),
  ];
};

// Names of the features that speak most for the second derivation (sign 1) or
// for the first (sign -1), as "name 1.20".
jaxmt.chief = (rows, key, sign, number = 3) =>
  rows
    .filter((row) => row[key] * sign > 0.005)
    .sort((one, two) => Math.abs(two[key]) - Math.abs(one[key]))
    .slice(0, number)
    .map((row) => `${row.name} ${Math.abs(row[key]).toFixed(2)}`)
    .join(", ");

// Whether rule probabilities or weights changed the choice, in one sentence.
jaxmt.inShort = (found, [one, two]) => {
  const { before, after, newWeights, newProbabilities } = found;
  if (before > 1e-3)
    return `In short: the search. ${one}'s own model prefers ${two}'s translation, but its beam had lost it.`;
  if (after < -1e-3)
    return `In short: the search. ${two}'s model still prefers ${one}'s translation, but its beam lost it.`;
  if (Math.abs(found.probabilities) < 1e-3)
    return "In short: the new weights. The rule probabilities of both derivations are the same.";
  const [rules, weights] = [newProbabilities > 0, newWeights > 0];
  const alone =
    rules && weights
      ? "either the new rule probabilities or the new weights. Each alone would have turned it."
      : rules
        ? "the new rule probabilities. With the old weights they would have turned it, too; the new weights alone would not."
        : weights
          ? "the new weights. With the old rule probabilities they would have turned it, too; the new rule probabilities alone would not."
          : "both. Neither the new rule probabilities nor the new weights alone would have turned it.";
  return `In short: ${alone}`;
};

// The story in sentences. `parts` are the ranks of the second derivation in the
// first system's search, or undefined.
jaxmt.story = (found, names, parts) => {
  const [one, two] = names;
  const out = [jaxmt.inShort(found, names)];
  const { before, after, rows } = found;
  // Says which translation a system prefers, and which features speak for it.
  const verdict = (system, value, key) => {
    const sign = value > 0 ? 1 : -1;
    const reasons = jaxmt.chief(rows, key, sign) || "nothing above 0.01";
    const objections = jaxmt.chief(rows, key, -sign) || "nothing above 0.01";
    return `${system} scores the translation of ${value > 0 ? two : one} higher by ${Math.abs(value).toFixed(2)}. For it speak ${reasons}; against it ${objections}.`;
  };
  out.push(verdict(one, before, "before"));
  if (before > 1e-3)
    out.push(
      `So ${one} made a search error: it likes ${two}'s derivation better than its own, but its beam had lost it.`,
    );
  out.push(verdict(two, after, "after"));
  if (after < -1e-3)
    out.push(
      `So ${two} made a search error: its beam lost the derivation of ${one}, which it likes better.`,
    );
  const shift = after - before;
  if (before <= 0 && after > 0) {
    const share = (value) => `${jaxmt.signed(value)} of ${jaxmt.signed(shift)}`;
    out.push(
      `What turned it: new rule probabilities ${share(found.probabilities)}, most of it through ${jaxmt.chief(rows, "probabilities", Math.sign(found.probabilities)) || "none"}; new weights ${share(found.weights)}, most of it through ${jaxmt.chief(rows, "weights", Math.sign(found.weights)) || "none"}.`,
    );
  }
  if (parts) {
    const lost = parts
      .filter((part) => !part[6])
      .sort((a, b) => a[1] - a[0] - (b[1] - b[0]));
    if (!lost.length)
      out.push(
        `In ${one}'s search every part of ${two}'s derivation stayed in the beam: it lost by score, not by pruning.`,
      );
    else
      out.push(
        `In ${one}'s search ${two}'s derivation fell out of the beam at ${lost[0][0]}–${lost[0][1]} (${lost.length} of ${parts.length} parts lost).`,
      );
  }
  return out;
};

// Draws the comparison of two derivations.
jaxmt.why = (context, one, two, first, second, parts) => {
  const { h } = jaxmt;
  if (!one || !two)
    return h("p", { class: "faint" }, "one of the two has no derivation");
  const found = jaxmt.compare(context, one, two, first, second);
  const names = [context.systems[first], context.systems[second]];
  const same = JSON.stringify(one.n) === JSON.stringify(two.n);
  const rows = found.rows.filter(
    (row) => Math.abs(row.before) > 5e-4 || Math.abs(row.after) > 5e-4,
  );
  rows.sort(
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
  const table = jaxmt.table(
    rows.map((row) => ({
      feature: jaxmt.feature(row.name),
      [`under ${names[0]}`]: bar(row.before),
      [`under ${names[1]}`]: bar(row.after),
      "by probabilities": row.probabilities,
      "by weights": row.weights,
    })),
    { digits: 2 },
  );
  return h(
    "div",
    { class: "why" },
    same
      ? h("p", {}, "Both systems chose the same derivation.")
      : h(
          "ol",
          {},
          [
            ...jaxmt.story(found, names, parts),
            ...jaxmt.movedRules(context, one, two, first, second, names),
          ].map((line) => h("li", {}, line)),
        ),
    h(
      "p",
      { class: "small faint" },
      `Score of ${names[1]}'s derivation less that of ${names[0]}'s, by feature: green speaks for ${names[1]}'s, red for ${names[0]}'s. Weights of ${names[1]} are scaled by ${found.scale.toFixed(2)}, so that both sets have the same size; that changes no decision.`,
    ),
    table,
    jaxmt.glossary(rows.map((row) => row.name)),
    h("h3", {}, "Rules that only one of them uses"),
    jaxmt.ruleTable(context, one, two, first, second, names),
    context.trained?.includes(names[1])
      ? h(
          "p",
          { class: "small faint" },
          `Training raises p(rule | source side) of the rules in the derivations that it learns from; the overview says which these are for ${names[1]}, the section on training which rules moved most. Worth: what a rule's own features add to the score.`,
        )
      : null,
  );
};

// Rules of one derivation only, with their probability before and after.
jaxmt.ruleTable = (context, one, two, first, second, names) => {
  const worth = (rule, system) =>
    (rule.v[system] ?? []).reduce(
      (sum, [name, v]) => sum + v * context.weights[system][name],
      0,
    );
  const change = ({ rule, times }) =>
    Math.sign(times) *
    (jaxmt.chance(context, rule, second) - jaxmt.chance(context, rule, first));
  const rows = jaxmt
    .ruleDifference(context, one, two)
    .sort(
      (a, b) =>
        Math.sign(b.times) - Math.sign(a.times) || change(b) - change(a),
    )
    .map(({ rule, times }) => {
      const row = {
        "used by": times > 0 ? names[1] : names[0],
        rule: jaxmt.ruleText(rule),
        kind: rule.k,
        "seen in training": rule.c ?? 0,
      };
      row[`p(rule | source) ${names[0]}`] = jaxmt.chance(context, rule, first);
      row[names[1]] = jaxmt.chance(context, rule, second);
      row[`worth under ${names[0]}`] = worth(rule, first);
      row[`under ${names[1]}`] = worth(rule, second);
      return row;
    });
  return rows.length
    ? jaxmt.table(rows, { digits: 3 })
    : jaxmt.h("p", { class: "faint" }, "none");
};
