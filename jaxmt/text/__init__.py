"""Text on the host: files, vocabularies, trees, links, ragged arrays."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__,
  "array_folder",
  "binarize",
  "bitext",
  "brackets",
  "detokenize",
  "files",
  "links",
  "ragged",
  "raw_text",
  "references",
  "trees",
  "vocabulary",
)
