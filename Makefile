# Every target sets up what it needs in .venv by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
DEMO_STAMP := $(VENV)/.demo-ready
DOCS_STAMP := $(VENV)/.docs-ready
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: demo test test-fast test-servers lint format types imports bench docs clean chromium
.DEFAULT_GOAL := demo

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(DEMO_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) '.[cli,excel]'
	touch $@

$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) '.[test]'
	touch $@ $(DEMO_STAMP)

$(DOCS_STAMP): $(STAMP)
	$(PIP) '.[docs]'
	touch $@

demo: $(DEMO_STAMP)
	$(BIN)/python -m tools.demo

test: $(STAMP) chromium lint types
	$(BIN)/python -m pytest -q -m 'not servers'
	$(BIN)/python -m pytest -q --doctest-modules src/mailverdict --doctest-glob='*.md' README.md
	$(BIN)/python -m pytest -q --nbval-lax --nbval-current-env --nbval-sanitize-with notebooks/sanitize.cfg notebooks

# The same without style and types, for the loop between edits: make test-fast ARGS='tests/checks -x'
test-fast: $(STAMP)
	$(BIN)/python -m pytest -q $(ARGS)

# Against Debian's own Postfix, Exim, postgrey and PostgreSQL, on loopback. Needs root; skipped, visibly, where they cannot be had.
test-servers: $(STAMP)
	$(BIN)/python tests/servers/install.py
	$(BIN)/python -m pytest -m servers --session-timeout=240 $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks tools
	$(BIN)/ruff format --check src tests benchmarks tools
	$(BIN)/lint-imports --no-cache

format: $(STAMP)
	$(BIN)/ruff check --fix src tests benchmarks tools
	$(BIN)/ruff format src tests benchmarks tools

types: $(STAMP)
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m benchmarks $(ARGS)

# The site in site/; warnings are errors, and nothing in it may be fetched from elsewhere.
docs: $(DOCS_STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python -m tools.check_site

# The browser tests drive Debian's chromium; where it cannot be installed they are skipped, and say so.
chromium:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || echo "chromium is missing and cannot be installed here: the browser tests will be skipped"

clean:
	rm -rf $(VENV) build dist site out .pytest_cache .mypy_cache .ruff_cache .hypothesis
