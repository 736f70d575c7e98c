"""Which user agents belong to bots."""

from __future__ import annotations

from functools import cache

from is_bot import Bots

from django_hitcount import conf
from django_hitcount.conf.caches import cached_for_settings
from django_hitcount.conf.kinds import match_any

REMEMBERED_USER_AGENTS = 10_000
"""
User agents whose classification a process caches: nearly all that a site receives.

They take about 3 MB, or 8 MB if clients invent user agents of the maximum length.
"""

LONGEST_USER_AGENT = 512
"""
Characters of a user agent that are classified, which takes up to 2 ms.

Browsers send at most 300. Each further 100 would cost 0.4 ms for each new user agent.
"""


def is_bot(user_agent: str) -> bool:
    """
    Return whether ``user_agent`` belongs to a bot. An empty one does.

    Uses the patterns of is-bot and HITCOUNT["BOT_USER_AGENTS"]. What matches
    HITCOUNT["NOT_BOT_USER_AGENTS"] is never a bot. Costs a dict lookup; the first time that a
    process sees a user agent, about 0.3 ms, or 2 ms for the longest ones.
    """
    return classify(user_agent[:LONGEST_USER_AGENT])


@cached_for_settings("HITCOUNT", maxsize=REMEMBERED_USER_AGENTS)
def classify(user_agent: str) -> bool:
    """See is_bot(). ``user_agent`` has LONGEST_USER_AGENT characters at most."""
    config = conf.get_config()
    if match_any(config.not_bot_user_agents, user_agent):
        return False
    is_added = match_any(config.bot_user_agents, user_agent)
    return bool(is_added or not user_agent.strip() or _library().is_bot(user_agent))


@cache
def _library() -> Bots:
    """Return the patterns of is-bot. They take some milliseconds to compile."""
    return Bots()
