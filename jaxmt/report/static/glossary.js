// What the features mean, for readers who do not know their names.
"use strict";

jaxmt.meanings = {
  LanguageModel: "log probability of the target words",
  LanguageModel_OOV: "target words that the language model does not know",
  WordPenalty: "length of the translation in words",
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
