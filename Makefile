# `make demo` and `make test` need Python ≥ 3.11, make, git and a package index; they make
# their own environment in .venv. `make help` lists the rest.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
NEWER_PYTHONS := python3.14 python3.13 python3.12
# Version managers have commands that only report that a version is not selected.
NEWEST ?= $(firstword $(foreach name,$(NEWER_PYTHONS),$(shell $(name) -c 'print("$(name)")' 2>/dev/null)))
DEMO_DIR ?= roast-demo
ILLNESS_DIR ?= roast-illnesses
REPORT_DIR ?= roast-reports
PLOTLY_JS ?= 4.1.1
EXHAUSTIVE := -o norecursedirs=.git -m ""
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
# If another environment is activated, IPython adds its packages to sys.path.
unexport VIRTUAL_ENV
# Without byte code, pytest rewrites all tests again, and each process compiles its modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-all test-newest test-oldest test-versions lint generate gold docs samples experiment plotly screenshots benchmark-recorder benchmark-chunks benchmark-worker benchmark-analyze benchmark-report benchmark-performance-report benchmark-busy-time benchmark-why benchmark-gate benchmark-store benchmark-serve benchmark-remote campaign campaign-damage campaign-hostile campaign-store campaign-instrumented illnesses reports dask-suite wheel-matrix clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-28s %s\n", $$1, $$2}'

demo: $(VENV)/installed-all  ## record a small real coffea run on this machine, and write its report
	$(BIN)/roast-record demo -o $(DEMO_DIR)

test: $(VENV)/installed-test  ## run the tests, including those in a browser (6 minutes)
	@# Three processes for two cores: tests of clusters go one after the other, and mostly wait.
	browser=$$($(BIN)/python tests/browser/ensure_chromium.py) && \
	ROAST_CHROMIUM="$$browser" ROAST_REQUIRE_BROWSER=1 $(BIN)/python -m pytest -n 3 $(PYTEST_ARGS)

test-all: $(VENV)/installed-test  ## run all tests: also the oldest distributed, the independent computation of views, and damage (30 minutes)
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info >= (3, 13))'; then \
		$(MAKE) --no-print-directory test-oldest; \
	else \
		echo "distributed 2024.3.0 has no numpy for this Python: make test-oldest needs 3.11 or 3.12"; \
	fi
	$(MAKE) --no-print-directory test-newest
	browser=$$($(BIN)/python tests/browser/ensure_chromium.py) && \
	ROAST_CHROMIUM="$$browser" ROAST_REQUIRE_BROWSER=1 $(BIN)/python -m pytest -n 2 $(EXHAUSTIVE) $(PYTEST_ARGS)

test-newest:  ## run the recorder's tests on the newest installed Python, if .venv has another
	@if [ -z "$(NEWEST)" ]; then \
		echo "test-newest skipped: no $(NEWER_PYTHONS) on this machine"; \
	else \
		$(MAKE) --no-print-directory VENV=$(VENV)-newest PYTHON=$(NEWEST) $(VENV)-newest/installed-test && \
		$(VENV)-newest/bin/python -m pytest -n 2 $(EXHAUSTIVE) tests/recorder $(PYTEST_ARGS); \
	fi

test-oldest: $(VENV)-floor/installed  ## run the recorder's tests on the oldest supported distributed, and the dask-awkward example
	$(VENV)-floor/bin/python -m pytest -n 2 $(EXHAUSTIVE) tests/recorder $(PYTEST_ARGS)
	@# Other environments have a Dask that is too new for dask-awkward.
	$(VENV)-floor/bin/python -m pytest $(EXHAUSTIVE) tests/nightly/test_examples.py -k dask_awkward

test-versions: $(VENV)/created  ## run the recorder with eight versions of distributed, and print a table (30 minutes) [VERSIONS="2024.3.0 …"]
	$(BIN)/python benchmarks/version_matrix.py $(VERSIONS)

lint: $(VENV)/installed-test  ## check formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

generate: $(VENV)/installed-test  ## write the generated files: docs/reference, schemas/trace.schema.json
	$(BIN)/python schemas/generate.py

gold: $(VENV)/installed-test  ## write the gold rows of the nightly tests again, after a view has changed (2 minutes)
	cd tests && $(abspath $(BIN))/python -m nightly.write_gold

docs: $(VENV)/installed-docs  ## build the documentation in docs/_build and check its links
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs docs/_build
	@echo "docs/_build/index.html"

samples: $(VENV)/installed-test  ## record the sample traces again
	$(BIN)/python sample_traces/record_samples.py

experiment: $(VENV)/installed-all  ## compare the size of results with the branches read [FILES="a.root b.root" NAME=mine]
	$(BIN)/python sample_traces/branches_experiment.py $(if $(FILES),--files $(FILES) --chunksize 50 --name $(NAME))

plotly:  ## update plotly.js in the report [PLOTLY_JS=4.1.1; requires npm]
	work=$$(mktemp -d) && (cd $$work && npm pack --silent plotly.js-cartesian-dist-min@$(PLOTLY_JS) && tar xzf *.tgz) && \
	gzip -9nc $$work/package/plotly-cartesian.min.js > analyze/roast_analyze/report/assets/plotly-cartesian.min.js.gz && rm -r $$work

screenshots: $(VENV)/installed-test  ## update the screenshots of the report in docs/images
	browser=$$($(BIN)/python tests/browser/ensure_chromium.py) && \
	ROAST_CHROMIUM="$$browser" $(BIN)/python tests/browser/screenshots.py

benchmark-recorder: $(VENV)/installed-benchmark  ## measure the cost of recording: CPU, instructions, memory, pauses, trace size (30 minutes)
	$(BIN)/python benchmarks/recorder_cost.py
	$(BIN)/python benchmarks/scheduler_instructions.py
	$(BIN)/python benchmarks/recorder_memory.py
	$(BIN)/python benchmarks/recorder_stalls.py
	$(BIN)/python benchmarks/trace_size.py

benchmark-chunks: $(VENV)/installed-all  ## measure the cost of recording a coffea chunk (5 minutes)
	$(BIN)/python benchmarks/chunk_cost.py

benchmark-worker: $(VENV)/installed-benchmark  ## measure the cost of transfers, worker_transitions and host samples on workers (5 minutes)
	$(BIN)/python benchmarks/worker_cost.py

benchmark-analyze: $(VENV)/installed-benchmark  ## compare the analysis with other readers, by number of tasks (15 minutes) [TASKS="10_000 … 10_000_000" HTA=python]
	$(BIN)/python benchmarks/analyze_speed.py $(if $(TASKS),--tasks $(TASKS)) $(if $(HTA),--hta-python $(HTA))

benchmark-report: $(VENV)/installed-benchmark  ## measure how long a report takes to write, and to open in a browser (10 minutes) [TASKS="1_000 100_000 1_000_000"]
	browser=$$($(BIN)/python tests/browser/ensure_chromium.py) && \
	ROAST_CHROMIUM="$$browser" $(BIN)/python benchmarks/report_speed.py $(if $(TASKS),--tasks $(TASKS))

benchmark-what-if: $(VENV)/installed-benchmark  ## compare what-if predictions with real runs (10 minutes) [RUNS=folder]
	$(BIN)/python benchmarks/what_if.py $(RUNS)

benchmark-performance-report: $(VENV)/installed-benchmark  ## compare the report with Dask's performance_report of the same run (2 minutes) [TASKS=20_000]
	browser=$$($(BIN)/python tests/browser/ensure_chromium.py) && \
	ROAST_CHROMIUM="$$browser" $(BIN)/python benchmarks/performance_report.py $(if $(TASKS),--tasks $(TASKS))

benchmark-busy-time: $(VENV)/installed-test  ## compare busy_time with clocks inside tasks, in 19 programs (10 minutes) [PROGRAMS="fifo http"]
	$(BIN)/python benchmarks/busy_time.py $(PROGRAMS)

benchmark-why: $(VENV)/installed-test  ## compare the terms of `why` with planted changes of real runs (5 minutes)
	$(BIN)/python benchmarks/why.py

benchmark-gate: $(VENV)/installed-test  ## measure false alarms and misses of the regression gate on real runs (10 minutes)
	$(BIN)/python benchmarks/gate.py

benchmark-store: $(VENV)/installed-benchmark  ## compare a store with single traces: additions on workers, and queries (10 minutes)
	$(BIN)/python benchmarks/store_speed.py $(or $(FOLDER),.benchmark/store)

benchmark-serve: $(VENV)/installed-test  ## measure roast-analyze serve with many runs, one of them live (10 minutes) [RUNS=200]
	browser=$$($(BIN)/python tests/browser/ensure_chromium.py) && \
	ROAST_CHROMIUM="$$browser" $(BIN)/python benchmarks/serve_speed.py $(if $(RUNS),--runs $(RUNS))

benchmark-remote: $(VENV)/installed-benchmark  ## compare traces at URLs with local ones (5 minutes) [TASKS=100000]
	$(BIN)/python benchmarks/remote_speed.py $(if $(TASKS),--tasks $(TASKS))

campaign: $(VENV)/installed-test  ## kill processes, fill disks and slow down writes at random (30 minutes)
	$(BIN)/python benchmarks/campaign.py

campaign-damage: $(VENV)/installed-test  ## cut a trace at every byte, and corrupt it 10,000 times (1 hour)
	$(BIN)/python benchmarks/damage_campaign.py

campaign-hostile: $(VENV)/installed-test  ## run all commands on 5,000 traces that cannot be true (several hours) [TRACES=5000 SEED=0]
	$(BIN)/python benchmarks/hostile_campaign.py $(if $(TRACES),--traces $(TRACES)) $(if $(SEED),--seed $(SEED))

campaign-store: $(VENV)/installed-benchmark  ## kill workers and clients while they add 1,000 traces to a store (40 minutes)
	$(BIN)/python benchmarks/store_campaign.py $(or $(FOLDER),.benchmark/store)

campaign-instrumented: $(VENV)/installed-test  ## compare statements about forty programs with independent measurements (15 minutes) [LOAD=2 PROGRAMS="lock restart"]
	$(BIN)/python benchmarks/instrumented_programs.py $(PROGRAMS) --load $(or $(LOAD),0)

illnesses: $(VENV)/installed-test  ## compare the findings of slow and healthy runs with their known problems (45 minutes) [ILLNESS_DIR=roast-illnesses SET=corpus (5 hours)]
	$(BIN)/python benchmarks/illnesses/record.py $(ILLNESS_DIR) $(if $(filter corpus,$(SET)),--corpus)
	$(BIN)/python benchmarks/illnesses/examine.py $(ILLNESS_DIR)

reports: $(VENV)/installed-test  ## compare the findings of runs that people reported in trackers with the right answers (20 minutes) [REPORT_DIR=roast-reports]
	$(BIN)/python benchmarks/reports/record.py $(REPORT_DIR)
	$(BIN)/python benchmarks/reports/examine.py $(REPORT_DIR)

dask-suite: $(VENV)/installed-benchmark  ## run distributed's own tests with and without the recorder (2 hours) [SOURCE=tree of distributed]
	$(BIN)/python benchmarks/dask_suite.py $(SOURCE)

wheel-matrix: $(VENV)/installed-test  ## build wheel and sdist, and test them on every installed Python (15 minutes) [PYTHONS="python3.11 …"]
	$(BIN)/python benchmarks/wheel_matrix.py $(PYTHONS)

clean:  ## remove the environments and the files of the demo
	rm -rf $(VENV) $(VENV)-floor $(VENV)-newest $(VENV)-versions $(DEMO_DIR) $(ILLNESS_DIR) $(REPORT_DIR) .mypy_cache .ruff_cache .pytest_cache docs/_build

$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/installed-%: pyproject.toml $(VENV)/created
	@echo "Installing roast-trace[$*] into $(VENV) (a minute or two) ..."
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	@touch $@

# The oldest Python and the oldest distributed together; newer ones are in $(VENV).
$(VENV)-floor/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)-floor
	@echo "Installing roast-trace with distributed 2024.3.0 into $(VENV)-floor ..."
	$(VENV)-floor/bin/python -m pip install --quiet --editable '.[floor]'
	@touch $@
