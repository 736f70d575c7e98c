"""The articles of the site: the samples, or the pages of a log."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from blog.models import Article
from django.utils import timezone

from demo.access_log import PageRequest

SAMPLES = Path(__file__).parent / "sample_articles"
DAYS_APART = 7
TITLE_LENGTH = 200


def create_samples() -> None:
    """The file's name is the path; its first line is the title. The first one is the newest."""
    morning = timezone.localtime().replace(hour=8, minute=0, second=0, microsecond=0)
    articles = []
    files = sorted(SAMPLES.glob("*.txt"), key=lambda file: (file.stem == "index", file.stem))
    for number, file in enumerate(files):
        title, _, body = file.read_text(encoding="utf-8").partition("\n")
        path = "" if file.stem == "index" else file.stem
        published_at = morning - timedelta(days=1 + number * DAYS_APART)
        articles.append(
            Article(path=path, title=title, body=body.strip(), published_at=published_at)
        )
    Article.objects.bulk_create(articles)


def create_pages_of(requests: Iterable[PageRequest]) -> None:
    """One article for each page that the log has a request for."""
    paths = dict.fromkeys(request.path for request in requests)
    Article.objects.bulk_create(
        [
            Article(path=path, title=title_of(path), body=f"The log calls this page /{path}.")
            for path in paths
        ],
        batch_size=500,
    )


def title_of(path: str) -> str:
    name = path.rpartition("/")[2].partition(".")[0] or path
    words = name.replace("-", " ").replace("_", " ").strip()
    return (words[:1].upper() + words[1:] or "The front page")[:TITLE_LENGTH]
