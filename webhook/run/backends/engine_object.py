"""The object that the controller creates for a delegated Run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook import names
from webhook.errors import InvalidRun
from webhook.policy.findings import path_text
from webhook.run import manifests
from webhook.run.backends.backend import put
from webhook.run.backends.engines import find_below, find_engine
from webhook.run.backends.table import BACKENDS, render_run
from webhook.run.model.spec import MAX_INT32

if TYPE_CHECKING:
    from webhook.run.backends.backend import Manifest
    from webhook.run.backends.engines import Engine
    from webhook.run.model import Run


def delegated_object(run: Run) -> Manifest:
    """Return the object of a delegated Run. Raises InvalidRun with all problems."""
    if (engine := find_engine(run)) is None:
        raise InvalidRun(undelegated_problems(run))
    return render_delegated(run, engine)


def render_delegated(run: Run, engine: Engine) -> Manifest:
    """Return the object that the controller creates. Raises InvalidRun with all problems.

    Fairlead itself acts on the end of the run. Its pods have labels with the Run's name, by which
    the API server sends them to the webhook, with its uid, by which the controller watches them,
    and with its kind, which the engine's own labels do not tell.
    """
    (manifest,) = render_run(_handed_down(run, engine), engine.renderer)
    spec = manifest["spec"]
    if problems := engine.problems(spec):
        raise InvalidRun(problems)
    if engine.clean:
        *above, last = engine.clean.split(".")
        put(spec, engine.clean, find_below(spec, above).get(last, "Running"))
    run_labels = {names.RUN: run.name, names.RUN_UID: run.metadata.uid, names.KIND: run.spec.kind}
    for part in engine.labelled(manifest):
        metadata = part.setdefault("metadata", {})
        metadata["labels"] = {**metadata.get("labels", {}), **run_labels}
    meta = manifests.metadata(run, run.name)
    written = manifest["metadata"]
    meta["labels"] = {**written.get("labels", {}), **meta["labels"]}
    if written.get("annotations"):
        meta["annotations"] = written["annotations"]
    return {**manifest, "metadata": meta}


def _handed_down(run: Run, engine: Engine) -> Run:
    """Return the Run without the fields on which Fairlead itself acts.

    A written backoffLimit replaces the limit that an engine has by default: the engine's counts
    disruptions too. With restartScope Run the engine counts, because it restarts all replicas.
    """
    withheld = {"ttl_seconds_after_finished", "active_deadline_seconds", "suspend"}
    changed: dict[str, Any] = {}
    if run.spec.restart_scope != "Run":
        if not engine.own_limit:
            withheld.add("backoff_limit")
        elif "backoff_limit" in run.spec.model_fields_set:
            changed["backoff_limit"] = MAX_INT32
    if not engine.clean and run.spec.clean_pod_policy == "Running":
        # It is what the engine does.
        withheld.add("clean_pod_policy")
    fields = type(run.spec).model_fields
    changed |= {name: fields[name].default for name in withheld}
    spec = run.spec.model_copy(update=changed)
    spec.model_fields_set.difference_update(withheld)
    return run.model_copy(update={"spec": spec})


def undelegated_problems(run: Run) -> list[str]:
    """Return why the Run's backend has no engine for it."""
    problems = BACKENDS[run.spec.backend].problems(run)
    return [f"{path_text(problem.at)}: {problem.message}" for problem in problems]
