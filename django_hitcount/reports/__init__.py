"""Reports: queries that return typed rows, and the charts and CSV made of them."""
