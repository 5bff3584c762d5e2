"""Read Runs from files with their plans, and report every error at its line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from webhook import names
from webhook.errors import InvalidDocuments, InvalidRun, UnreadableInput
from webhook.evaluation.templates import planned_templates
from webhook.policy.findings import parse_path
from webhook.questions.objects import count_kinds, read_files
from webhook.run import run_documents
from webhook.run.backends.backend import Backend, notes
from webhook.run.backends.engine_object import delegated_object
from webhook.run.backends.table import render_run
from webhook.run.plan import Plan, plan
from webhook.run.template_faults import delegated_faults, faults
from webhook.workloads.object import Object
from webhook.workloads.template_search import pod_templates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from webhook.placement.shapes import JsonObject
    from webhook.pod_schema.field_checks import Fault
    from webhook.policy.findings import Finding
    from webhook.run.model import Run
    from webhook.run.run_documents import Document
    from webhook.sources.table import SourceTable
    from webhook.workloads.template import PodTemplate


@dataclass(frozen=True, slots=True)
class Planned:
    """A Run of a file; `place` is file:line:column.

    plan: None if another engine creates the pods, from `made`.
    """

    place: str
    run: Run
    plan: Plan | None
    made: Object | None = None
    warnings: tuple[Finding, ...] = ()

    def templates(self, sources: SourceTable) -> list[PodTemplate]:
        """Return the templates of its pods."""
        if self.plan is None:
            return pod_templates(self.made, sources=sources) if self.made else []
        metadata = {"name": self.run.name, "namespace": self.run.namespace}
        spec = self.run.spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
        value = {"kind": names.RUN_KIND, "metadata": metadata, "spec": spec}
        return planned_templates(Object(self.place, value), self.plan)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A Run as objects of an engine, with warnings about what differs there."""

    manifests: tuple[JsonObject, ...]
    warnings: tuple[Finding, ...] = ()


T = TypeVar("T", bound="Planned | Rendered")


def read_plans(paths: Sequence[Path], namespace: str, cluster_domain: str) -> list[Planned]:
    """Return the Runs in files, folders and standard input (`-`), in order.

    `namespace` is for Runs without one. Raises UnreadableInput, also if there is no Run, and
    InvalidDocuments with every finding.
    """

    def make(document: Document) -> tuple[Planned, Iterable[Fault], Iterable[Finding]]:
        line, column = document.locate(())
        place = f"{document.file}:{line}:{column}"
        run = _placed(document.model, namespace)
        if run.spec.delegated:
            made = Planned(place, run, None, Object(place, delegated_object(run)))
            return made, delegated_faults(run), _placeholders(document)
        planned = plan(run, cluster_domain=cluster_domain)
        return Planned(place, run, planned), faults(planned), _placeholders(document)

    return _read(_documents(paths, placeholders=True), make)


def read_rendered(paths: Sequence[Path], backend: Backend, namespace: str) -> list[Rendered]:
    """Return the Runs in files, folders and standard input, as objects of an engine.

    `namespace` is for Runs without one; "" leaves it out. Raises as `read_plans`.
    """

    def make(document: Document) -> tuple[Rendered, Iterable[Fault], Iterable[Finding]]:
        run: Run = document.model
        if namespace and "namespace" not in run.metadata.model_fields_set:
            metadata = run.metadata.model_copy(update={"namespace": namespace})
            run = run.model_copy(update={"metadata": metadata})
        manifests = tuple(render_run(run, backend))
        kind = backend.kind(run)
        differing = notes(run, kind) if kind else ()
        more = (document.finding(path, note, "warning") for path, note in differing)
        return Rendered(manifests), delegated_faults(run), more

    return _read(_documents(paths), make)


def _read(
    documents: Iterable[Document],
    make: Callable[[Document], tuple[T, Iterable[Fault], Iterable[Finding]]],
) -> list[T]:
    """Return what is made of the Runs, with its warnings. Raises InvalidDocuments."""
    results: list[T] = []
    findings: list[Finding] = []
    for document in documents:
        try:
            made, checked, more = make(document)
        except InvalidRun as error:
            parts = [problem.partition(": ") for problem in error.problems]
            wrong = [document.finding(parse_path(path), what) for path, _, what in parts]
            wrong_paths = {finding.path for finding in wrong}
            others = _faults(document, delegated_faults(document.model))
            findings += wrong + [finding for finding in others if finding.path not in wrong_paths]
        else:
            run_findings = [*_faults(document, checked)]
            findings += [finding for finding in run_findings if finding.severity == "error"]
            warnings = [
                *(finding for finding in run_findings if finding.severity == "warning"),
                *more,
            ]
            results.append(replace(made, warnings=tuple(sorted(warnings))))
    if any(finding.severity == "error" for finding in findings):
        raise InvalidDocuments(sorted(findings))
    return results


def _placeholders(document: Document) -> Iterator[Finding]:
    name, prefix = document.model.name, document.model.metadata.generate_name
    if isinstance(prefix, str) and name == run_documents.placeholder_name(prefix):
        yield document.finding(
            ("metadata", "generateName"),
            f"{name} is a placeholder for the name that the API server generates; "
            "`kubectl create` accepts this Run, `kubectl apply` does not",
            "warning",
        )


def _documents(paths: Sequence[Path], *, placeholders: bool = False) -> Sequence[Document]:
    runs = run_documents.read_runs(read_files(paths, plain=True), placeholders=placeholders)
    documents = runs.sound()
    if not documents:
        where = ", ".join(map(str, paths))
        kinds = count_kinds(foreign_object.kind for foreign_object in runs.foreign)
        instead = f"only {kinds}" if kinds else "nothing"
        raise UnreadableInput([f"{where}: it has no Run, {instead}"])
    return documents


def _placed(run: Run, namespace: str) -> Run:
    """Return the run as the API server returns it: with a namespace and a uid."""
    meta = run.metadata
    added = {
        "namespace": meta.namespace if "namespace" in meta.model_fields_set else namespace,
        "uid": meta.uid or names.NO_UID,
    }
    return run.model_copy(update={"metadata": meta.model_copy(update=added)})


def _faults(document: Document, faults: Iterable[Fault]) -> Iterator[Finding]:
    for fault in faults:
        yield document.finding(fault.path, fault.message, fault.severity, at_key=fault.at_key)
