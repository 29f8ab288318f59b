# Everything runs in a virtual environment of its own, .venv, made on first use; yours is left alone. A fresh machine
# needs CPython >= 3.10, cargo, make and a C linker. Every step is redone only when what it depends on has changed: the
# native wheel, for one, only after a change to the sources that go into it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet
STAMPS := $(VENV)/stamps
PEERS := target/peers-venv
FUZZ := target/fuzz
HOST = $(shell rustc -vV | sed -n 's/^host: //p')

# One interpreter for pyo3's build script, whatever the PATH of the moment: builds do not thrash. (A user's active
# virtual environment or conda would win over it otherwise.)
export PYO3_PYTHON := $(abspath $(PY))
unexport VIRTUAL_ENV CONDA_PREFIX PYTHONPATH PYTHONHOME

PACKAGE_SOURCES := $(shell find src python -type f -not -name '*.py[co]' 2>/dev/null) \
    Cargo.toml $(wildcard Cargo.lock) pyproject.toml $(wildcard README.md)
PYTHON_EXAMPLES := $(wildcard examples/*.py)
RUST_EXAMPLES := $(basename $(notdir $(wildcard examples/*.rs)))
LINTED := $(wildcard python tests benches examples)

.PHONY: help demo test test-rust test-python test-types test-examples lint bench bench-rust bench-peers \
    proof soak soak-short edges fuzz fuzz-short audit wheel clean

help: ## Say what there is
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(STAMPS)/wheel ## Build the package and run the tour
	$(PY) examples/tour.py

test: lint test-rust test-python test-types test-examples ## All checks and all tests

test-rust: ## The Rust tests (no Python needed) and the Rust documentation
	cargo test
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps

test-python: $(STAMPS)/dev $(STAMPS)/wheel ## The Python tests, on the built wheel
	$(PY) -m pytest

# On the installed wheel, as a user's type checker sees it; stubtest holds the stubs against the native module, and has
# no list of exceptions.
test-types: $(STAMPS)/dev $(STAMPS)/wheel ## The types, as a user sees them
	$(PY) -m mypy --strict tests/python/typing_public.py
	$(if $(PYTHON_EXAMPLES),$(PY) -m mypy --strict $(PYTHON_EXAMPLES))
	$(PY) -m mypy.stubtest duetime

test-examples: $(STAMPS)/wheel ## Every example runs
	$(foreach example,$(PYTHON_EXAMPLES),$(PY) -W error $(example) >/dev/null;)
	$(foreach example,$(RUST_EXAMPLES),cargo run --quiet --example $(example) >/dev/null;)

lint: $(STAMPS)/dev ## Format, clippy, ruff, mypy
	cargo fmt --check
	cargo fmt --check --manifest-path benches/peers/Cargo.toml
	cargo fmt --check --manifest-path fuzz/Cargo.toml
	cargo clippy --all-targets -- -D warnings
	cargo clippy --all-targets --features python -- -D warnings
	$(PY) -m ruff check $(LINTED)
	$(PY) -m ruff format --check $(LINTED)
	$(PY) -m mypy

bench: $(STAMPS)/dev $(STAMPS)/wheel ## The Python benchmarks
	$(PY) -m pytest benches/python --override-ini='python_files=*.py' --timeout=0 --benchmark-only

bench-rust: ## The Rust benchmarks
	cargo bench

# The peers have an environment of their own. BENCH=--quick for two minutes instead of ten; BENCH_LARGE=1 for more.
bench-peers: $(PEERS)/wheel ## duetime beside other schedulers: docs/performance.md
	$(PEERS)/bin/python benches/peers.py $(BENCH)

proof: ## Model-check the wake-up protocol (needs spin)
	proof/check.sh

soak: $(STAMPS)/wheel ## All kinds of calls at random, for ten minutes; SEED=n repeats them
	$(PY) tests/soak/soak.py --minutes 10 $(if $(SEED),--seed $(SEED))

soak-short: $(STAMPS)/wheel ## The same for one minute
	$(PY) tests/soak/soak.py --minutes 1 $(if $(SEED),--seed $(SEED))

edges: $(STAMPS)/wheel ## The ends of a process, races and memory at length: five minutes; EDGES=--quick for half of one
	$(PY) tests/edges_long/edges.py $(EDGES)

fuzz: FUZZ_SECONDS := 600
fuzz: ## Fuzz the core's operations for ten minutes, guided by coverage
fuzz-short: FUZZ_SECONDS := 30
fuzz-short: ## The same for half a minute
fuzz fuzz-short: $(FUZZ)/stamp
	mkdir -p $(FUZZ)/corpus
	$(FUZZ)/$(HOST)/release/operations -max_total_time=$(FUZZ_SECONDS) -timeout=30 -max_len=400 -print_final_stats=1 \
	    -artifact_prefix=$(FUZZ)/ $(FUZZ)/corpus

audit: ## Known faults of what the lock files name (needs cargo-audit, which fetches its database)
	$(foreach lock,Cargo.lock fuzz/Cargo.lock benches/peers/Cargo.lock,cargo audit --file $(lock);)

wheel: $(STAMPS)/wheel ## The wheel, in target/wheels

clean: ## Remove all that was made
	rm -rf $(VENV) target

# ---------------------------------------------------------------------------------------------------------------------

# The interpreter is PYTHON, if given, or else the first CPython >= 3.10 that is found. Where it comes without ensurepip
# (Debian keeps that in python3-venv) its own pip, if it has one, fills the environment.
$(STAMPS)/venv:
	@python=$$(for candidate in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python3.10); do \
	    if "$$candidate" -c 'import sys, venv; sys.exit(sys.implementation.name != "cpython" or sys.version_info < (3, 10))' \
	        2>/dev/null; then echo "$$candidate"; break; fi; done); \
	if [ -z "$$python" ]; then \
	    echo "no CPython >= 3.10 with the venv module found: install one, or say 'make PYTHON=/path/to/python3'" >&2; exit 1; \
	fi; \
	if "$$python" -c 'import ensurepip' 2>/dev/null; then \
	    "$$python" -m venv --clear $(VENV); \
	else \
	    "$$python" -m venv --clear --without-pip $(VENV); \
	    "$$python" -m pip --python $(VENV)/bin/python --quiet install pip || { \
	        echo "$$python has neither ensurepip nor pip: install python3-venv" >&2; exit 1; }; \
	fi
	mkdir -p $(STAMPS)
	touch $@

# Dependency groups need pip 25.1; the one that came with the interpreter may be older.
$(STAMPS)/pip: $(STAMPS)/venv
	$(PIP) install --upgrade 'pip>=25.1'
	touch $@

$(STAMPS)/build: pyproject.toml $(STAMPS)/pip
	$(PIP) install --group build
	touch $@

$(STAMPS)/dev: pyproject.toml $(STAMPS)/pip
	$(PIP) install --group dev
	touch $@

$(STAMPS)/wheel: $(PACKAGE_SOURCES) $(STAMPS)/build
	rm -f target/wheels/duetime-*.whl
	$(PY) -m maturin build --release --interpreter $(PYO3_PYTHON) --out target/wheels
	$(PIP) install --force-reinstall --no-deps --no-index target/wheels/duetime-*.whl
	touch $@

# Two of the peers have wheels for some interpreters only: without one, a note takes the place of their figures.
$(PEERS)/stamp: pyproject.toml $(STAMPS)/pip
	$(PY) -m venv --clear --without-pip $(PEERS)
	$(PIP) --python $(PEERS)/bin/python install --group peers
	for peer in rust-py-scheduler rscheduler; do \
	    $(PIP) --python $(PEERS)/bin/python install --only-binary :all: "$$peer" || echo "no usable wheel of $$peer" >&2; \
	done
	touch $@

$(PEERS)/wheel: $(STAMPS)/wheel $(PEERS)/stamp
	$(PIP) --python $(PEERS)/bin/python install --force-reinstall --no-deps --no-index target/wheels/duetime-*.whl
	touch $@

# What cargo-fuzz passes, but for the address sanitizer, which stable Rust does not have. Needs a C++ compiler. With the
# target named, the flags are not for build scripts.
$(FUZZ)/stamp: $(shell find src fuzz/src fuzz/fuzz_targets -name '*.rs' 2>/dev/null) Cargo.toml fuzz/Cargo.toml
	RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
	    -Cllvm-args=-sanitizer-coverage-trace-compares" \
	    cargo build --release --locked --manifest-path fuzz/Cargo.toml --target-dir $(FUZZ) --target $(HOST) --bin operations
	touch $@
