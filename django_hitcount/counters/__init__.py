"""Plain values: keys, days, hits, batches. Nothing here connects to a server."""
