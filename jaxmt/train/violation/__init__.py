"""Violation-fixing learning of weights on the bitext.

Zhao, Huang, Mi & Ittycheriah (2014), "Hierarchical MT training using
max-violation perceptron", is "the paper" in this package.
"""
