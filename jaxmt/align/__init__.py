"""Word alignment: Model 1, HMM and the diagonal model; symmetrisation."""
