"""Headers that browsers send."""

from __future__ import annotations

BROWSER = {
    "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
}
