"""Text on the host: files, vocabularies, trees, links, ragged arrays."""
