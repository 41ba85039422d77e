"""`python -m oclok`, and what the command `oclok` calls."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what it needs."""
    try:
        from oclok import cli
    except ModuleNotFoundError as missing:
        if (missing.name or "oclok").split(".")[0] == "oclok":
            raise
        print(f"oclok: {missing.name} is missing; install oclok[experiments]", file=sys.stderr)
        sys.exit(2)
    cli.main()


if __name__ == "__main__":
    main()
