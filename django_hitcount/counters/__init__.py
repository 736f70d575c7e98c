"""Plain values: keys, days, hits, batches. Nothing here asks a server."""
