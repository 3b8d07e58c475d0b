# Every target that needs the development environment builds it first; a second run does nothing.
# Variables: PYTHON (interpreter for .venv), PROFILE (gate: ci or nightly), PYTEST_ARGS (added to `make test`).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# The first that starts: a version manager's shim may be on the path and still run nothing.
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13; do \
	"$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo "$$p" && break; done)
PROFILE ?= ci
PYTEST_ARGS ?=

VENV := .venv
STAMP := $(VENV)/.stamp
CONSTRAINTS := constraints-dev.txt
VLLM_VERSION := 0.32.0
VLLM_TREES := .vllm-trees

.PHONY: help setup gate test lint bench vllm-tree clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## build .venv with the pinned development packages

# torch goes first and alone: with the pin it is one known build, while the range in pyproject.toml lets pip
# choose a newer one and its gigabytes of CUDA libraries. Existing environments are updated in place.
$(STAMP): pyproject.toml $(CONSTRAINTS)
	@python="$(PYTHON)"; \
	[[ ! -x $(VENV)/bin/pip ]] || python=$(VENV)/bin/python; \
	[[ -n "$$python" ]] || { echo "setup: no Python of 3.11 to 3.13 was found on the path." \
		"Install one, or name it: make setup PYTHON=/path/to/python3.11" >&2; exit 2; }; \
	"$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null || { \
		echo "setup: $$python is $$("$$python" --version 2>/dev/null || echo 'no Python that starts');" \
			"kvproof needs Python 3.11 to 3.13." \
			"Name another one: make clean && make setup PYTHON=/path/to/python3.11" >&2; exit 2; }; \
	log="$$(mktemp)"; trap 'rm -f "$$log"' EXIT; \
	quietly() { "$$@" >"$$log" 2>&1 || { cat "$$log" >&2; echo "setup: this failed: $$*" >&2; exit 1; }; }; \
	rm -f $@; \
	echo "setup: $(VENV) with $$("$$python" --version)"; \
	[[ -x $(VENV)/bin/pip ]] || quietly "$$python" -m venv $(VENV); \
	echo "setup: torch, pinned in $(CONSTRAINTS)"; \
	quietly $(VENV)/bin/python -m pip install -c $(CONSTRAINTS) torch; \
	echo "setup: kvproof and its development packages"; \
	quietly $(VENV)/bin/python -m pip install -c $(CONSTRAINTS) -e '.[dev]'; \
	touch $@

gate: $(STAMP) ## run everything that must hold: make gate PROFILE=nightly for the long budgets
	@$(VENV)/bin/kvproof gate --profile $(PROFILE)

test: $(STAMP) ## run the tests: make test PYTEST_ARGS='tests/spec -x' for some of them
	@$(VENV)/bin/python -m pytest $(PYTEST_ARGS)

lint: $(STAMP) ## style, types, import contracts and the tidy rules
	@echo "lint: ruff"
	@$(VENV)/bin/ruff check --quiet --output-format concise
	@$(VENV)/bin/ruff format --check --quiet || { \
		$(VENV)/bin/ruff format --check; echo "lint: to format: $(VENV)/bin/ruff format" >&2; exit 1; }
	@echo "lint: mypy"
	@$(VENV)/bin/mypy --no-error-summary
	@echo "lint: import contracts"
	@$(VENV)/bin/lint-imports --no-logo
	@echo "lint: tidy"
	@$(VENV)/bin/python -m pytest tests/tooling/test_tidy.py

bench: $(STAMP) vllm-tree ## measure speed, beside the vLLM tree
	@$(VENV)/bin/python -m bench

vllm-tree: $(VLLM_TREES)/.fetched-$(VLLM_VERSION) ## fetch the vLLM files that the adapter tests and the benchmark use

$(VLLM_TREES)/.fetched-$(VLLM_VERSION): | $(STAMP)
	@echo "vllm-tree: vLLM $(VLLM_VERSION) into $(VLLM_TREES)"
	@$(VENV)/bin/python -m kvfuzz.adapters.fetch_tree $(VLLM_VERSION) --into $(VLLM_TREES)
	@touch $@

clean: ## remove the environment, caches and reports; fetched vLLM trees stay
	@rm -rf $(VENV) .kvproof .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
