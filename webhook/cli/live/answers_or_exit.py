"""Answers about live objects, with what is not known on stderr; an error ends with code 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.cli import noting
from webhook.cli.failing import fail
from webhook.cli.live.focus import Focus, check_policy
from webhook.cli.live.judged import LivePod
from webhook.cli.selection import ask_cluster
from webhook.errors import FairleadError

if TYPE_CHECKING:
    from webhook.cli.live.question import Answers
    from webhook.cli.selection import Selection

_NOTHING = Focus()


def answers_or_exit(selection: Selection, focus: Focus = _NOTHING) -> Answers:
    """The answers. An error is told, and ends the command."""
    try:
        answers = ask_cluster(selection)
        check_policy(focus, answers.policies, _stamped(answers))
    except FairleadError as error:
        fail(error, 2)
    noting.tell(answers.notes)
    return answers


def _stamped(answers: Answers) -> list[str]:
    """The policies that stamps name."""
    pods = [
        pod
        for each in answers.found
        for pod in ([each] if isinstance(each, LivePod) else each.pods)
    ]
    return [name for pod in pods if pod.stamp for name in pod.stamp.named]
