from __future__ import annotations

import json
import subprocess
import sys

import pytest

from oclok import __version__
from oclok.errors import MissingExtraError
from oclok.extras import needs

HEAVY = {"pandas", "matplotlib", "joblib", "typer", "rich", "pyarrow", "dask", "distributed"}


def modules_after(code: str) -> set[str]:
    """Return the modules that a new Python has loaded after `code`."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_importing_oclok_is_light() -> None:
    loaded = modules_after("import oclok")
    assert not HEAVY & loaded
    assert not {name for name in loaded if name.split(".")[0] == "sklearn"}
    assert not {name for name in loaded if name.startswith("oclok.bench")}


def test_the_core_is_light_in_all_its_parts() -> None:
    loaded = modules_after("import oclok.oracles, oclok.policies, oclok.posterior, oclok.testing")
    assert not HEAVY & loaded
    assert "sklearn" not in loaded


def test_without_the_service_extra_the_client_names_it():
    code = (
        "import sys; sys.modules['httpx'] = None\n"
        "from oclok.errors import MissingExtraError\n"
        "try: from oclok import Client\n"
        "except MissingExtraError as error: assert \"'oclok[service]'\" in str(error), error\n"
        "else: raise AssertionError"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_dir_lists_what_is_public_and_the_import_itself_loads_next_to_nothing():
    code = (
        "import sys, oclok\n"
        "assert dir(oclok) == sorted(oclok.__all__)\n"
        "assert 'scipy' not in sys.modules\n"
        "from oclok import *\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_version_is_printed_without_any_extra():
    code = (
        "import sys; sys.modules['typer'] = None; sys.argv = ['oclok', '--version']\n"
        "from oclok.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"oclok {__version__}\n"


def test_without_pandas_a_table_names_the_extra():
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "from oclok import Agent\n"
        "from oclok.errors import MissingExtraError\n"
        "from oclok.oracles import TopK\n"
        "decision = Agent(oracle=TopK(1)).decide({'a': {'x': 1.0}, 'b': {'x': 2.0}})\n"
        "try: decision.table()\n"
        "except MissingExtraError as error: assert \"'oclok[agent]'\" in str(error), error\n"
        "else: raise AssertionError"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_package_is_an_error_that_names_the_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'oclok\[bench\]'"), needs("bench"):
        import no_such_package  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match=r"oclok\.nothing"), needs("bench"):
        import oclok.nothing  # noqa: F401


def test_the_commands_of_the_bench_run_without_what_the_service_needs() -> None:
    code = (
        "import sys\n"
        "for name in ('sqlalchemy', 'fastapi', 'uvicorn', 'pyarrow'):\n"
        "    sys.modules[name] = None\n"
        "import oclok.bench.cli"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
