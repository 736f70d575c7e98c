from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

ABOUT = """\
The Tally is the example site of django_hitcount. Its articles are counted by a template tag, \
this page by a view mixin. Downloads, applause and the times an article was listed are counters \
of their own. Bots and pages that a browser loads ahead are not counted, and visitors are told \
apart without a trace of them being kept.

With Redis, every hit waits in a buffer and shows in the totals at once; a Celery worker writes \
the buffer to the database. Without Redis, each hit goes straight to the database. Nothing on \
the site looks any different."""


def create_about_page(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    page = apps.get_model("blog", "Page")
    page.objects.using(schema_editor.connection.alias).create(
        slug="about", title="About this site", body=ABOUT
    )


class Migration(migrations.Migration):
    dependencies = [("blog", "0001_initial")]

    operations = [migrations.RunPython(create_about_page, migrations.RunPython.noop)]
