"""The code blocks of the README and of each page in docs/ run, top to bottom."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_blocks_run(page):
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)
    namespace = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    missing = [link for link in local if not (page.parent / link).exists()]
    assert not missing


def test_every_page_is_in_the_menu_of_the_site():
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")]
    assert len(pages) > 25
    assert [page for page in pages if f": {page}\n" not in menu] == []


def test_the_api_reference_has_every_public_name():
    pages = (page.read_text(encoding="utf-8") for page in (ROOT / "docs/api").glob("*.md"))
    documented = set(re.findall(r"^::: (.*)$", "\n".join(pages), re.M))
    packages = (
        "agent bench.analysis bench.experiments bench.figures bench.problems offline oracles "
        "policies posterior"
    )
    missing = []
    for package in packages.split():
        module = importlib.import_module(f"oclok.{package}")
        objects = [getattr(module, name) for name in module.__all__]
        homes = {value.__module__ for value in objects if hasattr(value, "__module__")}
        missing += sorted(homes - documented) if module.__name__ not in documented else []
    assert missing == []


def test_the_entry_to_cite_is_that_of_the_citation_file():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    home = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    entry = home[home.index("@article") :]
    found = dict(re.findall(r"(\w+)\s*= \{(.*)\}", entry))
    for key in ("title", "journal", "url"):
        assert f'{key}: "{found[key]}"' in citation
    assert f"year: {found['year']}" in citation
    for name in found["author"].split(" and "):
        family, given = name.split(", ")
        assert f"given-names: {given}\n      family-names: {family}" in citation
