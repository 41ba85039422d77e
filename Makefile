# The two commands are `make demo` and `make test`; each sets up its own environment first.
PYTHON ?= python3
BIN := .venv/bin
CHECK_PYTHON := $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "oclok needs Python 3.11 or newer; try make PYTHON=python3.12")'
export MPLBACKEND := Agg

.PHONY: docs demo dist serve test lint types check browser oldest bench compare clean

demo: .venv-demo/ready
	.venv-demo/bin/oclok run crowdsourcing --output demo
	@echo 'Open demo/report.html'

serve: .venv/ready
	$(BIN)/oclok serve --demo --storage sqlite:///demo.db

test: lint types check

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy

check: .venv/ready browser
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 2 --dist worksteal --hypothesis-profile ci

# The page is tested in a browser, and a typed client in Node, where they are or may be installed.
browser:
	@command -v npm >/dev/null && npm --prefix tests install --silent --no-audit --no-fund >/dev/null 2>&1 || true
	@command -v chromedriver >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
		{ apt-get update -qq && apt-get install -y -qq chromium chromium-driver; } >/dev/null 2>&1; } || true

docs: .venv/ready
	$(BIN)/sphinx-build -W --keep-going -q -b html docs site
	@echo 'Open site/index.html'

# What a release uploads: see CONTRIBUTING.md.
dist:
	rm -rf dist build .venv-release
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt build twine
	.venv-release/bin/python -m build
	.venv-release/bin/twine check --strict dist/*

# The core, against the oldest versions that pyproject.toml declares.
oldest: .venv-oldest/ready
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 .venv-oldest/bin/python -m pytest -q -n 2 --hypothesis-profile ci \
		tests/posterior tests/oracles tests/policies tests/theory tests/testing \
		tests/test_decision.py tests/posterior/test_fitting.py tests/test_golden.py tests/test_persistence.py tests/test_validation.py

.venv-oldest/ready: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-oldest.txt \
		-e . pandas pytest pytest-xdist hypothesis mpmath
	touch $@

bench: .venv-bench/ready
	.venv-bench/bin/python -m benchmarks

.venv-bench/ready: pyproject.toml constraints-bench.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-bench.txt -e '.[peers]'
	touch $@

compare: .venv-compare/ready
	.venv-compare/bin/python -m benchmarks.compare

.venv-compare/ready: pyproject.toml constraints-compare.txt
	$(PYTHON) -m venv .venv-compare
	.venv-compare/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-compare.txt -e '.[compare]'
	.venv-compare/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-compare.txt --no-deps ISLP # a table; its code needs PyTorch
	touch $@

# Only what the demo needs. Modules are compiled when they are first imported.
.venv-demo/ready: pyproject.toml constraints.txt
	@$(CHECK_PYTHON)
	@echo 'Installing into .venv-demo: about 100 MB to download'
	@$(PYTHON) -m venv .venv-demo
	@.venv-demo/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@touch $@

.venv/ready: pyproject.toml constraints.txt
	@$(CHECK_PYTHON)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf site jupyter_execute dist .venv .venv-demo .venv-release .venv-bench .venv-oldest .venv-compare demo results build
