# make demo   the whole pipe on made-up dates, to an attention picture
# make test   all tests
# make check  what CI runs: format, lint, types, layers, tests
# make bench  speed, as ratios to other tools

SHELL := bash
.SHELLFLAGS := -o pipefail -ec
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2

.PHONY: help .venv demo test lint check bench clean

help:
	@sed -n 's/^# //p' $(firstword $(MAKEFILE_LIST))

.venv: .venv/installed

# The last thing that is made: an installation that failed half way is begun again.
.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: .venv
	$(MAKE) --no-print-directory -C examples/dates

test: .venv
	$(BIN)/python -m pytest -n $(JOBS)

lint: .venv
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

check: lint test

bench: .venv
	$(BIN)/python -m tests.bench

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache examples/*/out
