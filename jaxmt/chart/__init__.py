"""The hypergraph core: charts, beam search, forests, derivations."""
