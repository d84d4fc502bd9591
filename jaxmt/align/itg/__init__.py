"""ITG word alignment: forests of bi-spans, rules, pruning, features."""
