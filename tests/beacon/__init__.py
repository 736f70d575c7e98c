"""Pages from a cache, which send their hits themselves."""
