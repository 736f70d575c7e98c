from __future__ import annotations

import pytest
from django.core.exceptions import FieldError
from django.db.models import F, Sum

from django_hitcount.counters.keys import InvalidKey
from django_hitcount.exceptions import HitCountError, InvalidArgument
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import HitCountSum
from django_hitcount.recording import record_hit
from tests.app.keys import Lease
from tests.app.models import (
    Article,
    Cover,
    Essay,
    Photo,
    Plain,
    Remark,
    Reply,
    Review,
    Section,
    Story,
    Tag,
)

pytestmark = pytest.mark.django_db(transaction=True)


def sums(queryset, path, **options):
    """The sum of each object, in the order of keys."""
    rows = queryset.annotate(related_hits=HitCountSum(path, **options)).order_by("pk")
    return [*rows.values_list("related_hits", flat=True)]


def viewed(obj, hits, **options):
    record_hit(obj, amount=hits, **options)
    return obj


@pytest.fixture
def sections(buffer):
    """Sections whose stories have 1 + 2, 4 and no hits. Some are compacted, some are not."""
    first, second, empty = Section.objects.bulk_create(Section(name=str(n)) for n in range(3))
    viewed(Story.objects.create(section=first), 1)
    viewed(Story.objects.create(section=first), 1)
    flush_hits()
    compact()
    viewed(Story.objects.order_by("pk")[1], 1)
    viewed(Story.objects.create(section=second), 4)
    Story.objects.create(section=empty)
    flush_hits()
    return [first, second, empty]


class TestPath:
    def test_of_a_reverse_foreign_key(self, sections):
        assert sums(Section.objects, "stories") == [3, 4, 0]

    def test_of_a_foreign_key(self, sections):
        for story in Story.objects.order_by("pk"):
            Reply.objects.create(story=story)

        found = Reply.objects.annotate(story_hits=HitCountSum("story")).order_by("story")
        assert [reply.story_hits for reply in found] == [1, 2, 4, 0]

    def test_of_two_relations_to_keys_that_are_uuids(self, sections):
        for hits, story in enumerate(Story.objects.order_by("pk")):
            viewed(Reply.objects.create(story=story), hits + 1)
        flush_hits()

        assert sums(Section.objects, "stories__replies") == [3, 3, 4]

    def test_of_a_many_to_many_relation_both_ways(self, buffer):
        tags = [Tag.objects.create() for _ in range(3)]
        both, one = [Article.objects.create(title="x") for _ in range(2)]
        both.tags.set(tags[:2])
        one.tags.set(tags[:1])
        viewed(both, 2)
        viewed(one, 3)
        viewed(tags[0], 10)
        viewed(tags[1], 20)
        flush_hits()

        assert sums(Tag.objects, "articles") == [5, 2, 0]
        assert sums(Article.objects, "tags") == [30, 10]

    def test_of_a_generic_relation(self, sections):
        for section in sections[:2]:
            viewed(Remark.objects.create(target=section), 7)
        other = Plain.objects.create(pk=sections[0].pk)
        viewed(Remark.objects.create(target=other), 9)
        flush_hits()

        assert sums(Section.objects, "remarks") == [7, 7, 0]

    def test_to_a_parent_and_to_a_key_that_is_a_relation(self, buffer):
        photo = viewed(Photo.objects.create(), 3)
        viewed(Cover.objects.create(photo=photo), 4)
        viewed(Review.objects.create(title="x"), 5)
        flush_hits()

        assert sums(Photo.objects, "cover") == [4]
        assert sums(Cover.objects, "photo") == [3]
        assert sums(Review.objects, "article_ptr") == [5]

    @pytest.mark.parametrize(
        ("path", "why"), [("name", "'name' of app.Section"), ("nothing", "'nothing'")]
    )
    def test_that_does_not_lead_to_objects_is_refused(self, path, why):
        with pytest.raises(FieldError, match=why):
            Section.objects.annotate(related_hits=HitCountSum(path))


def test_an_object_that_is_reached_twice_counts_once(buffer):
    article = viewed(Article.objects.create(title="x"), 3)
    for _ in range(2):
        article.tags.add(Tag.objects.create())
    flush_hits()

    assert sums(Article.objects, "tags__articles") == [3]


def test_objects_that_a_manager_hides_count(buffer):
    section = Section.objects.create()
    section.essays.add(viewed(Essay.objects.create(live=False), 3))
    flush_hits()

    assert sums(Section.objects, "essays") == [3]


def test_filter_order_and_aggregate(sections):
    rows = Section.objects.annotate(related_hits=HitCountSum("stories"))

    assert [row.name for row in rows.order_by("-related_hits")] == ["1", "0", "2"]
    assert [row.name for row in Section.objects.order_by(HitCountSum("stories").desc())] == [
        *("1", "0", "2")
    ]
    assert rows.filter(related_hits__gt=3).get() == sections[1]
    assert rows.aggregate(total=Sum("related_hits")) == {"total": 7}
    assert rows.annotate(double=F("related_hits") * 2).get(double=8) == sections[1]


def test_a_join_or_a_group_does_not_change_the_sum(sections):
    grouped = Section.objects.annotate(
        newest=Sum("stories__pk"), related_hits=HitCountSum("stories")
    ).order_by("pk")

    assert [row.related_hits for row in grouped] == [3, 4, 0]
    joined = Section.objects.filter(stories__pk__gt=0)
    assert sums(joined, "stories") == [3, 3, 4, 0]


def test_counters_are_apart(sections):
    viewed(Story.objects.order_by("pk")[0], 5, counter="downloads")
    flush_hits()

    assert sums(Section.objects, "stories", counter="downloads") == [5, 0, 0]
    with pytest.raises(InvalidArgument, match="'viewz'"):
        sums(Section.objects, "stories", counter="viewz")


def test_keys_that_cannot_be_counted_are_an_error(db):
    with pytest.raises(InvalidKey, match=r"app\.Host"):
        sums(Lease.objects, "host")


def test_counts_in_another_database_are_an_error(settings, db):
    settings.DATABASE_ROUTERS = ["tests.routers.Elsewhere"]

    with pytest.raises(HitCountError, match=r"HitCountSum.*app.Story.*'default'.*'elsewhere'"):
        sums(Section.objects, "stories")
