// What features and words mean, for readers who do not know them.
"use strict";

jaxmt.meanings = {
  LanguageModel: "log probability of the target words",
  LanguageModel_OOV: "target words that the language model does not know",
  WordPenalty: "minus the number of words of the translation",
  rule_given_source: "log p(rule | its source side)",
  rule_given_target: "log p(rule | its target side)",
  rule_given_lhs: "log p(rule | its left-hand side)",
  source_given_target: "log p(source side | target side)",
  target_given_source: "log p(target side | source side)",
  lex_source_given_target: "log p(source words | target words), word by word",
  lex_target_given_source: "log p(target words | source words), word by word",
  rule_count: "number of rules",
  hiero: "number of Hiero rules, which know no syntax",
  tree_to_string: "number of rules that match the source parse",
  glue: "number of glue rules, which join parts from left to right",
  pass_through: "words that no rule knows and that are copied",
  Match: "sites filled by a part with the label they ask for",
  Mismatch: "sites filled by a part with another label",
  Distortion: "how far phrases jump in the source",
  Distortion0: "how far phrases jump in the source",
};

// The words of the report.
jaxmt.terms = {
  rule: "A source side and its translation; X0 or NP1 in both stand for parts that other rules translate. Rules are taken from the training pairs.",
  derivation:
    "The rules that make a translation, as a tree over the source sentence.",
  "score, features, weights":
    "A derivation's score is the sum of its features, each times its weight. The system takes the derivation with the highest score that it finds. Tuning chooses the weights.",
  "rule probabilities":
    "Features of every rule, as p(rule | its source side). They come from counts: of all rules in the training pairs, or, after training, of the rules that training's derivations use.",
  "loss-augmented training":
    "Searches every training sentence for derivations that score well, lie near the reference (a small loss) and stay in the beam, and counts the rules of these. Rules that help to reach references gain, others lose.",
  "fall-back":
    "A training sentence without a derivation near its reference: it counts the rules of what the search finds.",
  "beam, search error":
    "The search keeps a number of hypotheses for every span of the source, the beam. It makes an error where the beam loses a derivation that the system itself scores higher than what it finds.",
  "BLEU, TER, chrF":
    "Scores of translations against references; for single sentences BLEU is smoothed (BLEU+1).",
};

jaxmt.termList = () =>
  jaxmt.h(
    "details",
    {},
    jaxmt.h("summary", {}, "What the words of this report mean"),
    jaxmt.h(
      "dl",
      { class: "texts" },
      Object.entries(jaxmt.terms).flatMap(([name, meaning]) => [
        jaxmt.h("dt", {}, name),
        jaxmt.h("dd", {}, meaning),
      ]),
    ),
  );

// The name of a feature; pointing at it tells what it means.
jaxmt.feature = (name) => {
  const meaning = jaxmt.meanings[name];
  return meaning ? jaxmt.h("abbr", { title: meaning }, name) : name;
};

// The features of some names with their meanings, to be opened.
jaxmt.glossary = (names) => {
  const known = names.filter((name) => jaxmt.meanings[name]);
  if (!known.length) return null;
  const { h } = jaxmt;
  return h(
    "details",
    { class: "small" },
    h("summary", {}, "What the features are"),
    h(
      "dl",
      { class: "texts" },
      known.flatMap((name) => [
        h("dt", {}, name),
        h("dd", {}, jaxmt.meanings[name]),
      ]),
    ),
    h(
      "p",
      {},
      "A translation's score is the sum of its features, each times its weight.",
    ),
  );
};
