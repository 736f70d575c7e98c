"""
No schedule of writers, flushers and readers breaks a promise, whatever fails in between.

The environment variable HITCOUNT_TEST_SCHEDULES says how many schedules to try in each scenario.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest

from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hits
from tests import settings as test_settings
from tests.laws.schedules.explorer import Explorer
from tests.laws.schedules.opening import opened
from tests.laws.schedules.processes import ask
from tests.laws.schedules.replaying import replay, tell
from tests.laws.schedules.results import Violation
from tests.laws.schedules.scenarios import FIRST, SCENARIOS, Scenario, articles, one_hit
from tests.servers import Valkey

SCHEDULES = int(os.environ.get("HITCOUNT_TEST_SCHEDULES", "1000"))

pytestmark = pytest.mark.skipif(
    test_settings.DATABASE != "sqlite", reason="schedules have their own SQLite tables"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    server = Valkey(tmp_path_factory.mktemp("schedules"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def no_log() -> Iterator[None]:
    """Actors log each failure, thousands of times."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_no_schedule_breaks_a_promise(server, scenario):
    with opened(scenario, server) as explorer:
        result = explorer.explore(schedules=SCHEDULES)
        reach = "all" if result.is_complete else "the first"
        print(f"{reach} {result.schedules} schedules, up to a cost of {result.cost}")
        found = [describe(explorer, violation) for violation in result.violations]

    assert not found, found[0]


def describe(explorer: Explorer, violation: Violation) -> str:
    """What was broken, and a schedule to replay."""
    player = tell(explorer, violation.choices)
    return "\n".join([": ".join(violation.problem), "", repr(player.lines), "", *player.story])


def test_a_schedule_ends_as_before_without_what_was_remembered(server):
    """Each message and statement is then run once more, in the order of this schedule alone."""
    scenario = Scenario("again", {"writer": one_hit, "flusher": flush_hits}, most_cost=1)
    with opened(scenario, server) as explorer:
        result = explorer.explore(stop_at=9)
        assert result.is_complete
        expected = [tell(explorer, choices) for choices in result.samples[-2:]]

    assert expected
    for player in expected:
        with opened(scenario, server) as explorer:
            again = replay(explorer, player.lines)
        assert (again.end, again.story) == (player.end, player.story)


def record_secretly() -> None:
    """Nobody knows that a call has begun."""
    record_hits(articles()[:1])


def tell_lies() -> None:
    """The hit was never recorded."""
    ask("begin", (FIRST,))
    ask("told", ((FIRST, True, None),))


def show_lies() -> None:
    """The setup has counted one hit."""
    ask("begin", ())
    ask("told", ((FIRST, False, 0),))


@pytest.mark.parametrize(
    ("script", "promise"),
    [(record_secretly, "never twice"), (tell_lies, "nothing lost"), (show_lies, "shown")],
)
def test_judge_notices_an_actor_that_cheats(server, script, promise):
    with opened(Scenario("cheat", {"cheat": script}, most_faults=0), server) as explorer:
        violation, *_ = explorer.explore(stop_at=9).violations

    assert violation.problem.promise == promise
