# Every command of the project. Needs Python 3.11 or newer and make; packages are installed with uv where there is one,
# with pip otherwise.
PYTHON ?= python3
BIN := .venv/bin
UV := $(shell command -v uv 2>/dev/null)
# Tests run side by side, one worker per core; an idle worker takes over tests of a busy one.
PYTEST := $(BIN)/python -m pytest
BESIDE := -n auto --dist worksteal
# Tests start hundreds of processes. Each would compile what it imports if none of them kept the bytecode.
unexport PYTHONDONTWRITEBYTECODE
# What `make test-lowest` runs: the library on all its inputs, and the experiments' kernel and runner.
LOWEST := data/test_log data/test_bad_input data/test_odd_input policies estimates/test_baselines estimates/test_methods \
	comparison/test_compare comparison/test_conditions comparison/test_planning comparison/test_diagnostics \
	comparison/test_degrade comparison/test_scores verdicts/test_verdicts verdicts/test_gated theory \
	worlds/test_bandits command/test_cli experiments/test_kernel experiments/test_runner

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test test-all test-heavy test-slow test-system test-processor test-lowest test-release \
	dist docs coverage lint format calibration bench bench-large clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.all ## install podium with every extra and every tool into .venv (3 GB)

demo: .venv/.core ## compare five policies on the bundled example and write a report
	@$(BIN)/podium demo

test: .venv/.test ## run the tests that need only packages of moderate size (five minutes on two cores)
	$(PYTEST) $(BESIDE)

test-all: test-heavy test-slow test-system test-processor test-lowest test-release docs ## run everything that `make test` leaves out

test-heavy: .venv/.all ## run the tests that need torch, Dask or MkDocs
	$(PYTEST) $(BESIDE) -m heavy

test-slow: .venv/.test ## run the long tests, most of them statistical
	$(PYTEST) $(BESIDE) -m "slow and not heavy"

test-system: .venv/.all .bench/obp/.ready ## run the tests that need Java, Chromium, zsh or fish
	$(PYTEST) -m system tests

test-processor: .venv/.all ## run the examples of the README and the docs with the linear algebra of an older processor
	OPENBLAS_CORETYPE=Prescott $(PYTEST) $(BESIDE) -m "heavy or not heavy" tests/test_documents.py

test-lowest: .lowest/.ready ## run the tests of the library with the lowest versions that it supports
	.lowest/bin/python -m pytest $(BESIDE) -m "not slow and not system" $(wildcard $(LOWEST:%=tests/%.py) $(filter-out %.py,$(LOWEST:%=tests/%)))

test-release: .venv/.all ## build the package, install the wheel alone in a clean environment, and use it
	$(PYTEST) -m release tests/release

dist: .venv/.all ## build the sdist and the wheel into dist/
	rm -rf dist
	$(BIN)/python -m build --outdir dist

docs: .venv/.all ## build the documentation site into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --clean --quiet
	@echo "Written: site/index.html (open it in a browser)"

coverage: .venv/.all ## run the tests of `make test` and show the lines they miss
	$(PYTEST) $(BESIDE) --cov --cov-report=term-missing

lint: .venv/.lint ## check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict src

format: .venv/.lint ## apply the format and the safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

calibration: .venv/.test ## measure how honest the verdicts are, on simulated logs with known truth (about an hour)
	$(BIN)/python -m podium.calibration --out calibration.md --csv calibration.csv --overwrite
	$(BIN)/python -m podium.calibration.large --out calibration-large.txt --overwrite
	$(BIN)/python -m podium.calibration.foresight
	$(BIN)/python -m podium.calibration.everyday --overwrite

bench: .venv/.all .bench/obp/.ready ## measure speed beside Open Bandit Pipeline (about 1.5 GB of packages at first)
	$(BIN)/python bench/run.py

bench-large: .venv/.test ## measure the engine on 1e8 generated rows (25 GB of disk, half an hour)
	$(BIN)/python bench/engines.py --large

clean: ## remove all that these commands have made
	rm -rf .venv .lowest .bench dist build site podium-demo .pytest_cache .hypothesis .ruff_cache .mypy_cache .coverage
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# Environments. $(call environment,FOLDER) makes one that has pip; $(call install,FOLDER) begins a command that installs
# into it. A Python without ensurepip (Debian without python3-venv) lends its own pip.
ifneq ($(UV),)
environment = $(UV) venv --quiet --seed --allow-existing --python "$$(command -v $(PYTHON))" $(1)
install = $(UV) pip install --quiet --python $(1)/bin/python
else
environment = $(PYTHON) -m venv $(1) >/dev/null 2>&1 || { $(PYTHON) -m venv --clear --without-pip $(1) \
	&& $(PYTHON) -m pip --python $(1)/bin/python install --quiet --disable-pip-version-check pip; }
install = $(1)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile
endif

.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "podium needs Python 3.11 or newer, which '$(PYTHON)' is not." \
			"Try: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(call environment,.venv)
	@touch $@

# A stamp says that podium is installed with the extras of that name; whoever installs more stamps what it includes too.
stamp = @echo "Installing podium $(2) into .venv ..." \
	&& $(call install,.venv) --constraint constraints/cpu-torch.txt --editable '.$(1)' && touch $(3:%=.venv/.%)

.venv/.core: pyproject.toml .venv/.made
	$(call stamp,,and its few dependencies (seconds),core)

.venv/.test: pyproject.toml .venv/.made
	$(call stamp,[test],and what most tests need (1 GB),core test)

.venv/.lint: pyproject.toml .venv/.made
	$(call stamp,[lint],and the linters (1 GB),core lint)

.venv/.all: pyproject.toml constraints/cpu-torch.txt .venv/.made
	$(call stamp,[dev],with every extra and every tool (3 GB),core test lint all)

# The lowest versions live in an environment of their own, beside the newest ones in .venv.
.lowest/.ready: pyproject.toml .ci/lowest.txt
	@echo "Installing the lowest versions into .lowest ..."
	@[ -x .lowest/bin/pip ] || { $(call environment,.lowest); }
	@$(call install,.lowest) --constraint .ci/lowest.txt \
		--editable '.[parquet,duckdb,sklearn,cluster]' polars pytest pytest-xdist hypothesis
	@touch $@

# Open Bandit Pipeline lives in an environment of its own: it declares Python < 3.11 and wants torch.
.bench/obp/.ready: bench/obp-requirements.txt
	@echo "Installing Open Bandit Pipeline into .bench/obp ..."
	@[ -x .bench/obp/bin/pip ] || { $(call environment,.bench/obp); }
	@$(call install,.bench/obp) --requirement $<
	@.bench/obp/bin/python -m pip install --quiet --no-deps --ignore-requires-python obp==0.5.7
	@touch $@
