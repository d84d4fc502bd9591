"""Search: translation models, charts, forced decoding, derivations."""
