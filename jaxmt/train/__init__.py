"""Learning θ: rule probabilities from derivations of the training text."""
