"""cert-manager makes the certificate and injects the caBundle, and is away for a while."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from cryptography import x509

from tests.chaos.arena import CONFIGURATIONS, Arena, arena
from tests.chaos.kept import SERVER_NAME
from tests.chaos.ledger import FAILED, NEVER
from tests.chaos.stage import Scenario, Stage, Tally
from tests.chaos.wire import PORT
from tests.eventually import eventually
from tests.fast_yaml import load_all_yaml
from tests.go_programs import CERT_MANAGER, module_source, obtain_program
from tests.manifests.kustomize import Json, of_kind, one, overlay
from webhook import names
from webhook.controller.certificates.observe import Address, serial_number
from webhook.errors import SandboxError
from webhook.sandbox.api import install_definitions, missing_definitions

RENEWALS: Final = "leaves renewed"
ABSENCES: Final = "absences of cert-manager"
STARTED_ALONE: Final = "replicas started while cert-manager was away"
INJECTED: Final = "seconds from the first start to the caBundle"
ON_THE_WIRE: Final = "seconds from the request to the new leaf at every replica"
AUTHORITIES: Final = "authorities replaced"
OVERLAY: Final = "cert-manager"
PROGRAM: Final = "cert-manager"
# Long enough for a replica that must reload to try, and for hundreds of creations.
_AWAY: Final = 5.0

_API: Final = f"/apis/cert-manager.io/v1/namespaces/{names.NAMESPACE}"
_SECRET: Final = f"/api/v1/namespaces/{names.NAMESPACE}/secrets/{names.SERVING_SECRET}"
_AUTHORITY: Final = f"/api/v1/namespaces/{names.NAMESPACE}/secrets/fairlead-cert-manager-authority"
_CONFIGURATION: Final = f"{CONFIGURATIONS}/{names.WEBHOOK_CONFIGURATION}"


@dataclass
class Injection:
    """cert-manager beside the arena."""

    place: Arena

    def start(self) -> None:
        """Start its controllers and its cainjector; does not wait for them."""
        kubeconfig = self.place.plane.kubeconfig
        self.place.plane.start_process(
            PROGRAM,
            [obtain_program(CERT_MANAGER), "--kubeconfig", kubeconfig],
            {"KUBECONFIG": str(kubeconfig)},
        )

    def stop(self) -> None:
        """Kill it."""
        self.place.plane.stop_component(PROGRAM)

    def serial(self) -> int:
        """Of the leaf in the Secret; 0 without one."""
        data = (self.place.plane.api.get(_SECRET) or {}).get("data", {})
        if not (text := base64.b64decode(data.get("tls.crt", ""))):
            return 0
        return x509.load_pem_x509_certificate(text).serial_number

    def injected(self) -> bool:
        """Whether every entry of the configuration trusts the authority of the Secret.

        From 1.19 on the cainjector adds an authority to those that are in the caBundle.
        """
        data = (self.place.plane.api.get(_SECRET) or {}).get("data", {})
        authority = base64.b64decode(data.get("ca.crt", "")).strip()
        entries = self.place.plane.api.get(_CONFIGURATION)["webhooks"]
        bundles = [base64.b64decode(each["clientConfig"].get("caBundle", "")) for each in entries]
        return authority != b"" and all(authority in each for each in bundles)

    def served(self, serial: int) -> bool:
        """Whether every replica presents this leaf."""
        addresses = [Address(each.address, PORT) for each in self.place.replicas]
        return all(asyncio.run(serial_number(each, SERVER_NAME)) == serial for each in addresses)

    def renew(self, certificate: str) -> None:
        """Ask for a new certificate, as `cmctl renew` does: by the condition Issuing."""
        path = f"{_API}/certificates/{certificate}"
        status = 0
        while status != 200:
            found = self.place.plane.api.get(path)
            others = [each for each in found["status"]["conditions"] if each["type"] != "Issuing"]
            asked = {
                "type": "Issuing",
                "status": "True",
                "reason": "ManuallyTriggered",
                "message": "a test asks for it",
                "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
            found["status"]["conditions"] = [*others, asked]
            # 409: somebody wrote it meanwhile.
            status, answer = self.place.plane.api.call("PUT", f"{path}/status", found)
            if status not in (200, 409):
                raise SandboxError(f"a renewal cannot be asked for: {answer}")

    def issuing(self, certificate: str) -> bool:
        """Whether a new certificate was asked for, and is not there yet."""
        conditions = self.place.plane.api.get(f"{_API}/certificates/{certificate}")["status"]
        return any(each["type"] == "Issuing" for each in conditions["conditions"])

    def log(self) -> str:
        """The end of cert-manager's log, or that it does not run."""
        path = self.place.plane.layout.directory / "logs" / f"{PROGRAM}.log"
        return path.read_text()[-3000:] if path.exists() else "no log"


@contextmanager
def injecting(stage: Stage, tally: Tally) -> Iterator[Injection]:
    """The overlay's certificates and configuration, and three replicas that serve with them."""
    objects = overlay(OVERLAY)
    with arena(stage) as place:
        secret = f"{names.NAMESPACE}/{names.SERVING_SECRET}"
        place.options = (*place.options, "--tls-secret", secret)
        api = place.plane.api
        install_definitions(api, missing_definitions(api, _definitions()))
        for kind in ("Issuer", "Certificate"):
            for each in of_kind(objects, kind):
                api.create(f"{_API}/{kind.lower()}s", each)
        configuration = dict(one(objects, "MutatingWebhookConfiguration"))
        timeout = stage.terms.timeout
        entries = [{**each, "timeoutSeconds": timeout} for each in configuration["webhooks"]]
        api.create(CONFIGURATIONS, {**configuration, "webhooks": entries})
        injection = Injection(place)
        injection.start()
        began = time.monotonic()
        eventually("the caBundle", injection.injected, explain=injection.log)
        tally.measure(INJECTED, time.monotonic() - began)
        place.staff()
        place.wait("pods to be placed", place.places)
        yield injection
        injection.stop()


def _definitions() -> list[Json]:
    found: list[Any] = []
    for path in sorted((module_source(CERT_MANAGER.module) / "deploy" / "crds").glob("*.yaml")):
        found += [each for each in load_all_yaml(path.read_text()) if each]
    return found


def play(stage: Stage) -> Tally:
    """Renewals under load, the second one asked for while cert-manager is away."""
    tally = Tally()
    with injecting(stage, tally) as injection:
        with injection.place.loaded() as ledger:
            time.sleep(1)
            for number in range(stage.rounds):
                _renew(injection, tally, away=number % 2 == 1)
            _replace_authority(injection, tally)
            time.sleep(1)
        tally.add(ledger.tally())
    return tally


def _renew(injection: Injection, tally: Tally, *, away: bool) -> None:
    before = injection.serial()
    if away:
        injection.stop()
    injection.renew(names.WEBHOOK)
    asked = time.monotonic()
    if away:
        # A replica that starts meanwhile serves with what is in the Secret.
        injection.place.admit(injection.place.launch())
        tally.count(STARTED_ALONE)
        time.sleep(_AWAY)
        if injection.serial() != before:
            raise AssertionError("a certificate was renewed while cert-manager was away")
        tally.count(ABSENCES)
        injection.start()
    eventually("a new leaf", lambda: injection.serial() != before, explain=injection.log)
    serial = injection.serial()
    eventually("every replica to serve it", lambda: injection.served(serial))
    tally.measure(ON_THE_WIRE, time.monotonic() - asked)
    tally.count(RENEWALS)


def _replace_authority(injection: Injection, tally: Tally) -> None:
    """A new authority, and then a leaf that it signs."""
    api = injection.place.plane.api
    before = api.get(_AUTHORITY)["data"]["tls.crt"]
    injection.renew("fairlead-authority")
    eventually("a new authority", lambda: api.get(_AUTHORITY)["data"]["tls.crt"] != before)

    def published() -> bool:
        if api.get(_SECRET)["data"]["ca.crt"] == api.get(_AUTHORITY)["data"]["tls.crt"]:
            return injection.injected()
        # A leaf that is asked for too early is signed by the former authority.
        if not injection.issuing(names.WEBHOOK):
            injection.renew(names.WEBHOOK)
        return False

    eventually("its caBundle", published, explain=injection.log)
    serial = injection.serial()
    eventually("every replica to serve its leaf", lambda: injection.served(serial))
    tally.count(AUTHORITIES)


SCENARIO: Final = Scenario(
    name="cert-manager",
    does="cert-manager renews the leaf under load, and is away for a while",
    unit=RENEWALS,
    long=(),
    short=2,
    play=play,
    none=(FAILED, *NEVER),
)
