from __future__ import annotations

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Article",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "path",
                    models.CharField(
                        blank=True,
                        help_text="The URL path of the article. "
                        "The article without a path is shown at the top of the front page.",
                        max_length=500,
                        unique=True,
                    ),
                ),
                ("title", models.CharField(max_length=200)),
                ("body", models.TextField()),
                ("published_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={"ordering": ["-published_at", "-pk"]},
        ),
        migrations.CreateModel(
            name="Page",
            fields=[
                ("slug", models.SlugField(primary_key=True, serialize=False)),
                ("title", models.CharField(max_length=200)),
                ("body", models.TextField()),
            ],
            options={"ordering": ["title"]},
        ),
    ]
