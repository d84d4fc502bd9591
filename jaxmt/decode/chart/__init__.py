"""Chart search: beam search and exact search over synchronous grammars."""
