"""`python -m oclok`, and the entry point of the command `oclok`."""
# Tested in tests/bench/cli/test_run.py: it only starts the command line.

from __future__ import annotations

import sys

from oclok import __version__
from oclok.errors import MissingExtraError
from oclok.extras import needs

#: Commands of the service, which needs nothing of the extra `bench`.
SERVICE = ("serve", "keys", "replay", "export", "evaluate", "check", "agents")


def main() -> None:
    """Run the command line, or name the extra it needs."""
    if sys.argv[1:] == ["--version"]:  # works without any extra
        print(f"oclok {__version__}")
        return
    extra = "service" if sys.argv[1:2] and sys.argv[1] in SERVICE else "bench"
    try:
        with needs(extra):
            if extra == "service":
                from oclok.service.cli import main as run
            else:
                from oclok.bench.cli import main as run
            run()
    except MissingExtraError as missing:
        print(f"oclok: {missing}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
