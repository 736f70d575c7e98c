"""What runs in the background: flush, compact, prune, forget."""
