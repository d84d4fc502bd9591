"""Features: names and ids, sparse vectors, weights files, templates."""
