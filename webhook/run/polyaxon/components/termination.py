"""The termination section of a component, as a Run has it.

Read in polyaxon 2.18 (`_flow/termination`, `_k8s/custom_resources/setter.py`) and the operator
(`controllers/utils/constant.go`, `internal/controller/job/cleanup.go`): a job is not retried unless
maxRetries says so, and without a ttl all is deleted at once when it is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.run.polyaxon.section import Section
from webhook.run.polyaxon.values import want_one_of, want_whole

if TYPE_CHECKING:
    from webhook.run.polyaxon.components.runtimes import Runtime
    from webhook.run.polyaxon.draft import Draft
    from webhook.run.polyaxon.item import Item
    from webhook.run.polyaxon.notes import Notes

_IDLE: Final = "whether a service is idle Fairlead does not know; set termination.timeout"
_POLICY: Final = (
    "Fairlead tells a lost node from a failure of the program by itself; disruptions do not count "
    "against backoffLimit"
)
_DEPLOYED: Final = "a Deployment's pod is started again however often it ends"
_CLEAN: Final = ("All", "Running", "None")


def termination(
    item: Item | None, clean: Item | None, runtime: Runtime, notes: Notes
) -> dict[str, Draft]:
    """Fields of a Run's spec. `clean` is the runtime's cleanPodPolicy."""
    serving = runtime.kind == "service"
    result: dict[str, Draft] = {}
    if not runtime.framework and not serving:
        result["backoffLimit"] = 0
    if not serving:
        result["cleanPodPolicy"] = "All"
    if item is not None:
        _read(Section(item, notes, camel=True), result, serving=serving)
    if clean is not None:
        word = want_one_of(clean.saying(clean.written.capitalize()), notes, _CLEAN)
        result["cleanPodPolicy"] = None if word is None else clean.saying(word)
    return result


def _read(section: Section, result: dict[str, Draft], *, serving: bool) -> None:
    notes = section.notes
    if (retries := _number(section, "max_retries", 0)) is not None:
        if serving:
            notes.warning(retries, _DEPLOYED)
        else:
            result["backoffLimit"] = retries
    if (timeout := _number(section, "timeout", 1)) is not None:
        result["maxAgeSeconds" if serving else "activeDeadlineSeconds"] = timeout
    if (ttl := _number(section, "ttl", 0)) is not None:
        result["ttlSecondsAfterFinished"] = ttl
        # They stay as long as the Run does.
        result.pop("cleanPodPolicy", None)
    section.leave({"culling": _IDLE, "probe": _IDLE, "pod_failure_policy": _POLICY})
    section.close()


def _number(section: Section, name: str, least: int) -> Item | None:
    item = section.given(name)
    number = None if item is None else want_whole(item, section.notes, least=least)
    return None if item is None or number is None else item.holding(number)
