"""Walk through a page by the Tab key."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Page

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
        element.tabIndex >= 0 && !element.disabled && element.checkVisibility()
    );
    const name = (element) => element.outerHTML.slice(0, 120);
    const looks = new Map(controls.map((element) => [element, look(element)]));
    window.focusOf = (element) => element === document.body ? null : {
        name: name(element),
        isVisible: look(element) !== looks.get(element),
        group: element.type === "radio" ? element.name : "",
    };
    return controls.map((element) => ({
        name: name(element),
        group: element.type === "radio" ? element.name : "",
    }));
}"""


@dataclass(frozen=True)
class Walk:
    missed: list[str]
    """Controls that the Tab key does not reach."""

    unmarked: list[str]
    """Controls that look the same with and without focus."""


def tab_through(page: Page) -> Walk:
    """Press Tab until the focus has been on every control. Radio buttons are one stop."""
    stops = {control["group"] or control["name"] for control in page.evaluate(PREPARE)}
    reached, unmarked = set(), []
    for _ in stops:
        page.keyboard.press("Tab")
        focus = page.evaluate("focusOf(document.activeElement)")
        if focus is None:
            break
        reached.add(focus["group"] or focus["name"])
        if not focus["isVisible"]:
            unmarked.append(focus["name"])
    return Walk(sorted(stops - reached), unmarked)
