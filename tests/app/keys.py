"""Models that differ in their primary keys: some that are counted, and some that are not."""

from __future__ import annotations

from typing import Any

from django.db import connection, models

COLLATIONS = {"sqlite": "NOCASE", "mysql": "utf8mb4_swedish_ci", "postgresql": "POSIX"}


class Disguised:
    """The object that a library of hashed ids returns instead of a number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __str__(self) -> str:
        return f"x{self.number:x}"


class DisguisedField(models.BigIntegerField):  # type: ignore[type-arg]
    """A number in the database; in Python, an object whose text is another."""

    def from_db_value(self, value: Any, *args: Any) -> Any:
        return self.to_python(value)

    def to_python(self, value: Any) -> Any:
        return value if value is None or isinstance(value, Disguised) else Disguised(int(value))

    def get_prep_value(self, value: Any) -> Any:
        return getattr(value, "number", value)


class UlidField(models.Field):  # type: ignore[type-arg]
    """A field that does not derive from one of Django's, in a text column."""

    def db_type(self, connection: Any) -> str:
        return "char(26)"


class SnowflakeField(models.IntegerField):  # type: ignore[type-arg]
    """An integer field that names its column type itself."""

    def db_type(self, connection: Any) -> str:
        return "bigint unsigned" if connection.vendor == "mysql" else "bigint"


class DashedUUIDField(models.UUIDField):  # type: ignore[type-arg]
    """A UUID as text with dashes."""

    def db_type(self, connection: Any) -> str:
        return "char(36)"

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        return str(self.to_python(value))

    def from_db_value(self, value: Any, *args: Any) -> Any:
        return self.to_python(value)


class PaddedField(models.CharField):  # type: ignore[type-arg]
    """PostgreSQL pads it with blanks, and strips them when it casts it to text."""

    def db_type(self, connection: Any) -> str:
        return "char(10)"


class Hashed(models.Model):
    id = DisguisedField(primary_key=True)


class Sortable(models.Model):
    id = UlidField(primary_key=True)


class Tweet(models.Model):
    id = SnowflakeField(primary_key=True)


class Picture(models.Model):
    id = DashedUUIDField(primary_key=True)


class Legacy(models.Model):
    code = PaddedField(primary_key=True, max_length=10)


class Word(models.Model):
    """A key with the collation of a language, unlike the tables of counts."""

    text = models.CharField(
        primary_key=True, max_length=50, db_collation=COLLATIONS[connection.vendor]
    )


class Priced(models.Model):
    id = models.DecimalField(primary_key=True, max_digits=6, decimal_places=2)


class Moment(models.Model):
    id = models.DateTimeField(primary_key=True)


class Flag(models.Model):
    id = models.BooleanField(primary_key=True)


class Measure(models.Model):
    id = models.FloatField(primary_key=True)


class Host(models.Model):
    id = models.GenericIPAddressField(primary_key=True)


class Lease(models.Model):
    """Its key is a foreign key to a model that cannot be counted."""

    host = models.OneToOneField(Host, primary_key=True, on_delete=models.CASCADE)


class Span(models.Model):
    """An integer on some databases, a type of its own on others."""

    id = models.DurationField(primary_key=True)


class Binary(models.Model):
    """Unmanaged, as MariaDB requires a length for such a key."""

    id = models.BinaryField(primary_key=True)

    class Meta:
        managed = False


class Seat(models.Model):
    pk = models.CompositePrimaryKey("row", "number")
    row = models.IntegerField()
    number = models.IntegerField()
