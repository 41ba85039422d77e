"""`python -m oclok`, and the entry point of the command `oclok`."""
# Tested in tests/bench/cli/test_run.py: it only starts the command line.

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from oclok import __version__
from oclok.errors import OclokError
from oclok.extras import needs

#: Commands of the service, which needs nothing of the extra `bench`.
SERVICE = ("serve", "keys", "replay", "export", "evaluate", "check", "agents")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line with `arguments`, those of the process if left out."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:  # works without any extra
        print(f"oclok {__version__}")
        return
    extra = "service" if words and words[0] in SERVICE else "bench"
    try:
        with needs(extra):
            import_module(f"oclok.{extra}.cli").app(words, prog_name="oclok")
    except OclokError as error:
        print(f"oclok: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
