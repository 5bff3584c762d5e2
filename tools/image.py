"""`make image`: build the Containerfile with buildah, and run Fairlead from what was built.

As root on Debian or Ubuntu, without a daemon. The base image is pulled by its digest. Where no
registry is reached, a base of the same layout is made from the distribution's packages; such an
image is for trials, and this program says so. The image is built twice, and both must have the
same digest. Exit codes: 0, the image was built and runs; 1, it was not, or does not; 2, something
is missing on this machine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from webhook import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT: Final = Path(__file__).parents[1]
IMAGE: Final = f"localhost/fairlead:{__version__}"
ARCHIVE: Final = ROOT / "dist" / f"fairlead-{__version__}.oci.tar"
# What each program is for, and the package of Debian and Ubuntu that has it.
PROGRAMS: Final = {
    "buildah": "buildah",
    "unshare": "util-linux",
    "chroot": "coreutils",
    "git": "git",
}
_STAND_IN: Final = "localhost/fairlead-base:bookworm"
_PACKAGES: Final = "python3,python3-pip,python3-venv,ca-certificates"
# Settings of pip that say where packages come from, and whom to trust.
_PIP_SETTINGS: Final = frozenset(
    {"cert", "extra-index-url", "index-url", "proxy", "timeout", "trusted-host"}
)
_PORTS: Final = {"serve": 8081, "controller": 8082}
_READY_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 30.0
_USER: Final = "65532:65532"


def main() -> None:
    """Build, compare, run, and print size, digest and bill of materials."""
    if missing := missing_packages(PROGRAMS):
        _stop(2, f"missing programs. Install them: apt-get install {' '.join(missing)}")
    if os.geteuid() != 0:
        _stop(2, "buildah makes the files of other users here. Run it as root: sudo make image")
    with tempfile.TemporaryDirectory(prefix="fairlead-image-") as folder:
        work = Path(folder)
        base = _base(work)
        first, second = (_build(base, work, turn) for turn in (1, 2))
        if first != second:
            _stop(1, f"two builds of the same files differ: {first} and {second}")
        _say(f"two builds have the same digest: {first}")
        _run(work)
    subprocess.run([sys.executable, "-m", "tools.sbom"], cwd=ROOT, check=True, stdout=_bill())
    size = json.loads(_output("buildah", "images", "--json", IMAGE))[0]["size"]
    _say(f"{IMAGE}: {size} unpacked, {ARCHIVE.stat().st_size / 1e6:.0f} MB as {_name(ARCHIVE)}")
    _say("bill of materials: dist/fairlead.cdx.json")
    if base == _STAND_IN:
        _say("THE BASE IS A STAND-IN: do not publish this image; build it where a registry is.")


def missing_packages(programs: dict[str, str]) -> list[str]:
    """Return the packages of the programs that are not on the path, sorted."""
    return sorted({package for name, package in programs.items() if not shutil.which(name)})


def pinned_base(containerfile: str) -> str:
    """Return the base image that the Containerfile names, with its digest."""
    match = re.search(r"^ARG BASE=(\S+@sha256:[0-9a-f]{64})$", containerfile, re.MULTILINE)
    if not match:
        raise ValueError("the Containerfile has no line `ARG BASE=name@sha256:…`")
    return match.group(1)


def pip_configuration(listed: str) -> str:
    """Return a pip.conf with the settings of `pip config list` that a build needs, too."""
    settings = {}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        name = key.rpartition(".")[2]
        if name in _PIP_SETTINGS:
            settings[name] = value.strip("'\"")
    return "[global]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items())


def _base(work: Path) -> str:
    pinned = pinned_base((ROOT / "Containerfile").read_text())
    _say(f"pulling {pinned}")
    pulled = subprocess.run(
        ["buildah", "pull", "--quiet", f"docker.io/library/{pinned}"],
        capture_output=True,
        text=True,
    )
    if pulled.returncode == 0:
        _say("base: the pinned image")
        return f"docker.io/library/{pinned}"
    _say(f"the registry was not reached: {(pulled.stderr.strip().splitlines() or ['?'])[-1]}")
    _say("base: a stand-in of the same layout, from this distribution's packages")
    if subprocess.run(["buildah", "images", "--quiet", _STAND_IN], capture_output=True).returncode:
        _make_stand_in(work)
    return _STAND_IN


def _make_stand_in(work: Path) -> None:
    if missing := missing_packages({"debootstrap": "debootstrap"}):
        _stop(2, f"for the stand-in: apt-get install {' '.join(missing)}")
    _say("debootstrap: a minute or two")
    root = work / "base"
    command = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", "bookworm", str(root)]
    _quietly([*command, *_mirror()])
    python = root / "usr" / "local" / "bin"
    for name in ("python", "python3", "python3.11"):
        (python / name).symlink_to("/usr/bin/python3.11")
    for note in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        # The image of Python that it stands in for has none.
        note.unlink()
    shutil.rmtree(root / "var" / "cache" / "apt", ignore_errors=True)
    container = _output("buildah", "from", "scratch")
    _quietly(["buildah", "add", "--quiet", container, str(root), "/"])
    _quietly(["buildah", "commit", "--quiet", "--rm", container, _STAND_IN])


def _mirror() -> list[str]:
    """Return the mirror that this machine's own packages come from; debootstrap's default without
    one.
    """
    for path in sorted(Path("/etc/apt").glob("sources.list*/**/*")):
        match = path.is_file() and re.search(r"^URIs:\s*(\S+)", path.read_text(), re.MULTILINE)
        if match:
            return [match.group(1)]
    return []


def _build(base: str, work: Path, turn: int) -> str:
    """Build the image, write it to ARCHIVE, and return its digest."""
    _say(f"build {turn} of 2")
    epoch = _output("git", "-C", str(ROOT), "log", "-1", "--format=%ct")
    volumes = _trust(work)
    _quietly(
        [
            *("buildah", "build", "--isolation", "chroot", "--network", "host", "--no-cache"),
            *("--format", "oci", "--timestamp", epoch, "--build-arg", f"SOURCE_DATE_EPOCH={epoch}"),
            *("--ignorefile", str(ROOT / ".containerignore"), "--build-arg", f"BASE={base}"),
            *(f"--volume={volume}" for volume in volumes),
            *("--label", f"org.opencontainers.image.version={__version__}"),
            *("--label", f"org.opencontainers.image.revision={_revision()}"),
            *("--file", str(ROOT / "Containerfile"), "--tag", IMAGE, str(ROOT)),
        ]
    )
    ARCHIVE.parent.mkdir(exist_ok=True)
    ARCHIVE.unlink(missing_ok=True)
    digest = work / "digest"
    _quietly(["buildah", "push", "--digestfile", str(digest), IMAGE, f"oci-archive:{ARCHIVE}"])
    return digest.read_text().strip()


def _trust(work: Path) -> list[str]:
    """Return where pip finds packages on this machine, and the authorities that it trusts,
    mounted."""
    listed = _output(sys.executable, "-m", "pip", "config", "list")
    configuration = work / "pip.conf"
    configuration.write_text(pip_configuration(listed))
    volumes = [f"{configuration}:/etc/pip.conf:ro"]
    match = re.search(r"^cert = (.+)$", configuration.read_text(), re.MULTILINE)
    if match:
        volumes.append(f"{match.group(1)}:{match.group(1)}:ro")
    return volumes


def _revision() -> str:
    changed = _output("git", "-C", str(ROOT), "status", "--porcelain")
    return _output("git", "-C", str(ROOT), "rev-parse", "HEAD") + ("-changed" if changed else "")


def _run(work: Path) -> None:
    """Run the image's programs as its user on a read-only root, against a real API server."""
    with ExitStack() as stack:
        container = _output("buildah", "from", IMAGE)
        stack.callback(_quietly, ["buildah", "rm", container])
        root = Path(_output("buildah", "mount", container))
        _say(_output(*_inside(root, "version")).splitlines()[0])
        _say("starting a sandbox: its API server serves the image's programs")
        fairlead, name = str(Path(sys.executable).parent / "fairlead"), "image"
        _quietly([fairlead, "sandbox", "up", "--name", name])
        stack.callback(_quietly, [fairlead, "sandbox", "down", "--name", name])
        kubeconfig = Path(_output(fairlead, "sandbox", "kubeconfig", "--name", name))
        shared = root / "run" / "fairlead"
        shared.mkdir()
        readable = shared / "kubeconfig"
        readable.write_bytes(kubeconfig.read_bytes())
        (shared / "policies").mkdir()
        shutil.copy(ROOT / "policies" / "capacity" / "any-provider.yaml", shared / "policies")
        for path in [shared, *shared.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o444)
        common = ("--kubeconfig", "/run/fairlead/kubeconfig")
        _starts(
            root, work, "serve", *common, "--policies", "/run/fairlead/policies", "--self-signed"
        )
        _starts(root, work, "controller", *common, "--lease-name", "image")


def _inside(root: Path, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs `fairlead` in the image's files as the manifests say.

    The root is read-only; /tmp is a volume, and /proc and /dev are there. Mounts and chroot are
    made here, because this machine may refuse the rights that a container's runtime asks for.
    """
    script = (
        'set -e; mount --bind "$1" "$1"; mount -t tmpfs -o mode=1777 none "$1/tmp"\n'
        'for each in proc dev; do mount --rbind "/$each" "$1/$each"; done\n'
        'mount -o remount,bind,ro "$1"\n'
        f'root=$1; shift; exec chroot --userspec={_USER} "$root" /opt/fairlead/bin/fairlead "$@"'
    )
    image = json.loads(_output("buildah", "inspect", "--type", "image", IMAGE))
    clean = ("env", "-i", *image["OCIv1"]["config"]["Env"])
    return (*clean, "unshare", "--mount", "sh", "-c", script, "sh", str(root), *arguments)


def _starts(root: Path, work: Path, command: str, *options: str) -> None:
    """Wait until the program is ready, then until it ends after SIGTERM with exit code 0."""
    log = work / f"{command}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            _inside(root, command, *options), stdout=output, stderr=subprocess.STDOUT
        )
    try:
        end = time.monotonic() + _READY_SECONDS
        while not _ready(_PORTS[command]):
            if process.poll() is not None or time.monotonic() > end:
                _stop(1, f"{command} did not become ready:\n{log.read_text()[-2000:]}")
            time.sleep(0.2)
        process.terminate()
        code = process.wait(_STOP_SECONDS)
    finally:
        process.kill()
    if code:
        _stop(1, f"{command} ended with exit code {code}:\n{log.read_text()[-2000:]}")
    _say(f"{command}: ready as user {_USER} on a read-only root, and stopped by SIGTERM")


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _bill() -> int:
    return os.open(ROOT / "dist" / "fairlead.cdx.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def _quietly(command: Sequence[str]) -> None:
    """Run a command whose output matters only if it fails."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    if done.returncode:
        _stop(1, f"{' '.join(command[:2])} failed:\n{done.stdout[-3000:]}")


def _say(text: str) -> None:
    print(f"image: {text}", file=sys.stderr, flush=True)


def _stop(code: int, text: str) -> NoReturn:
    _say(text)
    raise SystemExit(code)


if __name__ == "__main__":
    main()
