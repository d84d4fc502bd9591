"""The synchronous grammar behind the embedded corpus.

Tables: `lexicon`, `names`, `nouns`, `verbs`, `patterns`. Types: `structure`.
English forms: `morphology`, `english`. Productions, from small to large:
`modifiers`, `people`, `nominals`, `adverbials`, `settings`, `predicates`,
`constructions`, `clauses`, `relatives`, `states`, `statements`, `questions`,
`sentences`. `jaxmt.corpora.synthetic` draws a corpus from them.
"""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "adverbials",
  "clauses",
  "constructions",
  "english",
  "lexicon",
  "modifiers",
  "morphology",
  "names",
  "nominals",
  "nouns",
  "patterns",
  "people",
  "predicates",
  "questions",
  "relatives",
  "sentences",
  "settings",
  "statements",
  "states",
  "structure",
  "verbs",
)
