"""Files to tune on: k-best lists of five toolkits, Moses' tuning data."""
