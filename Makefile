# make run   train GPNN on the built-in graph and print its accuracy
# make test  lint, types, tests
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test lint types clean

run: .venv/installed
	$(BIN)/gpnn train citeseer --preset views --seeds 6 --out runs/citeseer

test: lint types
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed
	$(BIN)/mypy

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv runs .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
