"""The termination section of a component, as a Run has it.

Read in polyaxon 2.18 (`_flow/termination`, `_k8s/custom_resources/setter.py`) and the operator
(`controllers/utils/constant.go`, `controllers/managers`, `internal/controller/job/cleanup.go`): a
job, and every kind of Kubeflow's, is not retried unless maxRetries says so, and without a ttl all
is deleted at once when it is done. Ray and Dask get no limit at all: their own operators replace
workers that fail, and not the program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.run.polyaxon.section import Section
from webhook.run.polyaxon.values import want_one_of, want_whole

if TYPE_CHECKING:
    from webhook.run.polyaxon.draft import Draft
    from webhook.run.polyaxon.item import Item
    from webhook.run.polyaxon.notes import Notes
    from webhook.run.rendezvous.framework import PolyaxonRuntime

_IDLE: Final = "whether a service is idle Fairlead does not know; set termination.timeout"
_POLICY: Final = (
    "Fairlead tells a lost node from a failure of the program by itself; disruptions do not count "
    "against backoffLimit"
)
_DEPLOYED: Final = "a Deployment's pod is started again however often it ends"
_UNLIMITED: Final = ("ray", "dask")
_NO_LIMIT: Final = (
    "there a worker is replaced however often it fails; here backoffLimit counts its failures, and "
    "is 3 unless termination.maxRetries says otherwise"
)
_CLEAN: Final = ("All", "Running", "None")


def termination(
    item: Item | None, clean: Item | None, runtime: PolyaxonRuntime, run: Item, notes: Notes
) -> dict[str, Draft]:
    """Fields of a Run's spec. `clean` is the cleanPodPolicy of the runtime, which is in `run`."""
    serving = runtime.kind == "service"
    limited = runtime.framework not in _UNLIMITED
    result: dict[str, Draft] = {}
    if limited and not serving:
        result["backoffLimit"] = 0
    if not serving:
        result["cleanPodPolicy"] = "All"
    if item is not None:
        _read(Section(item, notes, camel=True), result, serving=serving)
    if not limited and "backoffLimit" not in result:
        notes.warning(run.entries["kind"], _NO_LIMIT, key=False)
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
