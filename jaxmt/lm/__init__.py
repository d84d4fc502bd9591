"""n-gram language models: estimation, ARPA files, the device automaton."""
