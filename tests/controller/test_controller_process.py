"""The controller's parts as the command line puts them together."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry

from certs.kept import Serving
from tests.controller.certificates.memory import Memory, entry, until_waiting
from tests.wording import Wording, mentions
from webhook.cli.controller import command
from webhook.controller.certificates.certificate_objects import mutating, validating
from webhook.controller.controller_process import certificate_condition, make_keeper
from webhook.controller.settings import ControllerSettings
from webhook.kube.secrets import data_of
from webhook.kube.watches import Watches
from webhook.kube.writer import Writer

SECRET = "/api/v1/namespaces/mine/secrets/fairlead-webhook-tls"


def test_given_names_are_in_the_leaf_with_the_services_names() -> None:
    """Addresses as a certificate has them, however they were written."""
    memory = Memory()
    for place in (mutating("ours"), validating("ours")):
        memory.put(place.path, webhooks=[entry("one", namespace="mine")])
    extra = ("gate.example.invalid", "198.18.0.1", "2001:DB8:0::1")
    given = ["--certificate-settle=1", "--lease-namespace=mine", "--webhook-configuration=ours"]
    given += [f"--certificate-name={name}" for name in extra]
    settings = ControllerSettings(**command.make_context("controller", given).params)
    registry = CollectorRegistry()
    writer = cast("Writer", memory)
    keeper = make_keeper(settings, Watches(memory.client), writer, registry)
    # No endpoint is there: nobody is asked.
    asyncio.run(until_waiting(keeper))
    serving = Serving.read(data_of(memory.objects[SECRET]))
    assert serving
    text = str(serving.leaf.check().extensions)
    for name in (
        "fairlead-webhook.mine.svc",
        "fairlead-webhook.mine.svc.cluster.local",
        "gate.example.invalid",
        "198.18.0.1",
        "2001:db8::1",
    ):
        assert name in text
    assert certificate_condition(keeper).ready
    assert certificate_condition(keeper).reason.startswith("steady: nothing is due")
    for place in (mutating("ours"), validating("ours")):
        (configured,) = memory.objects[place.path]["webhooks"]
        assert configured["clientConfig"]["caBundle"]


@pytest.mark.parametrize("name", [" a", "höher.example.invalid"])
def test_a_name_that_no_certificate_can_have_is_refused_at_once(
    name: str, wording: Wording
) -> None:
    """Before anything is begun."""
    result = CliRunner().invoke(command, ["--certificates", "--certificate-name", name])
    assert result.exit_code == 2
    mentions(result.output, "--certificate-name", repr(name))
    wording(result.output.partition("error: ")[2])
