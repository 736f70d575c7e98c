"""The blocks of the docs, pasted in order, make a new project that counts hits."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from django_hitcount.db.tables import HitSlot
from tests import settings as test_settings
from tests.browsers import BROWSER
from tests.servers import HOST, Valkey, die_with_parent, reserve_port, wait_until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        test_settings.DATABASE != "sqlite", reason="a new project has its own SQLite database"
    ),
]

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^( *)\.\. code-block:: (\S+)\n\n((?:\1   .*\n|\n)+)", re.MULTILINE)
FILE = re.compile(r"\A(?:# |\{# )(\S+)( \(the whole file\))?(?: #\})?\n")
README = ROOT / "README.rst"
TUTORIAL = ROOT / "docs" / "tutorial.rst"
REDIS_PAGE = ROOT / "docs" / "redis.rst"
SKIPPED = ("pip ", "python manage.py runserver", "python manage.py createsuperuser")
"""Everything is installed here, serve() chooses a port, and nobody types a password."""
PASTED_REDIS = "127.0.0.1:6379"
SECONDS = 300


class Project:
    """A new project, and the commands for it."""

    def __init__(self, directory: Path, redis_port: int) -> None:
        self.directory = directory
        self.redis = f"{HOST}:{redis_port}"
        self.processes: list[subprocess.Popen[bytes]] = []
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        del environment["DJANGO_SETTINGS_MODULE"]
        self.environment = environment

    def section(self, page: Path, title: str) -> None:
        """Do what a section of a page says: paste its files, run its commands."""
        pattern = rf"^{title}\n=+\n(.*?)^\S[^\n]*\n==="
        text = re.search(pattern, page.read_text(), re.MULTILINE | re.DOTALL)
        assert text, title
        for indent, language, body in BLOCK.findall(text[1]):
            block = re.sub(rf"^{indent}   ", "", body, flags=re.MULTILINE).strip() + "\n"
            if language == "sh":
                self.type(block)
            else:
                self.paste(block)

    def paste(self, block: str) -> None:
        file = FILE.match(block)
        assert file, f"no file is named for this block:\n{block}"
        path = self.directory / file[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w" if file[2] else "a") as target:
            target.write("\n" + block.replace(PASTED_REDIS, self.redis))

    def type(self, commands: str) -> None:
        """Run commands, and start the worker, which does not end."""
        for command in commands.splitlines():
            if command.startswith("celery "):
                self.start(command)
            elif not command.startswith(SKIPPED):
                self.run(command)

    def run(self, command: str) -> str:
        done = subprocess.run(
            self._words(command),
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def start(self, command: str) -> None:
        with (self.directory / "console").open("ab") as console:
            process = subprocess.Popen(
                self._words(command),
                cwd=self.directory,
                env=self.environment,
                stdout=console,
                stderr=console,
                preexec_fn=die_with_parent,
            )
        self.processes.append(process)

    def _words(self, command: str) -> list[str]:
        program, *words = shlex.split(command)
        modules = {"python": [], "django-admin": ["-m", "django"], "celery": ["-m", "celery"]}
        return [sys.executable, *modules[program], *words]

    def serve(self) -> str:
        """Start runserver; returns the address of the first article."""
        address = f"{HOST}:{reserve_port()}"
        self.start(f"python manage.py runserver --noreload {address}")
        page, server = f"http://{address}/articles/1/", self.processes[-1]
        wait_until(lambda: answers(page) or server.poll() is not None, "runserver")
        assert server.poll() is None, self.console()
        return page

    def console(self) -> str:
        return (self.directory / "console").read_text()

    def stop(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.wait(SECONDS)
        self.processes.clear()


def get(url: str, **headers: str) -> str:
    request = urllib.request.Request(url, headers={**BROWSER, **headers})
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return re.sub(r"\s+", " ", answer.read().decode())


def answers(url: str) -> bool:
    try:
        return bool(get(url, **{"user-agent": "curl/8.5.0"}))
    except OSError:
        return False


@pytest.fixture
def project(tmp_path: Path, valkey: Valkey) -> Iterator[Project]:
    project = Project(tmp_path, valkey.port)
    yield project
    for process in project.processes:
        process.kill()
        process.wait()


def test_blocks_pasted_one_after_the_other_make_a_site_that_counts(project, redis):
    project.section(README, "Quick start")
    page = project.serve()
    assert [get(page), get(page)] == [
        " <h1>Tea</h1> <p>1 views</p> ",
        " <h1>Tea</h1> <p>2 views</p> ",
    ]
    assert "User-Agent 'curl/8.5.0'), refusal 'bot'" in project.console()
    project.stop()

    project.section(README, "Count visitors")
    page = project.serve()
    assert [get(page), get(page)] == [" <h1>Tea</h1> <p>3 views</p> <p>1 readers today</p> "] * 2
    assert "refusal 'repeat': The visitor has been counted already." in project.console()
    project.stop()

    project.section(REDIS_PAGE, "Set it up")
    assert "django_hitcount." not in project.run("python manage.py check")
    page = project.serve()
    second = {"user-agent": BROWSER["user-agent"].replace("140", "141")}
    assert get(page, **second).startswith(" <h1>Tea</h1> <p>4 views</p> ")
    wait_until(lambda: in_tables(project) == 4, "the flush by Celery's beat")
    project.stop()


READ_ADMIN = """
from django.contrib.auth.models import User
from django.test import Client
User.objects.create_superuser("ann")
client = Client(headers={"host": "127.0.0.1"})
client.force_login(User.objects.get())
for path in ("articles/article/", "articles/article/1/statistics/", "django_hitcount/hitslot/"):
    print(path, client.get(f"/admin/{path}").status_code)
"""


def test_tutorial_ends_with_visitors_a_popular_list_and_the_admin(project):
    project.section(TUTORIAL, "A blog")
    page = project.serve()
    assert get(page) == " <h1>Tea</h1> "
    project.stop()

    project.section(TUTORIAL, "Count views")
    assert "No changes detected" in project.run("python manage.py makemigrations")
    page = project.serve()
    assert [get(page), get(page)] == [
        " <h1>Tea</h1> <p>1 views</p> ",
        " <h1>Tea</h1> <p>2 views</p> ",
    ]
    project.stop()

    project.section(TUTORIAL, "Count visitors")
    project.section(TUTORIAL, "List what is popular")
    project.section(TUTORIAL, "Look at the numbers")
    page = project.serve()
    shown = " <h1>Tea</h1> <p>3 views</p> <p>1 readers today, 3 views this week</p> "
    assert [get(page), get(page)] == [shown] * 2
    start = get(page.removesuffix("articles/1/"))
    assert start.endswith(" <h2>Popular this week</h2> <p>Tea: 3 views</p> ")
    read = shlex.quote(READ_ADMIN)
    assert re.findall(r"/ (\d+)", project.run(f"python manage.py shell -c {read}")) == ["200"] * 3
    assert "django_hitcount." not in project.run("python manage.py check")
    project.stop()


def in_tables(project: Project) -> int:
    with closing(sqlite3.connect(project.directory / "db.sqlite3", timeout=SECONDS)) as database:
        (hits,) = database.execute(f"SELECT SUM(hits) FROM {HitSlot._meta.db_table}").fetchone()
        return int(hits)
