from __future__ import annotations

import datetime
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from django.template.loader import render_to_string
from django.utils.translation import override

import django_hitcount
from django_hitcount.reports.charts import bar_chart, sparkline
from django_hitcount.templatetags import hitcount_reports

DAY = datetime.date(2026, 11, 22)


def drawn():
    hits = {DAY: 1204, datetime.date(2026, 11, 23): 1}
    chart = bar_chart(hits, {datetime.date(2026, 11, 20): 990})
    context = {"chart": chart, "name": "daily", "label": "Hits per day"}
    return render_to_string("django_hitcount/charts/bar_chart.html", context)


def line(hits):
    return render_to_string("django_hitcount/charts/sparkline.svg", {"sparkline": sparkline(hits)})


def test_chart_is_well_formed():
    root = ElementTree.fromstring(drawn().replace('autocomplete="off">', 'autocomplete="off"/>'))

    assert len(root.findall(".//rect")) == 3
    assert len(root.findall(".//label")) == 2


def test_each_bar_has_its_values():
    html = re.sub(r"<[^>]+>|\s+", " ", drawn())

    assert "Sun Nov. 22, 2026 1,204 before: 990" in re.sub(r" +", " ", html)


def test_table_has_all_values():
    rows = re.findall(r'<tr><th scope="row">(.*?)\s*</th>(.*?)</tr>', drawn(), re.DOTALL)

    assert [re.findall(r">([\d,]*)</td>", cells) for _, cells in rows] == [
        ["1,204", "990"],
        ["1", ""],
    ]


def test_numbers_and_days_are_localised_but_positions_are_not():
    with override("de"):
        html = drawn()

    assert "1.204" in html
    assert "22. November 2026" in html
    assert not re.findall(r' (?:x|y|x1|x2|y1|y2|width|height)="[^"]*,', html)


def test_time_goes_from_right_to_left_in_arabic():
    with override("ar"):
        mirrored = bar_positions(drawn())

    assert mirrored == pytest.approx(bar_positions(drawn())[::-1], abs=0.01)
    assert mirrored[0] > mirrored[1]


def bar_positions(html):
    return [float(x) for x in re.findall(r'hitcount-front" x="([\d.]+)%', html)]


def test_sparkline_has_a_title():
    root = ElementTree.fromstring(line({DAY: 1204}))

    assert root[0].tag == "title"
    assert root[0].text == "1,204 hits, Nov 22 \u2013 Nov 22"


def test_sparkline_goes_from_right_to_left_in_hebrew():
    with override("he"):
        assert "scale(-1 1)" in line({DAY: 1})
    assert "scale" not in line({DAY: 1})


@pytest.mark.parametrize(
    ("language", "day", "month"),
    [
        ("en", "Nov 22", "Nov 2026"),
        ("de", "22. Nov", "Nov 2026"),
        ("es", "22 de Nov", "Nov de 2026"),
        ("hu", "Nov 22.", "2026. Nov"),
    ],
)
def test_short_days_follow_the_language(language, day, month):
    with override(language):
        assert hitcount_reports.short_day(DAY) == day
        assert hitcount_reports.short_month(DAY) == month


@pytest.mark.parametrize(
    ("number", "decimal", "change"),
    [
        (39.4713, "39.5", "+39.5%"),
        (53.97, "54.0", "+54.0%"),
        (-48.68, "-48.7", "\u221248.7%"),
        (0.287, "0.3", "+0.3%"),
        (-0.04, "0.0", "0.0%"),
        (0.04, "0.0", "0.0%"),
        (1204.96, "1,205.0", "+1,205.0%"),
    ],
)
def test_decimals_are_rounded(number, decimal, change):
    assert hitcount_reports.decimal(number) == decimal
    assert hitcount_reports.change(number) == change


def test_templates_have_no_inline_style_or_script():
    root = Path(django_hitcount.__file__).parent / "templates"
    templates = [*root.rglob("*.html"), *root.rglob("*.svg")]

    assert templates
    for template in templates:
        assert not re.search(r"<script|<style|\sstyle=|\son\w+=|javascript:", template.read_text())
