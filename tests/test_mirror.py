"""tests/ mirrors src/oclok file by file; a file that is tested elsewhere says where.

It does so in a line of its own: `# Tested in tests/<file>.py: <reason>.` In either case the tests
use what the file defines: a name, a method, a path or an option.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "oclok"
FILES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
ELSEWHERE = re.compile(r"^# Tested in (tests/\S+\.py): .+\.$", re.M)
#: An `__init__.py` up to this long is a list of names.
LIST_OF_NAMES = 60


def defined(text: str) -> set[str]:
    """Return the public names that a module defines, of its classes too, and paths and options."""
    names: set[str] = set()
    tree = ast.parse(text)
    for node in tree.body:
        names |= _named(node)
        if isinstance(node, ast.ClassDef):
            names |= {name for inner in node.body for name in _named(inner)}
    for inner in ast.walk(tree):
        value = inner.value if isinstance(inner, ast.Constant) else None
        if isinstance(value, str) and re.fullmatch(r"[^ ]*[/-][^ ]*", value):
            names |= set(re.findall(r"\w{4,}", value))
    return {name for name in names if not name.startswith("_")}


def _named(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    return {target.id for target in targets if isinstance(target, ast.Name)}


@pytest.mark.parametrize("path", FILES, ids=str)
def test_every_file_has_tests_that_use_it(path: Path) -> None:
    text = (SOURCE / path).read_text("utf-8")
    is_list = path.name == "__init__.py" and text.count("\n") <= LIST_OF_NAMES
    if is_list or not re.search(r"^\s*(def|class) ", text, re.M):
        return
    named = [ROOT / name for name in ELSEWHERE.findall(text)]
    tests = named or [ROOT / "tests" / path.parent / f"test_{path.name}"]
    for test in tests:
        assert test.exists(), f"write {test.relative_to(ROOT)}, or say where {path} is tested"
    words = {word for test in tests for word in re.findall(r"\w+", test.read_text("utf-8"))}
    names = defined(text)
    assert not names or names & words, f"{path}: its tests mention none of {sorted(names)[:9]}"


#: A name and its private attribute; of an object, not of the test's own class or its base.
PRIVATE = re.compile(r"([\w\])]+)\._[a-z]\w*")
OWN = re.compile(r"os|self|cls|[A-Z]\w*|super\(\)|\)")


@pytest.mark.parametrize("test", sorted((ROOT / "tests").rglob("*.py")), ids=lambda p: p.name)
def test_no_test_reads_private_state(test: Path) -> None:
    text = test.read_text("utf-8")
    found = [m[0] for m in PRIVATE.finditer(text) if not OWN.fullmatch(m[1])]
    assert not found
    assert test == Path(__file__) or '__dict__["_' not in text
