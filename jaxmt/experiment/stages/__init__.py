"""Stages of experiments: pure functions from artefacts to artefacts.

One module for each kind of stage, so that a change of code redoes only the
stages that could run it (`jaxmt.provenance.code_version`).
"""
