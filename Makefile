# The developer's and the user's commands. `make` alone lists them.

PYTHON ?= python3
VENV ?= .venv
CORES ?= 2
CONFIG ?= config/config.yaml
ARGS ?=

BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
NOT_LOADED := tests?|testing/_internal|torch/_inductor|torch/_dynamo|torch/onnx|sympy|networkx|mypy|pip|setuptools
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help campaign test lint lock clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z.]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo "variables: PYTHON=$(PYTHON) VENV=$(VENV) CORES=$(CORES) CONFIG=$(CONFIG) ARGS=... (more arguments for snakemake or pytest)"

# Bytecode apart from pip: on every core, and not for what neither Snakemake nor a cell loads: 17 s instead of 65 (2 cores).
# Left out, it would cost more: where PYTHONDONTWRITEBYTECODE is set, each campaign compiles torch anew.
# No build isolation: setuptools is in the lock, so that nothing outside it is ever installed.
$(STAMP): requirements.lock pyproject.toml
	@python=; for name in "$(PYTHON)" python3.11 python3.12 python3.13; do \
	  if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$name; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "caliber needs Python 3.11 or newer; '$(PYTHON)' is $$("$(PYTHON)" -V 2>&1 | tail -n 1), and no python3.11, python3.12" \
	    "or python3.13 is on PATH. Install one, or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; fi; \
	if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	  echo "$$python cannot make a virtual environment; install its venv package (Debian, Ubuntu: apt-get install python3-venv)" >&2; \
	  exit 1; fi; \
	echo "installing requirements.lock into $(VENV) with $$("$$python" -V) ..."; \
	"$$python" -m venv "$(VENV)"
	@$(PIP) install --no-compile -r requirements.lock
	@$(PIP) install --no-compile --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q -j 0 -x '/($(NOT_LOADED))/' $(VENV)/lib/python*/site-packages
	@touch $@

campaign: $(STAMP) ## run the campaign of CONFIG and print its summary; a second run resumes it
	@$(BIN)/snakemake --cores $(CORES) --configfile "$(CONFIG)" $(ARGS); ran=$$?; \
	$(BIN)/caliber summary --config "$(CONFIG)"; judged=$$?; \
	if [ $$ran -ne 0 ]; then exit $$ran; fi; exit $$judged

test: $(STAMP) ## run the tests
	@$(BIN)/python -m pytest -n $(CORES) --dist worksteal $(ARGS)

lint: $(STAMP) ## check style, types and the workflow
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/snakefmt --check workflow
	@$(BIN)/snakemake --lint --config campaign=lint  # a name never sealed: finished results may be of other code

lock: ## resolve pyproject.toml anew into requirements.lock, with PYTHON (use the oldest one, 3.11)
	@set -e; new=$$(mktemp -d); trap 'rm -rf "$$new"' EXIT; \
	$(PYTHON) -m venv "$$new"; \
	"$$new/bin/pip" install --quiet --no-compile "setuptools>=77" ".[target,dev]"; \
	"$$new/bin/pip" freeze --all --exclude pip --exclude caliber > "$$new/freeze"; \
	{ sed -n '/^#/p' requirements.lock; awk -F '[+]' '!/^(nvidia-|cuda-)/ || /^nvidia-ml-py=/ {print $$1}' "$$new/freeze"; } > "$$new/lock"; \
	cp "$$new/lock" requirements.lock

clean: ## remove .venv and every cache; results/ stays
	rm -rf .venv build dist caliber.egg-info .mypy_cache .pytest_cache .ruff_cache
	find harness tests workflow -name __pycache__ -prune -exec rm -rf {} +
