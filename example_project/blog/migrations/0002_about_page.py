from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

ABOUT = """\
The Tally is the example site of django_hitcount. A template tag counts its articles, and a view \
mixin counts this page. Downloads, applause and the times an article was listed are separate \
counters. Bots and pages that a browser loads ahead of time do not count. Visitors are counted \
without storing who they are.

With Redis, every hit waits in a buffer and shows in the totals at once, and a Celery worker \
writes the buffer to the database. Without Redis, each hit is written to the database at once. \
The site looks the same either way."""


def create_about_page(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    page = apps.get_model("blog", "Page")
    page.objects.using(schema_editor.connection.alias).create(
        slug="about", title="About this site", body=ABOUT
    )


class Migration(migrations.Migration):
    dependencies = [("blog", "0001_initial")]

    operations = [migrations.RunPython(create_about_page, migrations.RunPython.noop)]
