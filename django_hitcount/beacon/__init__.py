"""The beacon: pages that a cache serves to everybody send their hits themselves."""
