# `make demo` and `make test` do all their set-up; `make help` lists the rest.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTHON ?= $(shell command -v python3.11 || command -v python3)
JOBS ?= $(shell nproc)

export PYTHONDONTWRITEBYTECODE := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all bench bench-all lint format clean

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## virtual environment from the lock file, Debian packages where missing

$(READY): requirements.lock pyproject.toml
	@sim_scripts/debian-packages.sh
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; $(PYTHON) is `$(PYTHON) --version`" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--no-build-isolation --editable .
	@touch $@

demo: setup ## multiply a layer of a real language model on the generated hardware
	$(BIN)/poblano demo

test: setup ## the whole regression, at most 20 minutes on two cores
	$(BIN)/python -m pytest -m 'not nightly' -n $(JOBS)

test-all: setup ## the regression with the long random runs
	$(BIN)/python -m pytest -n $(JOBS)

bench: setup ## the published figures, into build/bench/results.json
	$(BIN)/poblano bench

bench-all: setup ## the published figures and the slow ones
	$(BIN)/poblano bench --all

lint: setup ## formatter, linter, type checker, and the emitted Verilog under four tools
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --project pyproject.toml --pythonpath $(BIN)/python
	$(BIN)/poblano lint --all

format: setup ## rewrite the sources in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove what was generated, not the virtual environment
	rm -rf build .pytest_cache .ruff_cache .hypothesis
