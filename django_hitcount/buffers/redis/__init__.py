"""The buffer in Redis: hits wait there, and totals are read from there. Needs the extra "redis"."""
