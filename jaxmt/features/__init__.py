"""Features of derivations, by how much they know.

    static           (rules, corpus) -> [R, F]        columns of the rule table
    per sentence     (table, rules, sentence) -> [N]  scores of rules
    per application  (application) -> names           scores of rules at spans
    stateful         state columns, init, join, final

Static features are in `jaxmt.grammar.extract.static_features`, those of
sentences and applications in `local_features`: a record with a function, made
known by `register`. The contract of stateful features is in `stateful`; the
language model and the labels are instances. The modules begin with the shortest
examples; `tests/extending_test.py` has whole ones.

Static features are chosen when a grammar is extracted. Features of sentences
and applications are chosen by `--templates` in tuning, and in decoding by the
names of weights. N-grams of the target (`string_templates`) are known to no
search: they re-rank k-best lists.
"""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "stateful",
  "feature_keys",
  "language_model",
  "local_features",
  "maxent_reordering",
  "moses_ini",
  "phrase_order",
  "rule_kernels",
  "rule_scores",
  "rule_templates",
  "selection",
  "sentence_models",
  "sparse",
  "string_templates",
  "topic_features",
  "weights",
)
