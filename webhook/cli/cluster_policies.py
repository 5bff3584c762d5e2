"""The policy set that a cluster holds, read once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.policy.objects import load_objects

if TYPE_CHECKING:
    from webhook.kube.client import Client
    from webhook.policy.load import Loaded


async def read_policies(client: Client) -> Loaded:
    """The set of the policies, classes and exceptions in the cluster, as they are now.

    Raises ClusterError, with the cure if the cluster has no such kinds, and InvalidDocuments with
    every finding: a finding's place is an object, `placementpolicies/spot`.
    """
    # The Kubernetes client takes its time to be imported, and who compares folders does without.
    from webhook.kube.policy_objects import read_objects

    return load_objects(await read_objects(client))
