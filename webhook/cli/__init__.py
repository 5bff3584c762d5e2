"""The command: one small module a subcommand, imported only when it is called."""


def main() -> None:
    """Run the command line."""
