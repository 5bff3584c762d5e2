# Two commands do everything on a fresh machine: `make demo` and `make test`.
# The interpreter; by itself tools/venv.sh takes the first of 3.11 to 3.14 that it finds.
PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
AUDIT := .venv-audit
DASK := webhook/sandbox/requirements/dask-kubernetes.txt
# Each worker is a process with a control plane of its own; one more than there are cores, for each
# waits now and then. `make test WORKERS=0` runs in one.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# The order of the tests is random, and so are the cases of properties. `make test SEED=…` repeats
# both.
SEED ?=
# The log names the slowest tests: CI has an hour for them all.
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 4 --durations 40 --dist loadfile \
	--no-loadscope-reorder \
	$(if $(SEED),--randomly-seed=$(SEED) --hypothesis-seed=$(SEED))
# Without cached bytecode every program that a test starts compiles its modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-unit test-all test-beyond test-operators test-browser screenshots test-versions test-laws golden fuzz lint format lock audit sbom wheel image bench chaos manifests assets docs clean

help:
	@echo 'make demo     set up, then show the webhook at work'
	@echo 'make test     set up, then run the tests that every change needs, on a real API server too'
	@echo 'make test-unit  the tests that need no control plane'
	@echo 'make test-all   make test, and models, schemas and chaos held against the real thing'
	@echo 'make test-beyond  what make test-all has beyond make test'
	@echo 'make test-operators  the tests beside operators of other projects, which are built on first use'
	@echo 'make test-browser  the pages in Chromium, which the distribution has'
	@echo 'make screenshots  take the pictures of these pages again, for the documentation'
	@echo 'make test-versions  the cluster tests against each version of docs/reference/versions.md'
	@echo 'make test-laws  the laws and the machine of runs: FAIRLEAD_EXAMPLES=… for more cases'
	@echo '              WORKERS=0 runs tests in one process, SEED=… with the order and the random cases of an earlier run'
	@echo 'make fuzz     a million random reviews: FAIRLEAD_FUZZ_CASES=… for another number'
	@echo 'make golden   rewrite the golden texts of messages after they were reworded'
	@echo 'make lint     ruff, mypy, import-linter, and the limits of tools/limits.toml'
	@echo 'make format   let ruff rewrite the code'
	@echo 'make bench    measure, and rewrite the tables of docs/benchmarks.md'
	@echo 'make docs     make the site of all pages, in dist/site; VERSION=… in a folder of its own'
	@echo 'make manifests  generate the parts of manifests/ that are made from the code'
	@echo 'make assets   build the editor of the pages again; needs Node 20'
	@echo 'make chaos    play what goes wrong, and rewrite the tables of docs/reliability.md'
	@echo 'make lock     resolve the dependencies again'
	@echo 'make audit    hold the locks against the known vulnerabilities'
	@echo 'make sbom     write dist/fairlead.cdx.json, the bill of materials of the lock'
	@echo 'make wheel    write dist/fairlead-VERSION-py3-none-any.whl, for uv tool install or pipx install'
	@echo 'make image    as root: build the image with buildah, and run webhook and controller from it'
	@echo 'make clean    remove what the above made in this folder'

$(STAMP): pyproject.toml requirements.lock requirements-dev.lock
	@tools/venv.sh $(VENV) requirements-dev.lock $(PYTHON)
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP)
	$(BIN)/fairlead demo

# What is in which tier: docs/testing.md.
test: $(STAMP)
	$(PYTEST) --tier unit,cluster

test-unit: $(STAMP)
	$(PYTEST) --tier unit

test-all: export FAIRLEAD_EXAMPLES ?= many
test-all: $(STAMP)
	$(PYTEST) --tier unit,cluster,thorough

# What test-all has beyond test: the tier thorough, and every property with many examples.
test-beyond: export FAIRLEAD_EXAMPLES ?= many
test-beyond: $(STAMP)
	$(PYTEST) --tier thorough,properties

# In one process: the MPI operator has a fixed port.
test-operators: WORKERS = 0
test-operators: $(STAMP)
	$(PYTEST) --tier operators

# Needs Chromium: apt install chromium, or another package of the distribution.
test-browser: WORKERS = 0
test-browser: $(STAMP)
	$(PYTEST) --tier browser

# The pictures of the pages in docs/images, by the same tests.
screenshots: $(STAMP)
	FAIRLEAD_SCREENSHOTS=1 $(BIN)/python -m pytest -n 0 -q --tier browser -k axe

# The editor of the pages, from the packages of assets/package-lock.json. Needs Node 20.
assets:
	cd assets && npm ci --silent && npm run --silent build

# One static site of all pages, in dist/site; a link to nothing ends it. With VERSION=0.1.0 in
# dist/site/0.1.0, beside other versions; with FAIRLEAD_REPOSITORY=URL each page can be edited.
docs: $(STAMP)
	$(BIN)/python -m tools.site $(VERSION)

# Hours on first use, when each version is built. VERSIONS=1.33.4 for some of them.
test-versions: VERSIONS ?=
test-versions: $(STAMP)
	$(BIN)/python -m tests.versions $(VERSIONS)

# The laws, and the controller in a world of faults, with FAIRLEAD_EXAMPLES random cases for each.
test-laws: export FAIRLEAD_EXAMPLES ?= many
test-laws: $(STAMP)
	$(PYTEST) tests/laws tests/run/machine --timeout=7200

# Random reviews for about an hour on one core. FAIRLEAD_FUZZ_CASES says how many.
fuzz: export FAIRLEAD_FUZZ_CASES ?= 1000000
fuzz: $(STAMP)
	$(BIN)/python -m pytest tests/fuzz --timeout=86400

# The texts of messages, after they were reworded: read the diff. TIER=cluster for that tier's.
golden: TIER ?= unit
golden: $(STAMP)
	$(BIN)/python -m pytest -n 0 -p no:randomly --tier $(TIER) --update-golden -q; \
		status=$$?; $(BIN)/python -m tests.reference_pages && exit $$status

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.house --limits

format: $(STAMP)
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/python -m tests.bench

# Hours. FAIRLEAD_CHAOS='rolling kill --resume' plays a selection, and goes on where it ended.
chaos: $(STAMP)
	$(BIN)/python -m tests.chaos $(FAIRLEAD_CHAOS)

# What kustomize reads, and then what it makes, for `fairlead install`.
manifests: $(STAMP)
	$(BIN)/fairlead generate schema crd run > manifests/crds/runs.fairlead.dev.yaml
	$(BIN)/fairlead generate schema crd placementpolicy > manifests/crds/placementpolicies.fairlead.dev.yaml
	$(BIN)/fairlead generate schema crd capacityclass > manifests/crds/capacityclasses.fairlead.dev.yaml
	$(BIN)/fairlead generate schema crd placementexception > manifests/crds/placementexceptions.fairlead.dev.yaml
	$(BIN)/python -c 'from webhook.run.backends.reference import page; print(page(), end="")' > docs/reference/engines.md
	$(BIN)/fairlead generate schema crd runsource > manifests/crds/runsources.fairlead.dev.yaml
	$(BIN)/fairlead generate guard authors > manifests/base/run-authors.yaml
	$(BIN)/fairlead generate guard stamp > manifests/components/guard-stamp-warn/stamp.yaml
	$(BIN)/fairlead generate guard stamp --action deny > manifests/components/guard-stamp-deny/stamp.yaml
	$(BIN)/fairlead generate guard node-names > manifests/components/guard-node-names/node-names.yaml
	$(BIN)/fairlead generate guard tolerations > manifests/components/guard-tolerations/tolerations.yaml
	$(BIN)/python -m tests.manifests

lock: $(STAMP)
	$(BIN)/python -m pip install --quiet 'uv>=0.9,<1'
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --group dev -c requirements.lock pyproject.toml -o requirements-dev.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --group build -c requirements-dev.lock -o requirements-build.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --group audit -o requirements-audit.lock
	echo "dask-kubernetes==$$(sed -n 's/^dask-kubernetes==\([0-9.]*\).*/\1/p' $(DASK))" | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header - -o $(DASK)

$(AUDIT)/.installed: requirements-audit.lock
	@tools/venv.sh $(AUDIT) requirements-audit.lock $(PYTHON)
	@touch $@

# Exit code 1: known vulnerabilities. 2: the data could not be reached, so nothing is known.
audit: $(STAMP) $(AUDIT)/.installed
	$(BIN)/python -m tools.audit $(AUDIT)/bin/pip-audit requirements.lock requirements-dev.lock

sbom: $(STAMP)
	@mkdir -p dist
	$(BIN)/python -m tools.sbom > dist/fairlead.cdx.json
	@echo 'dist/fairlead.cdx.json'

wheel: $(STAMP)
	@mkdir -p dist
	$(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir dist .
	@ls dist/fairlead-*.whl

# What it needs is checked first. Exit code 2: something is missing, and the cure.
image: $(STAMP)
	@mkdir -p dist
	$(BIN)/python -m tools.image

clean:
	rm -rf $(VENV) $(AUDIT) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
