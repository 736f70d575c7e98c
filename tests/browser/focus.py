"""Walk through a page by the Tab key."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Page

MOST_STOPS = 4
"""Of one control: the day, the month and the year of a date are stops of their own."""

PREPARE = """() => {
    const look = (element) => {
        const style = getComputedStyle(element);
        return [
            style.outlineStyle === "none" ? "" : style.outlineStyle + style.outlineWidth,
            style.boxShadow, style.backgroundColor, style.borderColor, style.textDecorationLine,
        ].join();
    };
    const selector = "a[href], button, input, select, textarea, summary, [tabindex]";
    const controls = [...document.querySelectorAll(selector)].filter((element) =>
        element.tabIndex >= 0 && !element.disabled
        && element.checkVisibility({visibilityProperty: true})
    );
    const looks = controls.map(look);
    // Radio buttons of a group are one stop, and the arrow keys walk between them.
    const stop = (element, number) => (
        element.type === "radio" ? element.name : `${number} ${element.outerHTML.slice(0, 120)}`
    );
    window.focusedStop = () => {
        const number = controls.indexOf(document.activeElement);
        return number < 0 ? null : {
            name: stop(controls[number], number),
            isMarked: look(controls[number]) !== looks[number],
        };
    };
    return controls.map(stop);
}"""


@dataclass(frozen=True)
class Walk:
    missed: list[str]
    """Controls that the Tab key does not reach."""

    unmarked: list[str]
    """Controls that look the same with and without focus."""


def tab_through(page: Page) -> Walk:
    """Press Tab until the focus leaves the page."""
    stops = page.evaluate(PREPARE)
    reached, marked = set(), set()
    for _ in range(MOST_STOPS * len(stops)):
        page.keyboard.press("Tab")
        focused = page.evaluate("focusedStop()")
        if focused is None:
            break
        reached.add(focused["name"])
        if focused["isMarked"]:
            marked.add(focused["name"])
    return Walk(sorted({*stops} - reached), sorted(reached - marked))
