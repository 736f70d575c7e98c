"""Compare django_hitcount with other apps, and with the least that the servers need."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import django
from django.db import connections

from benchmarks import servers

GROUPS = (
    "recording",
    "pages",
    "site",
    "writers",
    "flushing",
    "compaction",
    "importing",
    "memory",
    "visitors",
    "rankings",
    "outages",
)
VISITORS, QUICK_VISITORS = 1_000_000, 10_000
OBJECTS, QUICK_OBJECTS = 1_000_000, 5_000


def main() -> None:
    arguments = _arguments()
    if arguments.package:
        sys.path.insert(0, str(arguments.package.resolve(strict=True)))
        print(f"The package is that of {arguments.package}, not of this checkout.")
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"
    with (
        tempfile.TemporaryDirectory(prefix="hitcount-", ignore_cleanup_errors=True) as directory,
        servers.started(Path(directory)) as left_out,
    ):
        django.setup()
        _introduce(left_out)
        try:
            _run(arguments)
        finally:
            connections.close_all()


def _introduce(left_out: Sequence[str]) -> None:
    print(f"{os.cpu_count()} cores, loopback; Django {django.__version__}.")
    print("All servers run on this machine, beside what calls them: read ratios, not times.")
    print("MariaDB and PostgreSQL wait for the disk at COMMIT, as they do by default.")
    for name in left_out:
        print(f"LEFT OUT: {name} is not installed, so nothing is measured on it.")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        choices=GROUPS,
        help="run only this group; may be given more than once",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a short run that shows that everything works; its figures mean nothing",
    )
    parser.add_argument(
        "--visitors", type=int, help=f"visitors in the group visitors; {VISITORS:,} by default"
    )
    parser.add_argument(
        "--objects", type=int, help=f"objects in the group rankings; {OBJECTS:,} by default"
    )
    parser.add_argument("--package", type=Path, help="measure the package in another checkout")
    return parser.parse_args()


def _run(arguments: argparse.Namespace) -> None:
    # These modules import models, which works only after django.setup().
    from benchmarks.databases import make_tables
    from benchmarks.options import Options
    from benchmarks.report import print_summary

    aliases = [alias for alias in connections if alias != "default"]
    for alias in aliases:
        make_tables(alias)
    quick = arguments.quick
    visitors = arguments.visitors or (QUICK_VISITORS if quick else VISITORS)
    objects = arguments.objects or (QUICK_OBJECTS if quick else OBJECTS)
    options = Options(quick=quick, databases=aliases, visitors=visitors, objects=objects)
    targets = []
    for group in arguments.only or GROUPS:
        targets += import_module(f"benchmarks.{group}").run(options)
    if targets:
        print_summary(targets)


if __name__ == "__main__":
    main()
