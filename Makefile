# The two commands are `make demo` and `make test`; both set up .venv first.
PYTHON ?= python3
BIN := .venv/bin
export MPLBACKEND := Agg

.PHONY: docs demo test lint types check bench compare clean

demo: .venv/ready
	$(BIN)/oclok run crowdsourcing --output demo

test: lint types check

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy

check: .venv/ready
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 2 --dist worksteal --hypothesis-profile ci

docs: .venv/ready
	$(BIN)/mkdocs build

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
	touch $@

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "oclok needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf site .venv .venv-bench .venv-compare demo results build
