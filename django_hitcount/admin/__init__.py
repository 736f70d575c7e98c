"""The admin: reports of hits, and what a ModelAdmin inherits to show them."""
