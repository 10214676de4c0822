# Every target builds .venv first if it has to; python3 (3.11 or later), make and pip are all it takes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS := $(VENV)/.docs
BENCH := $(VENV)/.bench

.PHONY: demo test lint docs bench verify verify-risk verify-intervals verify-plans verify-kills verify-service verify-inspect components clean

demo: $(READY)
	@echo "The experiment of the paper; the picture will be in reproduction/figure.png"
	@$(BIN)/spectralbai reproduce --force

test: $(READY)
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || echo "chromium or chromedriver is not installed: the tests of the page are skipped"
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(DOCS)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The documentation is in site/index.html"

bench: $(BENCH)
	$(BIN)/python -m benchmarks.allocation
	$(BIN)/python -m benchmarks.samples
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.campaign
	$(BIN)/python -m benchmarks.study
	$(BIN)/python -m benchmarks.workers
	$(BIN)/python -m benchmarks.catalogue
	$(BIN)/python -m benchmarks.large
	$(BIN)/python -m benchmarks.page
	$(BIN)/python -m benchmarks.service
	$(BIN)/python -m benchmarks.items
	$(BIN)/python -m benchmarks.search

verify: verify-risk verify-intervals verify-plans verify-kills verify-service verify-inspect

verify-risk: $(READY)
	$(BIN)/python -m verification.betting
	$(BIN)/python -m verification.ended
	$(BIN)/python -m verification.drift
	$(BIN)/python -m verification.items

verify-intervals: $(READY)
	$(BIN)/python -m verification.intervals
	$(BIN)/python -m verification.control

verify-plans: $(READY)
	$(BIN)/python -m verification.plans
	$(BIN)/python -m verification.forecasts

verify-kills: $(READY)
	$(BIN)/python -m verification.kills
	$(BIN)/python -m verification.study
	$(BIN)/python -m verification.pick

verify-service: $(BENCH)
	$(BIN)/python -m verification.service
	$(BIN)/python -m verification.attacks
	$(BIN)/python -m verification.backups
	$(BIN)/python -m verification.damage
	$(BIN)/python -m verification.edges

# inspect_ai needs other versions than constraints.txt has, so it gets an environment of its own.
verify-inspect:
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && cp -r examples "$$folder" && $(PYTHON) -m venv "$$folder/venv" && \
	  "$$folder/venv/bin/python" -m pip install -q --disable-pip-version-check '.[study]' 'inspect_ai==0.3.285' && \
	  cd "$$folder" && venv/bin/python examples/inspect_pick.py | tail -n 2

components: $(READY)
	@$(BIN)/python docs/tools/components.py > components.json
	@echo "The components that are installed, and their versions, are in components.json (CycloneDX)"

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist site
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "error: Python 3.11 or later is needed, this is " + sys.version.split()[0] + "; try make PYTHON=python3.12")'
	@echo "Creating the environment in $(VENV), which takes a minute or two ..."
	@$(PYTHON) -m venv --without-pip $(VENV)
	@$(PYTHON) -m pip --python $(BIN)/python install -q --disable-pip-version-check -c constraints.txt -e '.[plot,cluster,study,serve,sklearn,dev]'
	@touch $@
	@echo "The environment is ready."

$(DOCS): $(READY)
	@$(PYTHON) -m pip --python $(BIN)/python install -q --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

$(BENCH): $(READY)
	@$(PYTHON) -m pip --python $(BIN)/python install -q --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@touch $@
