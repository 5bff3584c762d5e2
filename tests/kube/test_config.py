"""Where the API server is, and as whom to call it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kube.fake_api import write_kubeconfig
from tests.wording import Wording, mentions
from webhook.errors import ClusterError, InvalidName
from webhook.kube.config import default_namespace, load

SECRET = "s3cret-token-of-nobody"


def host_of(kubeconfig: Path | None, environ: dict[str, str]) -> str:
    configuration = asyncio.run(load(kubeconfig, environ=environ))
    return str(configuration.host)


def test_the_kubeconfig_that_is_named_wins(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    named = write_kubeconfig(tmp_path, "http://127.0.0.1:1")
    other = write_kubeconfig(tmp_path / "other", "http://127.0.0.1:2")
    assert host_of(named, {"KUBECONFIG": str(other)}) == "http://127.0.0.1:1"
    assert host_of(None, {"KUBECONFIG": str(other)}) == "http://127.0.0.1:2"


def test_kubeconfig_may_list_several_files(tmp_path: Path) -> None:
    """$KUBECONFIG is split as a PATH is; files that are not there do not matter."""
    file = write_kubeconfig(tmp_path, "http://127.0.0.1:1")
    assert host_of(None, {"KUBECONFIG": f"{tmp_path / 'absent'}:{file}"}) == "http://127.0.0.1:1"


def test_a_pod_takes_its_service_account(tmp_path: Path) -> None:
    """Without a kubeconfig, address from the environment, trust and token from the mount."""
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    (tmp_path / "token").write_text(SECRET + "\n")
    (tmp_path / "ca.crt").write_text("a certificate\n")
    configuration = asyncio.run(load(None, environ=environ, service_account=tmp_path))
    assert configuration.host == "https://[fd00::1]:443"
    assert configuration.ssl_ca_cert == str(tmp_path / "ca.crt")


def test_a_pod_without_a_token_is_reported(tmp_path: Path, wording: Wording) -> None:
    """automountServiceAccountToken: false is the usual cause."""
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ClusterError, match="service account's token") as caught:
        asyncio.run(load(None, environ=environ, service_account=tmp_path))
    wording(str(caught.value), {tmp_path: "<tmp>"})


def test_without_a_cluster_the_options_to_name_one_are_reported(wording: Wording) -> None:
    """Nothing is guessed, not even ~/.kube/config: it may be somebody's production."""
    with pytest.raises(ClusterError) as caught:
        asyncio.run(load(None, environ={}))
    mentions(str(caught.value), "--kubeconfig FILE", "set KUBECONFIG")
    wording(str(caught.value))


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path, wording: Wording) -> None:
    with pytest.raises(ClusterError, match=r"absent: .*no such") as caught:
        asyncio.run(load(tmp_path / "absent", environ={}))
    wording(str(caught.value), {tmp_path: "<tmp>"})


@pytest.mark.parametrize(
    "text",
    [
        "current-context: a",
        "[]",
        "3",
        "a: [",
        "\x00",
        "",
        (
            "{current-context: a, contexts: [{name: a, context: {cluster: a}}],"
            " clusters: [{name: a, cluster: {}}]}"
        ),
        (
            "{current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],"
            " clusters: [{name: a, cluster: {server: 'http://127.0.0.1'}}],"
            f" users: [{{name: a, token: {SECRET}}}]}}"
        ),
        (
            "{current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],"
            f" clusters: {{name: a, token: {SECRET}}}}}"
        ),
    ],
)
def test_an_invalid_kubeconfig_is_reported_without_its_tokens(tmp_path: Path, text: str) -> None:
    """Whatever is wrong in the file, the error names the file and holds no credential."""
    file = tmp_path / "broken"
    file.write_text(text)
    with pytest.raises(ClusterError) as caught:
        asyncio.run(load(file, environ={}))
    assert str(file) in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_kubeconfig_is_never_written(tmp_path: Path) -> None:
    file = write_kubeconfig(tmp_path, "http://127.0.0.1:1", token=SECRET)
    before = file.read_bytes()
    file.chmod(0o444)
    asyncio.run(load(file, environ={}))
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("server", "no_proxy", "expected"),
    [
        ("https://cluster.example", "", "http://proxy.example:3128"),
        ("https://cluster.example", ".example", None),
        ("https://127.0.0.1:6443", "", None),
        ("https://[::1]:6443", "", None),
        ("https://localhost:6443", "", None),
    ],
)
def test_a_proxy_is_taken_from_the_environment_but_never_for_loopback(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    server: str,
    no_proxy: str,
    expected: str | None,
) -> None:
    """HTTPS_PROXY and NO_PROXY mean what they mean to kubectl."""
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", no_proxy)
    file = write_kubeconfig(tmp_path, server)
    assert asyncio.run(load(file, environ={})).proxy == expected


def test_connecting_loads_none_of_the_generated_models() -> None:
    """They cost seconds and over a hundred MiB; only their empty package may be there."""
    program = (
        "import sys, webhook.cluster_objects.namespaces, webhook.kube.client;"
        "print([m for m in sys.modules if m.startswith('kubernetes.')"
        " and ('.models.' in m or '.client.api.' in m)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def contexts(folder: Path) -> Path:
    """A kubeconfig of two contexts, of which the first is the current one."""
    file = folder / "contexts"
    file.write_text("""
apiVersion: v1
kind: Config
current-context: one
clusters:
- {name: one, cluster: {server: "http://127.0.0.1:1"}}
- {name: two, cluster: {server: "http://127.0.0.1:2"}}
users: [{name: me, user: {}}]
contexts:
- {name: one, context: {cluster: one, user: me}}
- {name: two, context: {cluster: two, user: me, namespace: research}}
""")
    return file


def test_a_context_can_be_chosen(tmp_path: Path) -> None:
    """Else the current one counts; one that is not there is told."""
    file = contexts(tmp_path)
    assert host_of(file, {}) == "http://127.0.0.1:1"
    assert asyncio.run(load(file, context="two", environ={})).host == "http://127.0.0.1:2"
    with pytest.raises(ClusterError, match="three"):
        asyncio.run(load(file, context="three", environ={}))


def test_the_namespace_that_is_meant_is_the_contexts_own(tmp_path: Path) -> None:
    file = contexts(tmp_path)
    assert default_namespace(file, environ={}) == "default"
    assert default_namespace(file, context="two", environ={}) == "research"
    environ = {"KUBECONFIG": str(file)}
    assert default_namespace(None, context="two", environ=environ) == "research"
    with pytest.raises(ClusterError, match="no such kubeconfig"):
        default_namespace(tmp_path / "absent", environ={})


@pytest.mark.parametrize("namespace", ["[]", "5", "{}", "Research"])
def test_a_namespace_that_is_no_name_is_an_error_not_the_default(
    tmp_path: Path, namespace: str
) -> None:
    """Else a command would act on what is in another one."""
    file = contexts(tmp_path)
    text = file.read_text().replace("namespace: research", f"namespace: {namespace}")
    file.write_text(text)
    with pytest.raises(InvalidName, match="context two"):
        default_namespace(file, context="two", environ={})


def test_in_a_pod_its_own_namespace_is_meant(tmp_path: Path) -> None:
    assert default_namespace(None, environ={}, service_account=tmp_path) == "default"
    (tmp_path / "namespace").write_text("research")
    assert default_namespace(None, environ={}, service_account=tmp_path) == "research"
