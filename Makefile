# The two commands are `make demo` and `make test`; both set up .venv first.
PYTHON ?= python3
BIN := .venv/bin
export MPLBACKEND := Agg

.PHONY: docs demo serve test lint types check browser oldest bench compare clean

demo: .venv/ready
	$(BIN)/oclok run crowdsourcing --output demo

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

# The page is tested in a browser where there is one, or where one may be installed.
browser:
	@command -v chromedriver >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
		{ apt-get update -qq && apt-get install -y -qq chromium chromium-driver; } >/dev/null 2>&1; } || true

docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo 'Open site/index.html. The search needs a server: python3 -m http.server -d site'

# The core, against the oldest versions that pyproject.toml declares.
oldest: .venv-oldest/ready
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 .venv-oldest/bin/python -m pytest -q -n 2 --hypothesis-profile ci \
		tests/posterior tests/oracles tests/policies tests/theory tests/testing \
		tests/test_decision.py tests/test_fitting.py tests/test_golden.py tests/test_persistence.py tests/test_validation.py

.venv-oldest/ready: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-oldest.txt \
		-e . pandas pytest pytest-xdist hypothesis mpmath
	touch $@

bench: .venv-bench/ready
	.venv-bench/bin/python -m benchmarks

.venv-bench/ready: pyproject.toml constraints-bench.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-bench.txt -e '.[bench]'
	touch $@

compare: .venv-compare/ready
	.venv-compare/bin/python -m benchmarks.compare

.venv-compare/ready: pyproject.toml constraints-compare.txt
	$(PYTHON) -m venv .venv-compare
	.venv-compare/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-compare.txt -e '.[compare]'
	.venv-compare/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-compare.txt --no-deps ISLP # a table; its code needs PyTorch
	touch $@

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "oclok needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf site .venv .venv-bench .venv-oldest .venv-compare demo results build
