// Two derivations compared under two systems: differences of scores, by feature
// and by rule, and what turned the choice.
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

// The rules that only one of two derivations uses: {number, rule, times}, times
// being positive for those of the second.
jaxmt.ruleDifference = (context, one, two) => {
  const times = new Map();
  for (const [rule] of two.n) times.set(rule, (times.get(rule) ?? 0) + 1);
  for (const [rule] of one.n) times.set(rule, (times.get(rule) ?? 0) - 1);
  return [...times]
    .filter(([, count]) => count)
    .map(([number, count]) => ({
      number,
      rule: context.rules[number],
      times: count,
    }));
};

// p(rule | source side) of a rule under a system; null for glue and copies.
jaxmt.chance = (context, rule, system) => {
  const place = context.features.indexOf("rule_given_source");
  if (place < 0 || rule.k === "glue" || rule.k === "copy") return null;
  const found = (rule.v[system] ?? []).find(([name]) => name === place);
  return Math.exp(found ? found[1] : 0);
};

// What a rule's own features add to the score, by the values that one system
// has of them and by the weights of another.
jaxmt.worth = (context, rule, system, weights = system) =>
  (rule.v[system] ?? []).reduce(
    (sum, [name, value]) => sum + value * context.weights[weights][name],
    0,
  );

// The same rules with what they add to the difference of the scores: `before`
// and `after` under the two systems, `effect` through the new probabilities
// alone. Those that speak most for the second derivation come first.
jaxmt.ruleEffects = (context, one, two, first, second, scale) =>
  jaxmt
    .ruleDifference(context, one, two)
    .map(({ number, rule, times }) => {
      const before = times * jaxmt.worth(context, rule, first);
      return {
        number,
        rule,
        times,
        old: jaxmt.chance(context, rule, first),
        fresh: jaxmt.chance(context, rule, second),
        before,
        after: times * scale * jaxmt.worth(context, rule, second),
        effect: times * jaxmt.worth(context, rule, second, first) - before,
      };
    })
    .sort((a, b) => b.effect - a.effect);

// What can turn a choice, by name: [label, what it means].
jaxmt.causes = {
  probabilities: [
    "the new rule probabilities",
    "With the old weights they would have turned it, too; the new weights alone would not.",
  ],
  weights: [
    "the new weights",
    "With the old rule probabilities they would have turned it, too; the new rule probabilities alone would not.",
  ],
  either: [
    "either the new rule probabilities or the new weights",
    "Each alone would have turned it.",
  ],
  both: [
    "both together",
    "Neither the new rule probabilities nor the new weights alone would have turned it.",
  ],
  "search before": [
    "the search",
    "The first system's own model prefers the second translation, but its beam had lost it.",
  ],
  "search after": [
    "the search",
    "The second system's model still prefers the first translation, but its beam lost it.",
  ],
};

// The name of what turned a choice.
jaxmt.cause = ({ before, after, newWeights, newProbabilities }) => {
  if (before > 1e-3) return "search before";
  if (after < -1e-3) return "search after";
  const [rules, weights] = [newProbabilities > 0, newWeights > 0];
  if (rules) return weights ? "either" : "probabilities";
  return weights ? "weights" : "both";
};

// The cause of every changed translation: an array with null for those that did
// not change or have no derivations. Remembered by pair of systems.
jaxmt.allCauses = async (data, index, one, two) => {
  const known = (jaxmt.allCauses.known ??= new Map());
  const key = `${one} ${two}`;
  if (!known.has(key))
    known.set(key, jaxmt.findCauses(data, index, one, two));
  return known.get(key);
};
jaxmt.findCauses = async (data, index, one, two) => {
  const context = { ...data, rules: await jaxmt.block("rules") };
  const [before, after] = [one, two].map((n) => index.outputs[data.outputs[n]]);
  const out = [];
  for (let first = 0; first < data.size; first += data.chunk) {
    const some = await jaxmt.block(`sentences-${first / data.chunk}`);
    some.forEach(({ d }, place) => {
      const changed = before[first + place] !== after[first + place];
      out.push(
        changed && d[one] && d[two]
          ? jaxmt.cause(jaxmt.compare(context, d[one], d[two], one, two))
          : null,
      );
    });
  }
  return out;
};
