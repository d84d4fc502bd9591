"""Host-side data: text files, vocabularies, trees, links, the corpus."""
