"""What is told of certificates."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client import CollectorRegistry

from certs.authority import new_authority
from certs.issue import issue_server
from certs.kept import Authority, Serving
from certs.rotation import Observed
from tests.controller.certificates.memory import START, TERMS
from webhook.controller.certificates.certificate_metrics import (
    ERRORS,
    OBJECTS,
    PHASES,
    CertificateMetrics,
)

SIGNING = new_authority("one", START)
AUTHORITY = Authority(SIGNING)
LEAF = issue_server(SIGNING, "leaf", TERMS.names, START)
SERIAL = LEAF.check().serial_number


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"fairlead_certificate_{name}", labels)


def test_expiry_metrics_exist_as_long_as_the_certificates() -> None:
    """The staged one only while there is one."""
    registry = CollectorRegistry()
    metrics = CertificateMetrics(registry)
    staged = replace(AUTHORITY, staged=new_authority("two", START))
    metrics.saw(Observed(staged, Serving(LEAF, b"")))
    for name in ("authority", "staged", "leaf"):
        assert value(registry, "expiry_timestamp_seconds", certificate=name)
    metrics.saw(Observed(AUTHORITY, None))
    expiry = value(registry, "expiry_timestamp_seconds", certificate="authority")
    assert expiry == SIGNING.check().not_valid_after_utc.timestamp()
    for name in ("staged", "leaf"):
        assert value(registry, "expiry_timestamp_seconds", certificate=name) is None


def test_exactly_one_phase_metric_is_one() -> None:
    registry = CollectorRegistry()
    metrics = CertificateMetrics(registry)
    for observed, phase in (
        (Observed(None, None), "absent"),
        (Observed(AUTHORITY, None), "steady"),
    ):
        metrics.saw(observed)
        told = {each: value(registry, "phase", phase=each) for each in PHASES}
        assert told == {each: float(each == phase) for each in PHASES}


def test_replicas_that_are_behind_are_counted() -> None:
    """Those that present another leaf, and those that cannot be asked."""
    registry = CollectorRegistry()
    metrics = CertificateMetrics(registry)
    metrics.saw(Observed(AUTHORITY, Serving(LEAF, b""), replicas=(SERIAL, 1, None)))
    assert value(registry, "replicas_behind") == 2
    metrics.saw(Observed(AUTHORITY, Serving(LEAF, b""), replicas=(SERIAL,)))
    assert value(registry, "replicas_behind") == 0
    metrics.saw(Observed(AUTHORITY, None, replicas=(SERIAL, None)))
    assert value(registry, "replicas_behind") == 2


def test_writes_and_errors_have_their_series_from_the_start() -> None:
    """One that begins with its first event hides that event from rate()."""
    registry = CollectorRegistry()
    metrics = CertificateMetrics(registry)
    metrics.wrote("bundle")
    metrics.failed("undone")
    written = {each: value(registry, "writes_total", object=each) for each in OBJECTS}
    assert written == {"authority": 0, "serving": 0, "bundle": 1}
    failed = {each: value(registry, "errors_total", reason=each) for each in ERRORS}
    assert failed == {**dict.fromkeys(ERRORS, 0), "undone": 1}
