"""Cluster address and credentials, from a kubeconfig or from inside the cluster."""

from __future__ import annotations

import ipaddress
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import yaml
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.incluster_config import InClusterConfigLoader
from kubernetes.aio.config.kube_config import KubeConfigMerger, load_kube_config

from webhook.api_paths import check_namespace
from webhook.errors import ClusterError, InvalidName
from webhook.shortening import first_few
from webhook.strict import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Contexts that an error names.
_NAMED: Final = 10
SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


async def load(
    kubeconfig: Path | None = None,
    *,
    context: str = "",
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Configuration:
    """Read address, trust and credentials from `kubeconfig`, else $KUBECONFIG, else the pod.

    `context` overrides the kubeconfig's current context. A kubeconfig is never written. A
    ClusterError names the file and what it lacks; its text never contains a credential.
    """
    named = str(kubeconfig) if kubeconfig else environ.get("KUBECONFIG", "")
    if named:
        return await _from_kubeconfig(named, context)
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return _from_inside(environ, service_account)
    raise ClusterError(
        "no cluster to talk to: give --kubeconfig FILE, or set KUBECONFIG; inside a cluster the"
        " pod's service account is taken"
    )


def contexts(kubeconfig: Path | None = None) -> list[str]:
    """Return the names of the contexts, of `kubeconfig` or of $KUBECONFIG. Raises ClusterError."""
    named = str(kubeconfig) if kubeconfig else os.environ.get("KUBECONFIG", "")
    with _kubeconfig(named):
        merged = KubeConfigMerger(named).config.value
        return [str(node.value["name"]) for node in merged["contexts"]] if merged else []


def default_namespace(
    kubeconfig: Path | None = None,
    *,
    context: str = "",
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> str:
    """Return the default namespace: that of the context, or of the pod.

    Raises ClusterError as `load` does.
    """
    named = str(kubeconfig) if kubeconfig else environ.get("KUBECONFIG", "")
    if named:
        with _kubeconfig(named):
            merged = KubeConfigMerger(named).config.value
            wanted = context or merged.get("current-context")
            contexts = [node.value for node in merged["contexts"]]
            entry: dict[str, Any] = next(
                (entry for entry in contexts if entry["name"] == wanted), {"context": {}}
            )
            # An empty one is as if it were not there, as for kubectl.
            namespace = entry["context"].get("namespace")
            namespace = "default" if namespace in (None, "") else namespace
            if not isinstance(namespace, str):
                what = f"{named}: context {wanted}: namespace: want a name"
                raise InvalidName(f"{what}, not {type(namespace).__name__}")
        try:
            return check_namespace(namespace)
        except InvalidName as error:
            raise InvalidName(f"{named}: context {wanted}: {error}") from None
    file = service_account / "namespace"
    return check_namespace(file.read_text().strip()) if file.is_file() else "default"


async def _from_kubeconfig(named: str, context: str) -> Configuration:
    configuration = Configuration(host="")
    with _kubeconfig(named):
        if context:
            _check_context(named, context)
        await load_kube_config(
            config_file=named,
            context=context or None,
            client_configuration=configuration,
            persist_config=False,
        )
    if not configuration.host:
        raise ClusterError(f"{named}: the current context's cluster has no server")
    configuration.proxy = configuration.proxy or _proxy_from_environment(configuration.host)
    return configuration


def _check_context(named: str, context: str) -> None:
    """Raise ClusterError with the names of all contexts if there is no such one."""
    contexts = [
        str(entry.value["name"]) for entry in KubeConfigMerger(named).config.value["contexts"]
    ]
    if context not in contexts:
        choices = first_few(contexts, _NAMED) if contexts else "none"
        raise ClusterError(f"{named}: there is no context {quoted(context)}; there are: {choices}")


@contextmanager
def _kubeconfig(named: str) -> Iterator[None]:
    """Convert errors while reading a kubeconfig to ClusterErrors that name the file."""
    # $KUBECONFIG may list several files, as PATH does.
    if not any(Path(path).expanduser().is_file() for path in named.split(os.pathsep) if path):
        raise ClusterError(
            f"{named}: there is no such kubeconfig; give another with --kubeconfig or KUBECONFIG. "
            "If it was a sandbox's: fairlead sandbox up"
        )
    try:
        yield
    except ConfigException as error:
        # The package's text continues with the whole entry, including its token.
        raise ClusterError(f"{named}: {str(error).partition('{')[0]}") from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ClusterError(f"{named}: cannot be read as a kubeconfig: {error}") from None
    except (AttributeError, KeyError, TypeError) as error:
        raise ClusterError(
            f"{named}: is not shaped as a kubeconfig ({type(error).__name__}); compare it with"
            " what `kubectl config view` prints"
        ) from None


def _from_inside(environ: Mapping[str, str], service_account: Path) -> Configuration:
    configuration = Configuration()
    loader = InClusterConfigLoader(
        token_filename=str(service_account / "token"),
        cert_filename=str(service_account / "ca.crt"),
        environ=environ,
    )
    try:
        loader.load_and_set(configuration)
    except (ConfigException, OSError) as error:
        raise ClusterError(
            f"{service_account}: {error} Does the pod mount its service account's token?"
        ) from None
    return configuration


def _proxy_from_environment(server: str) -> str | None:
    """Return the proxy from HTTPS_PROXY and NO_PROXY; none for loopback, as in kubectl."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    if host == "localhost" or _is_loopback(host) or proxy_bypass(host):
        return None
    return getproxies().get(parts.scheme)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
