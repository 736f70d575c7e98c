"""Whether a user agent is that of a bot."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from is_bot import Bots

from django_hitcount import conf
from django_hitcount.conf.caches import cached_for_settings

REMEMBERED_USER_AGENTS = 10_000
"""
User agents whose answer a process keeps: nearly all that a site meets.

Some 3 MB, and 8 MB if clients make up the longest ones.
"""

LONGEST_USER_AGENT = 512
"""
Characters looked at, which take up to 2 ms.

Browsers send 300 at most, and each 100 more would cost 0.4 ms whoever makes up a new one.
"""


def is_bot(user_agent: str) -> bool:
    """
    Whether ``user_agent`` belongs to a bot; an empty one does.

    By the patterns of is-bot, HITCOUNT["BOT_USER_AGENTS"] and HITCOUNT["NOT_BOT_USER_AGENTS"],
    of which the last has the last word. Costs a look into a dict, and the first time that a
    process meets a user agent some 0.3 ms, or 2 ms if it is one of the longest.
    """
    return _classifier()(user_agent[:LONGEST_USER_AGENT])


@cached_for_settings("HITCOUNT")
def _classifier() -> Callable[[str], bool]:
    """A cached is_bot() for the settings as they are."""
    config = conf.get_config()
    known = Bots()

    @lru_cache(maxsize=REMEMBERED_USER_AGENTS)
    def classify(user_agent: str) -> bool:
        if config.not_bot_user_agents.match_in(user_agent):
            return False
        is_added = config.bot_user_agents.match_in(user_agent)
        return bool(is_added or not user_agent.strip() or known.is_bot(user_agent))

    return classify
