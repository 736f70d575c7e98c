"""What runs in the background: flush, compact, forget."""
