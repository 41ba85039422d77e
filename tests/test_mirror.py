"""tests/ mirrors src/oclok file by file; a file that is tested elsewhere says where.

It does so in a line of its own: `# Tested in tests/<file>.py: <reason>.`
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "oclok"
FILES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
ELSEWHERE = re.compile(r"^# Tested in (tests/\S+\.py): .+\.$", re.M)
#: An `__init__.py` up to this long is a list of names.
LIST_OF_NAMES = 60


@pytest.mark.parametrize("path", FILES, ids=str)
def test_every_file_has_its_tests(path: Path) -> None:
    text = (SOURCE / path).read_text("utf-8")
    if path.name == "__init__.py" and text.count("\n") <= LIST_OF_NAMES:
        return
    named = [ROOT / name for name in ELSEWHERE.findall(text)]
    mirror = ROOT / "tests" / path.parent / f"test_{path.name}"
    if not named:
        assert mirror.exists(), f"write {mirror.relative_to(ROOT)}, or say where it is tested"
    for test in named:
        assert test.exists(), f"{path} is said to be tested in {test}, which is not there"


#: A name and its private attribute; of an object, not of the test's own class or its base.
PRIVATE = re.compile(r"([\w\])]+)\._[a-z]\w*")
OWN = re.compile(r"os|self|cls|[A-Z]\w*|super\(\)|\)")


@pytest.mark.parametrize("test", sorted((ROOT / "tests").rglob("*.py")), ids=lambda p: p.name)
def test_no_test_reads_private_state(test: Path) -> None:
    text = test.read_text("utf-8")
    found = [m[0] for m in PRIVATE.finditer(text) if not OWN.fullmatch(m[1])]
    assert not found
    assert test == Path(__file__) or '__dict__["_' not in text
