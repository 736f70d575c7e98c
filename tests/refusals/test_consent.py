"""Visitors who have not agreed: their hits count without them, or not at all."""

from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.test import Client

from django_hitcount import arecord_hit, flush_hits, get_hits, get_visitors
from django_hitcount.exceptions import TransactionLost
from django_hitcount.refusals import consent, get_refusals
from django_hitcount.refusals.consents import lacks_consent
from tests.app.models import Article
from tests.beacon.sending import send
from tests.browsers import BROWSER
from tests.refusals.reasons import BUILT_IN, get, reason
from tests.visiting import forget_keys, kept_of_visitors, refused_today

CONSENT = f"{BUILT_IN}consent"
AGREED, DECLINED, UNDECIDED = {"Cookie": "agreed=yes"}, {"Cookie": "agreed=no"}, {}
EVERY_RULE = {"repeat": "daily", "visitors": True, "per_address": 2}
BY_SECONDS = {"repeat": 600, "visitors": True, "per_address": 2}


def has_agreed(request) -> bool:
    return request.COOKIES.get("agreed") == "yes"


def lose_the_transaction(request) -> bool:
    raise TransactionLost("The connection was closed.")


@pytest.fixture
def ask(buffer, settings):
    """Ask for consent, with all rules on; the test runs with each of the buffers."""

    def ask(refuses="visitor", options=EVERY_RULE, predicate=has_agreed):
        item = {"NAME": CONSENT, "OPTIONS": {"predicate": predicate, "refuses": refuses}}
        settings.HITCOUNT = {
            **settings.HITCOUNT,
            "REFUSALS": [f"{BUILT_IN}method", item],
            "COUNTERS": {"views": options},
        }
        return Article.objects.create(title="Tea")

    return ask


def view(article, headers) -> None:
    """Open the page of an article, and send the hit of a page from a cache."""
    Client(headers={**BROWSER, **headers}).get(f"/articles/{article.pk}/")


def beacon(article, headers) -> None:
    """Send the hit of a page that a cache has served."""
    view_id = f"view-{get_hits(article):08}"
    assert send([article], view_id=view_id, client=Client(headers=headers)).status_code == 200


@pytest.fixture
def no_hashes(monkeypatch) -> list[object]:
    """What is hashed of visitors. The test asserts that this stays empty."""
    hashed: list[object] = []
    forget_keys()
    for place in ("visitors.hashing._hash", "beacon.hash_address"):
        monkeypatch.setattr(f"django_hitcount.{place}", lambda *args: hashed.append(args))
    return hashed


WAYS = pytest.mark.parametrize("count", [view, beacon])


@pytest.mark.django_db(transaction=True)
class TestVisitor:
    @WAYS
    @pytest.mark.parametrize("options", [EVERY_RULE, BY_SECONDS], ids=["daily", "seconds"])
    @pytest.mark.parametrize("headers", [UNDECIDED, DECLINED], ids=["undecided", "declined"])
    def test_without_consent_each_hit_counts_without_a_visitor(self, ask, count, options, headers):
        article = ask(options=options)
        for _ in range(4):
            count(article, headers)

        assert get_hits(article) == 4
        assert get_visitors(article) == 0

    @WAYS
    def test_with_consent_rules_apply(self, ask, count):
        article = ask()
        for _ in range(4):
            count(article, AGREED)

        assert get_hits(article) == 1
        assert get_visitors(article) == 1

    @WAYS
    @pytest.mark.parametrize("refuses", ["visitor", "hit"])
    @pytest.mark.parametrize("options", [EVERY_RULE, BY_SECONDS], ids=["daily", "seconds"])
    @pytest.mark.parametrize("headers", [UNDECIDED, DECLINED], ids=["undecided", "declined"])
    def test_nothing_of_the_visitor_is_hashed_or_kept(
        self, ask, redis, count, refuses, options, headers, no_hashes
    ):
        article = ask(refuses, options)
        count(article, headers)
        kept = [*kept_of_visitors(redis)]
        flush_hits()
        kept += kept_of_visitors(redis)

        assert get_hits(article) == (refuses == "visitor")
        assert no_hashes == []
        assert kept == []

    @WAYS
    def test_something_of_a_visitor_who_has_agreed_is_kept(self, ask, redis, count):
        """So the test above looks at the right places."""
        article = ask(options=BY_SECONDS)
        count(article, AGREED)

        assert len(kept_of_visitors(redis)) >= 3

    def test_async(self, ask):
        article = ask()
        for _ in range(2):
            assert async_to_sync(arecord_hit)(article, get()).counted

    def test_hit_in_a_transaction_has_its_total_at_once(self, ask):
        article = ask()
        with transaction.atomic():
            totals = [article.record_hit(get()).total for _ in range(2)]

        assert totals == [1, 1]
        assert get_hits(article) == 2

    @pytest.mark.parametrize("refuses", ["visitor", "hit"])
    def test_other_lists_of_refusals_do_not_show_the_visitor(self, ask, settings, redis, refuses):
        article = ask(refuses)
        options = {**EVERY_RULE, "refusals": []}
        settings.HITCOUNT["COUNTERS"] = {"views": EVERY_RULE, "downloads": options}
        settings.HITCOUNT = {**settings.HITCOUNT}
        for _ in range(2):
            assert article.record_hit(get(), counter="downloads").counted
            assert article.record_hit(get(), refusals=[]).counted

        assert kept_of_visitors(redis) == []

    def test_counter_asks_for_itself(self, ask, settings):
        article = ask()
        asking = settings.HITCOUNT.pop("REFUSALS")
        settings.HITCOUNT["COUNTERS"] = {
            "views": {**EVERY_RULE, "refusals": asking},
            "downloads": EVERY_RULE,
        }
        settings.HITCOUNT = {**settings.HITCOUNT}
        found = [article.record_hit(get(), counter="downloads").counted for _ in range(2)]
        found += [article.record_hit(get()).counted for _ in range(2)]

        assert found == [True, False, True, True]

    def test_consent_of_a_single_call_refuses_the_hit(self, rule):
        """Only the settings say of whom nothing may be kept."""
        rule("daily")
        article = Article.objects.create(title="Tea")
        hit = article.record_hit(get(), refusals=[consent(has_agreed)])

        assert hit.refusal == "consent"
        assert article.record_hit(get(cookie="agreed=yes"), refusals=[consent(has_agreed)]).counted

    def test_predicate_that_breaks_the_transaction_is_not_hidden(self, ask):
        article = ask(predicate=lose_the_transaction)
        with pytest.raises(TransactionLost):
            article.record_hit(get())

    def test_other_object_and_counter_of_the_same_request(self, ask):
        articles = [ask(), ask()]
        request = get()
        for article in articles * 2:
            article.record_hit(request)

        assert get_hits(articles) == dict.fromkeys(articles, 2)


@pytest.mark.django_db(transaction=True)
class TestHit:
    @WAYS
    @pytest.mark.parametrize("headers", [UNDECIDED, DECLINED], ids=["undecided", "declined"])
    def test_without_consent_no_hit_counts(self, ask, count, headers):
        article = ask("hit")
        count(article, headers)

        assert get_hits(article) == 0
        assert refused_today() == {("views", "consent"): 1}

    @WAYS
    def test_with_consent_it_counts(self, ask, count):
        article = ask("hit")
        count(article, AGREED)

        assert get_hits(article) == 1
        assert get_visitors(article) == 1


@pytest.fixture
def lacks(refuse):
    """Whether the visitor of a request has not agreed, by a predicate."""

    def lacks(predicate):
        refuse((CONSENT, {"predicate": predicate}))
        assert reason(get()) is None
        return lacks_consent(get(), "views")

    return lacks


def fail(request):
    raise ZeroDivisionError


async def coroutine(request):
    return True


class TestPredicate:
    @pytest.mark.parametrize("answer", [False, None, "", 0])
    def test_only_true_is_consent(self, lacks, answer, caplog):
        assert lacks(lambda request: answer)
        assert not lacks(lambda request: True)
        assert caplog.text == ""

    @pytest.mark.parametrize("answer", ["no", "yes", 1, {"statistics": False}])
    def test_true_like_answer_is_none_and_logged(self, lacks, answer, caplog):
        assert lacks(lambda request: answer)
        assert f"returned {answer!r}, neither True nor False" in caplog.text

    def test_exception_is_none_and_logged(self, lacks, caplog):
        assert lacks(fail)
        assert "nobody has: <function fail" in caplog.text
        assert "ZeroDivisionError" in caplog.text

    def test_dotted_path(self, lacks):
        assert lacks(f"{__name__}.has_agreed")

    def test_each_consent_of_the_list_is_needed(self, refuse):
        refuse(*((CONSENT, {"predicate": lambda request, yes=yes: yes}) for yes in (True, False)))

        assert lacks_consent(get(), "views")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "missing 1 required positional argument: 'predicate'"),
            ({"predicate": 5}, "5 is not a plain function, without async"),
            ({"predicate": coroutine}, "is not a plain function, without async"),
            ({"predicate": "tests.nothing.here"}, "No module named 'tests.nothing'"),
            ({"predicate": has_agreed, "refuses": "all"}, "must be 'visitor' or 'hit', not 'all'"),
        ],
    )
    def test_wrong_options(self, refuse, options, message):
        refuse((CONSENT, options) if options else CONSENT)
        with pytest.raises(ImproperlyConfigured) as caught:
            get_refusals()

        assert message in str(caught.value) or "is not a refusal" in str(caught.value)
