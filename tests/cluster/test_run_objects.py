"""What the controller changes of a run's objects, on a real API server."""

from __future__ import annotations

from tests.cluster.manifests import workload
from tests.cluster.spaces import Json
from tests.objects import an_object
from tests.run.runs import a_run, containers, spec_of
from webhook import names
from webhook.controller.observed_state import ObservedState
from webhook.controller.owned_objects import DEPLOYMENT, SERVICE, Objects
from webhook.kube.client import connect
from webhook.kube.rate_limit import TokenBucket
from webhook.kube.writer import Writer
from webhook.sandbox.control_plane import ControlPlane

CLOSED: Json = an_object(
    "v1",
    "Service",
    "mnist",
    {"clusterIP": "None", "selector": {"app": "mnist", names.CLOSED: "true"}},
)


async def test_only_the_observed_object_is_changed(
    control_plane: ControlPlane, namespace: str
) -> None:
    """One that was made again under the name meanwhile is another: the API server refuses."""
    run = a_run("mnist", {"template": spec_of(containers("main"))}, namespace=namespace)
    async with connect(control_plane.kubeconfig) as client:
        objects = Objects(client, Writer(client, TokenBucket(100, 100)), ObservedState())

        async def specs() -> list[Json]:
            found = [await client.get(kind.path(namespace).path_of("mnist")) for kind in kinds]
            return [each["spec"] for each in found]

        kinds = (SERVICE, DEPLOYMENT)
        service = await client.create(SERVICE.path(namespace), CLOSED)
        deployment = await client.create(
            DEPLOYMENT.path(namespace), workload("Deployment", "mnist")
        )
        before = await specs()
        await objects.open_service(run, "another")
        await objects.scale(run, "another", 0)
        assert await specs() == before
        await objects.open_service(run, service["metadata"]["uid"])
        await objects.scale(run, deployment["metadata"]["uid"], 0)
        opened, scaled = await specs()
        assert opened["selector"] == {"app": "mnist"}
        assert scaled["replicas"] == 0
