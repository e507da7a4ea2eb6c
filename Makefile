# Every target sets up what it needs in .venv by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
DEMO_STAMP := $(VENV)/.demo-ready
AUDIT_STAMP := $(VENV)/.audit-ready
DOCS_STAMP := $(VENV)/.docs-ready
LOWER := build/lower
LOWER_STAMP := $(LOWER)/.ready
CLUSTERS := build/clusters
CLUSTERS_STAMP := $(CLUSTERS)/.ready
BENCH_STAMP := $(VENV)/.bench-ready
ENGINES := build/engines
ENGINES_STAMP := $(ENGINES)/.ready
DAGSTER := build/dagster
DAGSTER_STAMP := $(DAGSTER)/.ready
unexport PYTHONDONTWRITEBYTECODE # or each process that a test starts compiles the package again
WORKERS ?= 4 # on two cores: some tests wait for sockets and other processes
PYTEST := $(BIN)/python -m pytest -q
PARALLEL := --numprocesses=$(WORKERS) --dist=worksteal
# What takes seconds in each worker and is for other targets: plugins, and files none of whose tests would run.
UNUSED := -p no:nbval -p no:schemathesis -p no:anyio \
	--ignore-glob='*_browser.py' --ignore=tests/clusters --ignore=tests/engines
PYTHON_FILES := src tests benchmarks tools conftest.py
TESTED := --doctest-modules --doctest-glob=README.md tests src/mailverdict README.md
CHECKS_LOG := build/checks.log
SERVERS_LOG := build/servers.log
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: demo audit test notebooks test-random test-package test-all test-rest test-lower run-lower test-engines test-clusters run-clusters-lower java test-fast lint format types types-windows bench docs clean chromium axe
.DEFAULT_GOAL := demo

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(DEMO_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) '.[cli,excel]'
	touch $@

$(AUDIT_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) '.[audit]'
	touch $@ $(DEMO_STAMP)

$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) '.[test]'
	touch $@ $(DEMO_STAMP) $(AUDIT_STAMP)

$(DOCS_STAMP): $(STAMP)
	$(PIP) '.[docs]'
	touch $@

$(BENCH_STAMP): $(STAMP)
	$(PIP) '.[bench]'
	touch $@

demo: $(DEMO_STAMP)
	$(BIN)/python -m tools.demo

# The interactive audit in the browser: of the sample with made-up servers, or of a list of yours: make audit FILE=contacts.csv
audit: $(AUDIT_STAMP)
	$(BIN)/mailverdict audit $(if $(FILE),"$(FILE)",data/samples/crm_export.csv --sandbox)

# Tests and doctests, the first notebook among them; lint, layers and types beside them. The last lines say what failed
# and how to run it alone. Where no test has been compiled, one process does it before all workers would.
test: $(STAMP)
	@mkdir -p build; \
	$(MAKE) --no-print-directory --keep-going lint types >$(CHECKS_LOG) 2>&1 & checks=$$!; \
	trap 'kill $$checks 2>/dev/null' EXIT; failed=0; \
	test -d tests/__pycache__ || $(PYTEST) --collect-only $(UNUSED) $(TESTED) >/dev/null 2>&1; \
	$(PYTEST) $(PARALLEL) $(UNUSED) $(TESTED) || failed=1; \
	if wait $$checks; then echo "lint, types:"; grep -E '^All checks|^Contracts|^Success' $(CHECKS_LOG); \
	else cat $(CHECKS_LOG); echo "Run alone what failed of these: make lint, make types"; failed=1; fi; \
	exit $$failed

# Each notebook in a kernel, as users run it; `make test` runs the cells of the first in its own process.
notebooks: $(STAMP)
	$(PYTEST) --nbval-lax --nbval-current-env --nbval-sanitize-with tests/nbval_sanitize.cfg notebooks

# All tests: those of `make test`, then the rest.
test-all: test test-rest test-lower test-engines test-clusters

# What takes long or needs software that is not Python: whole tables where `make test` takes a part, random examples, kills
# by the dozen, notebooks in kernels, large files, a browser, the installed package, and Debian's own Postfix, Exim,
# postgrey and PostgreSQL on loopback. What cannot be installed here is skipped, visibly. Each worker has a PostgreSQL of its
# own; the mail servers listen on fixed addresses, so that one process asks them, while another one drives the browser.
test-rest: $(STAMP) chromium axe
	$(BIN)/python tests/servers/install.py
	$(PYTEST) $(PARALLEL) -m 'slow or servers' --ignore=tests/servers
	@mkdir -p build; \
	$(PYTEST) -m servers tests/servers >$(SERVERS_LOG) 2>&1 & servers=$$!; \
	trap 'kill $$servers 2>/dev/null' EXIT; failed=0; \
	$(PYTEST) -m 'browser or package' || failed=1; \
	wait $$servers || failed=1; cat $(SERVERS_LOG); exit $$failed
	$(MAKE) --no-print-directory notebooks test-random docs types-windows

# The sdist, the wheel made from it, and an environment that has nothing else: the README's first example, the audit and
# the widget in JupyterLab.
test-package: $(STAMP) chromium
	$(PYTEST) -m package tests/test_package.py

# 200 random examples of each property, others in each run.
test-random: $(STAMP)
	$(PYTEST) $(PARALLEL) $(UNUSED) -m 'hypothesis and not slow and not browser and not servers' --hypothesis-profile=random

# The tests of frames, of the command line and of the service with the lowest declared releases of what the package
# depends on; `make test` has the newest. Tests that need a browser, Jupyter or other large packages are left out.
# numpy 1.26 has no wheels for Python 3.13.
test-lower:
	@if $(PYTHON) -c 'import sys; sys.exit(sys.version_info >= (3, 13))'; then $(MAKE) --no-print-directory run-lower; \
	else echo "SKIPPED: the lowest declared releases need Python 3.11 or 3.12"; fi

run-lower: $(LOWER_STAMP)
	$(LOWER)/bin/python -m pytest -q -p no:cacheprovider -W ignore::DeprecationWarning $(PARALLEL) \
		--ignore-glob='*_browser.py' --ignore=tests/cli/test_audit.py \
		--ignore=tests/service/http/test_openapi.py --ignore=tests/service/http/test_page.py \
		tests/frames tests/table tests/files tests/bounces tests/repair tests/model tests/reports tests/cli tests/service tests/test_samples.py tests/test_dask.py

$(LOWER_STAMP): pyproject.toml constraints.txt tools/lower_bounds.py
	$(PYTHON) -m venv $(LOWER)
	$(PYTHON) -m tools.lower_bounds >$(LOWER)/constraints.txt
	$(LOWER)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(LOWER)/constraints.txt \
		--editable '.[cli,excel,polars,dask,service,postgres]' pytest pytest-timeout pytest-xdist hypothesis numpydoc
	touch $@

# The pages about Ray, which is too large for the test extra, and about Dagster, whose releases need others than those in
# constraints.txt: in environments of their own.
test-engines: $(ENGINES_STAMP) $(DAGSTER_STAMP)
	RAY_USAGE_STATS_ENABLED=0 $(ENGINES)/bin/python -m doctest -o NORMALIZE_WHITESPACE -o ELLIPSIS docs/how-to/recipes/ray.md
	$(DAGSTER)/bin/python -m pytest -q -p no:cacheprovider -p no:logging -m engines tests/engines

$(ENGINES_STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable . 'ray[data]'
	touch $@

$(DAGSTER_STAMP): pyproject.toml
	$(PYTHON) -m venv $(DAGSTER)
	$(DAGSTER)/bin/python -m pip install --quiet --disable-pip-version-check \
		--editable '.[cli,service]' dagster pytest pytest-timeout hypothesis
	touch $@

# Frames on Dask's LocalCluster and Spark's local-cluster, each of two processes: with the newest releases, and with the
# lowest declared ones. The packages are large, so that they are not in .venv. Spark needs Java 17, which Debian's apt
# brings where root allows; without it the tests of Spark are skipped, visibly.
CLUSTER_TESTS := -m pytest -q -p no:cacheprovider -p no:logging -m clusters tests/clusters
test-clusters: $(CLUSTERS_STAMP) java
	$(CLUSTERS)/bin/python $(CLUSTER_TESTS)
	@if $(PYTHON) -c 'import sys; sys.exit(sys.version_info >= (3, 12))'; then $(MAKE) --no-print-directory run-clusters-lower; \
	else echo "SKIPPED: PySpark 3.5 needs Python 3.11"; fi

run-clusters-lower: $(LOWER_STAMP)
	$(LOWER)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(LOWER)/constraints.txt \
		--editable '.[dask,spark]' 'dask[distributed]' setuptools
	$(LOWER)/bin/python $(CLUSTER_TESTS) -k 'one_process or same_schema or pays_once'

$(CLUSTERS_STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(CLUSTERS)
	$(CLUSTERS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--editable '.[dask,spark,service]' 'dask[distributed]' pytest pytest-timeout hypothesis
	touch $@

java:
	@command -v java >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq openjdk-17-jre-headless >/dev/null; } || echo "java is missing and cannot be installed here: the tests of Spark will be skipped"

# Tests alone, for the loop between edits: make test-fast ARGS='tests/checks -x'
test-fast: $(STAMP)
	$(PYTEST) $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check $(PYTHON_FILES)
	$(BIN)/ruff format --check $(PYTHON_FILES)
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix $(PYTHON_FILES)
	$(BIN)/ruff format $(PYTHON_FILES)

types: $(STAMP)
	$(BIN)/mypy

# Names that a platform does not have are errors of types: what only POSIX has needs another way on Windows.
types-windows: $(STAMP)
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32

# Everything beside its peers, for an hour on two cores; from benchmarks/results.json come benchmarks/RESULTS.md and the
# pictures in docs/pictures/measured. ARGS=NAME runs one, ARGS=--quick all in small. A missed goal is not an error.
bench: $(BENCH_STAMP)
	$(BIN)/python -m benchmarks $(ARGS)

# The site in site/; warnings are errors, and nothing in it may be fetched from elsewhere.
docs: $(DOCS_STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python -m tools.check_site

# The browser tests drive Debian's chromium; where it cannot be installed they are skipped, and say so.
chromium:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || echo "chromium is missing and cannot be installed here: the browser tests will be skipped"

# The browser tests look for barriers with axe-core, from the npm registry; without it those tests are skipped, and say so.
AXE := axe-core@4.14.1
axe: build/axe/axe.min.js
build/axe/axe.min.js:
	@mkdir -p build/axe && { cd build/axe && npm pack --silent $(AXE) >/dev/null && tar xzf axe-core-*.tgz --strip-components=1 package/axe.min.js && touch axe.min.js; } || echo "axe-core cannot be fetched here: the tests of accessibility will be skipped"

clean:
	rm -rf $(VENV) build dist site out .pytest_cache .mypy_cache .ruff_cache .hypothesis
