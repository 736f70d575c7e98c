"""The form that adds hits to an object, or takes some back."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.admin.helpers import AdminForm
from django.contrib.admin.widgets import AdminIntegerFieldWidget, AdminTextInputWidget
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext, gettext_lazy, ngettext

from django_hitcount import conf
from django_hitcount.corrections import correct_hits
from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import AMOUNT_LIMIT
from django_hitcount.db.tables import Correction
from django_hitcount.exceptions import TooFewHits
from django_hitcount.reports.labels import counter_choices, label_counter

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin

User = AbstractBaseUser | AnonymousUser


def can_correct(user: User) -> bool:
    """Return whether a user may add and take back hits, of objects that the user may view."""
    return user.has_perm("django_hitcount.add_correction")  # type: ignore[union-attr]


class DayInput(forms.DateInput):
    """A field for a day that browsers show with a calendar of their own, without scripts."""

    input_type = "date"


class CorrectionForm(forms.Form):
    """Asks for the arguments of correct_hits()."""

    counter = forms.ChoiceField(label=gettext_lazy("Counter"), choices=counter_choices)
    day = forms.DateField(
        label=gettext_lazy("Day"),
        widget=DayInput(format="%Y-%m-%d"),
        initial=day_of,
    )
    amount = forms.IntegerField(
        label=gettext_lazy("Hits"),
        min_value=-AMOUNT_LIMIT,
        max_value=AMOUNT_LIMIT,
        widget=AdminIntegerFieldWidget,
        help_text=gettext_lazy("How many hits to add. To take hits back, enter a negative number."),
    )
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=conf.REASON_MAX_LENGTH,
        widget=AdminTextInputWidget,
        help_text=gettext_lazy("It is shown here and in the history, with your name."),
    )

    def __init__(self, *args: Any, obj: Model, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._obj = obj
        choices = counter_choices()
        if len(choices) == 1:
            self.fields["counter"].widget = forms.HiddenInput()
            self.initial["counter"] = choices[0][0]
        self.fields["day"].widget.attrs["max"] = day_of().isoformat()

    def clean_day(self) -> datetime.date:
        day: datetime.date = self.cleaned_data["day"]
        if day > day_of():
            raise ValidationError(gettext("This day is in the future."))
        return day

    def clean_amount(self) -> int:
        amount: int = self.cleaned_data["amount"]
        if amount == 0:
            raise ValidationError(gettext("Enter a number other than 0."))
        return amount

    def save(self, user: User) -> Correction | None:
        """Correct the hits. If that is not possible, add the reason to a field; return None."""
        if not self.is_valid():
            return None
        arguments = {**self.cleaned_data}
        try:
            return correct_hits(self._obj, arguments.pop("amount"), user=user, **arguments)
        except TooFewHits as exc:
            self.add_error("amount", _too_few_hits(exc.counted, arguments["day"]))
            return None


def _too_few_hits(counted: int, day: datetime.date) -> str:
    if counted == 0:
        text = gettext("No hits were counted on %(day)s, so none can be taken back.")
    else:
        text = ngettext(
            "Only %(hits)s hit was counted on %(day)s.",
            "Only %(hits)s hits were counted on %(day)s.",
            counted,
        )
    return text % {"hits": _number(counted), "day": date_format(day)}


def describe(correction: Correction) -> str:
    """Say what a correction did, for the history and for the user who made it."""
    amount = abs(correction.amount)
    if correction.amount > 0:
        text = ngettext(
            "Added %(hits)s hit on %(day)s (%(counter)s): %(reason)s",
            "Added %(hits)s hits on %(day)s (%(counter)s): %(reason)s",
            amount,
        )
    else:
        text = ngettext(
            "Took back %(hits)s hit of %(day)s (%(counter)s): %(reason)s",
            "Took back %(hits)s hits of %(day)s (%(counter)s): %(reason)s",
            amount,
        )
    return text % {
        "hits": _number(amount),
        "day": date_format(correction.day),
        "counter": label_counter(correction.counter),
        "reason": correction.reason,
    }


def _number(number: int) -> str:
    return number_format(number, force_grouping=True)


def make_admin_form(form: CorrectionForm, model_admin: ModelAdmin[Any]) -> AdminForm:
    """Return the form as the admin lays out forms."""
    fieldset: Any = (None, {"fields": [*form.fields]})
    return AdminForm(form, [fieldset], {}, (), model_admin=model_admin)  # type: ignore[arg-type]
