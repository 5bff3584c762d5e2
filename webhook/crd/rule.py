"""One rule of x-kubernetes-validations: an expression in CEL, and what a person is told."""

from __future__ import annotations

from typing import Any, NamedTuple


class Rule(NamedTuple):
    """A rule about `self`, an object of the class that it is listed under, or a value in a field.

    rule: the expression that must hold; with `oldSelf` in it, it is judged at updates alone.
    message: what is said where it does not, with the cure. Never an expression: the API server
        reckons with the longest text that there could be, and refuses what that would cost.
    at: the field that the message is about, as a path below the object; else the object itself.
    form: the pattern that the rule stands for. The schema goes without it, and without a format:
        of those the API server would say the regular expression, for a person to read.
    """

    rule: str
    message: str
    at: str = ""
    form: str = ""

    def schema(self) -> dict[str, Any]:
        """The rule as it stands in a schema."""
        written = {"rule": self.rule, "message": self.message}
        return {**written, "fieldPath": self.at} if self.at else written


def formed(pattern: str, message: str) -> Rule:
    """That a text has the form of a pattern, said in words.

    pattern: without a quote. The API server reckons with the longest text that there could be, and
        so the field wants a maxLength.
    """
    return Rule(f"self.matches(r'{pattern}')", message, form=pattern)


def literal(value: str | tuple[str, ...] | list[str]) -> str:
    """A text or a list of texts as CEL writes it; the texts are words without quotes.

    >>> literal(["a", "b"])
    "['a', 'b']"
    """
    if isinstance(value, str):
        return f"'{value}'"
    return f"[{', '.join(map(literal, value))}]"
