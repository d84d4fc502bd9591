"""The embedded corpus: a synthetic Chinese-English treebank."""
