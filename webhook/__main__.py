"""The program `fairlead`, which Ctrl-C ends without a traceback, also while it is imported."""

from __future__ import annotations

import signal
import sys

# Python's own handler would raise KeyboardInterrupt in the middle of an import. A parent that has
# the signal ignored, as a shell does for what runs in the background, means it.
_IS_HEEDED = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _IS_HEEDED:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    """Run the command line. It ends by SIGINT, or with 130, when Ctrl-C is pressed."""
    from webhook.cli import main as run
    from webhook.cli.exit_codes import INTERRUPTED

    try:
        if _IS_HEEDED:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def complete() -> None:
    """Run kubectl_complete-fairlead, which kubectl asks what completes `kubectl fairlead`."""
    from webhook.cli import fairlead
    from webhook.cli.completion import complete_for_kubectl

    for line in complete_for_kubectl(fairlead, sys.argv[1:]):
        print(line)


if __name__ == "__main__":
    main()
