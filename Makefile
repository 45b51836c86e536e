# Every command of the project. Needs Python 3.11 or newer, pip and make.
PYTHON ?= python3
BIN := .venv/bin
# What `make test-lowest` runs: the library on all its inputs, and the experiments' kernel and runner.
LOWEST := test_log test_policies test_baselines test_methods test_compare test_verdicts test_gated test_gate \
	test_planning test_diagnostics test_degrade test_scores test_theory test_bandits test_bad_input test_odd_input \
	test_cli experiments/test_kernel experiments/test_runner

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow test-system test-lowest test-release dist docs coverage lint format calibration bench bench-large clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.ready ## build .venv with podium and everything that the demo and the tests use

demo: setup ## compare five policies on the bundled example and write a report
	@$(BIN)/podium demo

test: setup ## run every test that needs only pip
	$(BIN)/python -m pytest

test-slow: setup ## run the statistical tests of many runs
	@$(BIN)/python -m pytest -m slow || { status=$$?; [ $$status -eq 5 ] && echo "no slow tests yet"; }

test-system: setup .bench/obp/.ready ## run the tests that need Java, Chromium or other shells
	$(BIN)/python -m pytest -m system tests

test-lowest: .lowest/.ready ## run the tests of the library with the lowest versions that it supports
	.lowest/bin/python -m pytest $(LOWEST:%=tests/%.py)

test-release: setup ## build the package, install the wheel alone in a clean environment, and use it
	$(BIN)/python -m pytest -m release tests/release

dist: setup ## build the sdist and the wheel into dist/
	rm -rf dist
	$(BIN)/python -m build --outdir dist

docs: setup ## build the documentation site into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --clean --quiet
	@echo "Written: site/index.html (open it in a browser)"

coverage: setup ## run the tests and show the lines they miss
	$(BIN)/python -m pytest --cov --cov-report=term-missing

lint: setup ## check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict src

format: setup ## apply the format and the safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

calibration: setup ## measure how honest the verdicts are, on simulated logs with known truth (about an hour)
	$(BIN)/python -m podium.calibration --out calibration.md --csv calibration.csv
	$(BIN)/python -m podium.calibration.large --logs 200 --out calibration-large.txt
	$(BIN)/python -m podium.calibration.foresight

bench: setup .bench/obp/.ready ## measure speed beside Open Bandit Pipeline (about 1.5 GB of packages at first)
	$(BIN)/python bench/run.py

bench-large: setup ## measure the engine on 1e8 generated rows (25 GB of disk, half an hour)
	$(BIN)/python bench/engines.py --large

clean: ## remove all that these commands have made
	rm -rf .venv .lowest .bench dist build site podium-demo .pytest_cache .hypothesis .ruff_cache .mypy_cache .coverage
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# A Python without ensurepip (Debian without python3-venv) lends its own pip.
.venv/.ready: pyproject.toml constraints/cpu-torch.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "podium needs Python 3.11 or newer, which '$(PYTHON)' is not." \
			"Try: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Installing podium and its tools into .venv (about a minute) ..."
	@[ -x $(BIN)/pip ] || $(PYTHON) -m venv .venv >/dev/null 2>&1 \
		|| { $(PYTHON) -m venv --clear --without-pip .venv \
			&& $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints/cpu-torch.txt --editable '.[dev]'
	@touch $@

# The lowest versions live in an environment of their own, beside the newest ones in .venv.
.lowest/.ready: pyproject.toml .ci/lowest.txt | setup
	@echo "Installing the lowest versions into .lowest ..."
	@[ -x .lowest/bin/python ] || $(BIN)/python -m venv --without-pip .lowest
	@$(BIN)/python -m pip --python .lowest/bin/python install --quiet --constraint .ci/lowest.txt \
		--editable '.[parquet,duckdb,sklearn,cluster]' polars pytest hypothesis
	@touch $@

# Open Bandit Pipeline lives in an environment of its own: it declares Python < 3.11 and wants torch.
.bench/obp/.ready: bench/obp-requirements.txt
	@echo "Installing Open Bandit Pipeline into .bench/obp ..."
	@[ -x .bench/obp/bin/python ] || $(BIN)/python -m venv --without-pip .bench/obp
	@$(BIN)/python -m pip --python .bench/obp/bin/python install --quiet --requirement $<
	@$(BIN)/python -m pip --python .bench/obp/bin/python install --quiet \
		--no-deps --ignore-requires-python obp==0.5.7
	@touch $@
