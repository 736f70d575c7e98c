"""How an article's path is written: no empty segment, nothing unprintable."""

from __future__ import annotations

from urllib.parse import quote

# The site needs these first segments for itself.
RESERVED_SEGMENTS = frozenset({"admin", "static", "-"})


def clean_path(path: str) -> str:
    printable = "".join(character for character in path if character.isprintable())
    return "/".join(segment for segment in printable.split("/") if segment)


def is_reserved(path: str) -> bool:
    return path.partition("/")[0] in RESERVED_SEGMENTS


def path_to_url(path: str) -> str:
    return "/" + quote(path)
