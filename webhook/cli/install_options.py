"""The options that say what is installed: checked, and read from files."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import click

from webhook.errors import UnreadableInput
from webhook.interception import PATH
from webhook.pod_schema.object_rules import MAX_PORT
from webhook.questions.completion import members_of
from webhook.strict import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from webhook.installation.choices import Choices


class Image(click.ParamType[str]):
    """A reference that a kubelet can read, which need not exist."""

    name = "image"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the reference; click reports an error."""
        from webhook.run.new_run import is_image

        if not is_image(value):
            self.fail(
                f"{quoted(value)} is not an image; want [HOST[:PORT]/]NAME[:TAG][@sha256:DIGEST] "
                "with a name in lower case, such as registry.example.com/fairlead:0.1.0",
                param,
                ctx,
            )
        return str(value)


class WebhookUrl(click.ParamType[str]):
    """The address of a webhook outside the cluster."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the address; click reports all errors."""
        if errors := list(_url_errors(value)):
            self.fail(f"{'; '.join(errors)}; want https://HOST:PORT{PATH}", param, ctx)
        return str(value)


def _url_errors(url: str) -> Iterator[str]:
    """Yield what the API server refuses (k8s.io/apiserver, ValidateWebhookURL), ports that do not
    exist, and paths that no webhook of ours serves.

    User information is not repeated: it is a password.
    """
    if any(sign.isspace() or not sign.isprintable() for sign in url):
        yield "it has blanks or control characters"
        return
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as error:
        yield f"it is not a URL: {error}"
        return
    if parts.scheme != "https":
        yield f"its scheme is {quoted(parts.scheme)}"
    if not host:
        yield "it names no host"
    if "@" in parts.netloc:
        yield "it has a user or a password"
    _, colon, port = parts.netloc.rpartition("@")[2].rpartition("]")[2].partition(":")
    if colon and not (port.isascii() and port.isdecimal() and 0 < int(port) <= MAX_PORT):
        yield f"its port is {quoted(port)}, not one of 1 to {MAX_PORT}"
    if not parts.path.endswith(PATH):
        yield f"its path is {quoted(parts.path)}"
    if "?" in url or "#" in url:
        yield "it has a query or a fragment"


def read_authority(file: Path) -> bytes:
    """Return the certificates of a PEM file, and nothing else of it: a key would be published."""
    from certs.bundle import certificates, join

    authorities = certificates(file.read_bytes())
    if not authorities:
        raise click.BadParameter(
            f"{file}: no certificates in PEM; give those of the authority that signed the "
            "webhook's certificate",
            param_hint="--webhook-ca",
        )
    return join(authorities)


def is_file(source: str) -> bool:
    """Return whether a --source names a file, not a system."""
    return source.endswith((".yaml", ".yml", ".json"))


def sources_of(
    files: Sequence[Path], beside: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return the names of the systems in the files, and the texts of files that are not `beside`.

    Raises InvalidDocuments, UnreadableInput and BadParameter.
    """
    from webhook.policy.policy_documents import parse
    from webhook.server.folder import read_folder

    source_names: list[str] = []
    texts: dict[str, str] = {}
    for file in files:
        if not file.exists():
            raise click.BadParameter(f"there is no file {file}", param_hint="--source")
        for content in read_folder(file).values():
            systems = [document.model for document in parse({str(file): content}).sound()]
            if wrong := [system for system in systems if system.kind != "RunSource"]:
                what = f"{file} has a {wrong[0].kind}; want documents RunSource only"
                raise click.BadParameter(what, param_hint="--source")
            source_names += [system.name for system in systems]
            if beside.get(file.name) != content.decode():
                texts[file.name] = content.decode()
    return source_names, texts


def files_of(folder: Path) -> dict[str, str]:
    """Return the policy files of a folder, by the names that they shall have in a ConfigMap.

    They are read as the webhook will read them. Raises InvalidDocuments with every finding, or
    UnreadableInput if there is none, or two would have one name.
    """
    from webhook.judgement.set_judgement import load_sound
    from webhook.server.folder import read_folder

    content_by_path = read_folder(folder)
    if not content_by_path:
        raise UnreadableInput([f"{folder}: no policies there (*.yaml, *.yml, *.json)"])
    load_sound(content_by_path)
    files: dict[str, str] = {}
    for path, content in content_by_path.items():
        # A ConfigMap has no folders.
        relative = Path(path).relative_to(folder) if folder.is_dir() else Path(Path(path).name)
        name = "-".join(relative.parts)
        if name in files:
            raise UnreadableInput(
                [f"{path}: another file would also become {name}; rename one of them"]
            )
        files[name] = content.decode()
    return files


_OPTIONS: Final[tuple[Callable[[Any], Any], ...]] = (
    click.option(
        "--overlay",
        "overlay_names",
        multiple=True,
        metavar="NAME",
        shell_complete=members_of("webhook.installation.manifests", "overlays"),
        help="Overlay of the manifests: `default`, `cert-manager`, `fail-open-guarded`, "
        "`fail-open-guarded-deny`, `development`, `monitoring`. Repeatable: overlays are combined. "
        "Default: those of last time, or default.",
    ),
    click.option(
        "--source",
        "sources",
        multiple=True,
        metavar="NAME|FILE",
        shell_complete=members_of("webhook.sources", "SOURCES"),
        help="Also intercept the pods of this system; `fairlead policy sources` lists the names, "
        "and `fairlead policy sources --policies cluster` those of the cluster. A FILE has "
        "documents RunSource, which describe systems of your own and become policies, too. "
        "Repeatable.",
    ),
    click.option(
        "--image",
        type=Image(),
        metavar="IMAGE",
        help="Image of webhook and controller: REGISTRY/fairlead:TAG.",
    ),
    click.option(
        "--policies",
        type=click.Path(exists=True, path_type=Path),
        metavar="DIR",
        help="Create these policies as objects of the cluster, instead of the shipped classes.",
    ),
    click.option(
        "--policies-from-files",
        "from_files",
        is_flag=True,
        help="Make the webhook read its policies from files (the ConfigMap fairlead-policies) "
        "instead of objects. The policies of --policies replace the content of the ConfigMap.",
    ),
    click.option(
        "--nodes",
        is_flag=True,
        help="Make the webhook watch nodes, and warn about new pods that no node admits. Grants "
        "the right to do so.",
    ),
    click.option(
        "--backend",
        "backends",
        multiple=True,
        type=click.Choice(["dask", "jobset", "kubeflow", "kueue"]),
        help="Let the controller give Runs to this engine (`spec.backend`), or put them into "
        "queues of Kueue. Grants the rights to its objects. Repeatable.",
    ),
    click.option(
        "--policy-reports",
        "reports",
        is_flag=True,
        help="Make the controller write a policy report in each namespace with pods of runs. "
        "Grants the rights to do so; the reports go with them.",
    ),
    click.option(
        "--ui",
        is_flag=True,
        help="Run the pages of `fairlead ui cluster` in a pod too, for those who may forward a "
        "port to it. They have no login.",
    ),
    click.option(
        "--doctor",
        is_flag=True,
        help="Run `fairlead doctor` in the cluster every 15 minutes: a CronJob, whose failed Jobs "
        "have the findings. For clusters without Prometheus. Grants the rights to read what it "
        "checks.",
    ),
    click.option(
        "--webhook-url",
        type=WebhookUrl(),
        metavar="URL",
        help="URL of a webhook outside the cluster: https://HOST:PORT/mutate.",
    ),
    click.option(
        "--webhook-ca",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="CA certificate of the webhook outside the cluster, as PEM.",
    ),
)


def manifest_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say what is installed: one parameter `choices`."""

    @wraps(function)
    def with_choices(
        overlay_names: tuple[str, ...],
        sources: tuple[str, ...],
        image: str | None,
        policies: Path | None,
        from_files: bool,
        nodes: bool,
        backends: tuple[str, ...],
        reports: bool,
        ui: bool,
        doctor: bool,
        webhook_url: str | None,
        webhook_ca: Path | None,
        **others: Any,
    ) -> None:
        from webhook.installation.choices import Choices
        from webhook.installation.manifests import FROM_FILES, overlays

        if bool(webhook_url) != bool(webhook_ca):
            raise click.UsageError("give --webhook-url and --webhook-ca together")
        existing_overlays = overlays()
        if unknown := [name for name in overlay_names if name not in existing_overlays]:
            raise click.BadParameter(
                f"{unknown[0]!r} is not one of {', '.join(existing_overlays)}",
                param_hint="--overlay",
            )
        files = files_of(policies) if policies else None
        given = [Path(source) for source in sources if is_file(source)]
        source_names, source_files = sources_of(given, files or {})
        chosen = {
            "nodes": nodes,
            "policy-reports": reports,
            "ui": ui,
            "doctor": doctor,
            FROM_FILES: from_files,
        }
        choices = Choices(
            overlay_names,
            (
                *(name for name, wanted in chosen.items() if wanted),
                *(f"backend-{name}" for name in dict.fromkeys(backends)),
            ),
            (*(source for source in sources if not is_file(source)), *source_names),
            image or "",
            policies=files,
            url=webhook_url or "",
            authority=read_authority(webhook_ca) if webhook_ca else b"",
            source_files=source_files,
        )
        refuse_reports_of_files(choices)
        function(choices=choices, **others)

    decorated: Callable[..., None] = with_choices
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def refuse_reports_of_files(choices: Choices) -> None:
    """Raise UsageError for policy reports about policies that are files."""
    if choices.from_files and "policy-reports" in choices.components:
        raise click.UsageError(
            "--policy-reports is about policies that are objects of the cluster; leave out "
            "--policies-from-files, and if it is of last time, give --reset"
        )
