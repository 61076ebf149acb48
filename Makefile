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

.PHONY: help demo test quick check lint bench golden install update images sbom audit clean

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

quick: export PYTHONDONTWRITEBYTECODE :=
quick: $(VENV)/.test ## the tests that need no Envoy, Triton, PostgreSQL, Helm or cluster
	$(BIN)/python -m pytest --quick -n 2 --dist loadfile

check: lint ## formatting, lint, types, then every test
	$(MAKE) test

lint: $(VENV)/.test ## formatting, lint and types
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/mypy --strict $(PACKAGES:%=-p amphitrite.%) -p bench
	$(BIN)/mypy --strict examples/single-model/score.py examples/triton-clients/at_endpoint.py deploy/lock.py
	$(BIN)/mypy --strict --explicit-package-bases tests/load tests/certificate.py deploy/sbom.py

bench: $(VENV)/.test ## measure; prints tables and writes bench/results/*.json
	$(BIN)/python -m bench

golden: $(VENV)/.test ## rewrite golden files and docs/reference from what the code does now; then read the diff
	$(BIN)/python docs/generate.py
	$(BIN)/python -m pytest -q --update-golden

install: $(VENV)/.serve ## only install: the command ml, the server, Triton and Envoy, into .venv
	@echo "Amphitrite is installed in $(VENV). Next: . $(BIN)/activate && ml server start -d"

update: $(VENV)/.test ## write the newest versions into deploy/lock.txt and print what changed
	@$(BIN)/python deploy/lock.py update $(UPDATE)

images: ## build the images that a cluster runs, with docker or buildah; see deploy/images/README.md
	@deploy/images/build.sh

sbom: $(BIN)/python ## bills of materials (CycloneDX) of the installation and of each image, into build/sbom
	@$(BIN)/python deploy/sbom.py build/sbom

audit: $(VENV)-audit/.ready ## known vulnerabilities of the lock's packages, and of IMAGES="..."; needs the network
	@deploy/audit.sh $(VENV)-audit/bin/python $(IMAGES)

clean: ## remove .venv, caches and build outputs
	rm -rf $(VENV) $(VENV)-audit .venv-sdk build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find $(CHECKED) -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is younger than these exactly when the environment has what they ask for. The set `test`
# contains the set `install`.
LOCK := pyproject.toml deploy/lock.txt
$(VENV)/.serve: $(LOCK) | $(BIN)/python
	@if [ -e $(VENV)/.test ]; then set=test; else set=install; fi; $(INSTALL)
	@touch $@

$(VENV)/.test: $(LOCK) | $(BIN)/python
	@$(call provide,$(COMPILER),g++,a C++ compiler,The tests hold the native onnxruntime backend against the one in Python)
	@set=test; $(INSTALL)
	@touch $(VENV)/.serve $@

# pip-audit has an environment of its own: its packages need not fit ours.
$(VENV)-audit/.ready: deploy/lock.txt | $(BIN)/python
	@$(BIN)/python -m venv --clear $(VENV)-audit
	@$(BIN)/python deploy/lock.py select audit >$(VENV)-audit/requirements.txt
	@$(VENV)-audit/bin/python -m pip --disable-pip-version-check install -q --no-deps --require-hashes -r $(VENV)-audit/requirements.txt
	@touch $@

# The versions of deploy/lock.txt: no resolver runs, and a file with another hash is refused. One
# thing is not locked: the tools that compile NumPy on Python 3.13, which has no wheel of it.
define INSTALL
$(call provide,$(BIN)/python -IB -c "$(FIND_LIBRARY)",$(LIBRARY),$(LIBRARY).so,Triton's Python backend is linked with it); \
$(TELL_TIME); \
locked=$(VENV)/requirements.txt; $(BIN)/python deploy/lock.py select $$set >$$locked; \
echo "Installing the set $$set of deploy/lock.txt into $(VENV). The largest are Triton, Envoy and ONNX Runtime."; \
if command -v uv >/dev/null; then \
  echo "uv pip install --require-hashes --no-deps -r $$locked"; \
  uv pip install --python $(BIN)/python --require-hashes --no-deps -r $$locked 2>&1 | sed -u '/^ [-+~] /d'; \
  uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --offline -e .; \
else \
  export TMPDIR=$$PWD/$(VENV)/tmp; rm -rf "$$TMPDIR"; mkdir "$$TMPDIR"; \
  pip="$(BIN)/python -m pip --disable-pip-version-check install --no-deps"; \
  echo "$$pip --require-hashes -r $$locked"; \
  $$pip --progress-bar off --require-hashes -r $$locked | sed -un $(TOLD); \
  $$pip --quiet --no-build-isolation --no-index -e .; \
  rm -rf "$$TMPDIR"; unset TMPDIR; \
fi; \
$(BIN)/python -c '$(COMPILE)'; \
echo "Installed into $(VENV) after $$SECONDS s."
endef

# Downloads and unpacking say nothing for minutes where the network or the disk is slow. A line every
# 10 s tells that it goes on: `read` waits for what never comes, so that no process stays behind.
# pip downloads into .venv/tmp, so that the size grows then too.
TELL_EVERY := 10
define TELL_TIME
exec {never}<> <(:); \
{ while ! read -t $(TELL_EVERY) -u $$never; do echo "  $$SECONDS s: $$(du -sm $(VENV) | cut -f 1) MB in $(VENV)"; done; } & \
trap "kill $$! 2>/dev/null" EXIT
endef

# Of what pip says: files of 10 MB and more, what it compiles, and that it unpacks.
TOLD := -e '/([0-9]\{2,\}\.[0-9]* MB)/p' -e '/^ *Building wheel/p' -e 's/^Installing collected.*/Unpacking all packages/p'

# It takes seconds with a C++ compiler. Without one it says so, and the Python backend serves.
COMPILE := import logging, os; from amphitrite.dataplane.triton import native_backend as native; \
  logging.basicConfig(level="INFO", format="%(message)s"); native.find({**os.environ, native.VARIABLE: "auto"})

COMPILER := command -v c++ || command -v g++ || command -v clang++
# Debian packs the shared library of Python apart from the interpreter, so a machine may lack it. It
# is looked for before anything is downloaded.
FIND_LIBRARY := import os, sys; sys.path.insert(0, 'src'); \
  from amphitrite.dataplane.triton.installation import require_python_library as require; require(os.environ)
LIBRARY = libpython$$($(BIN)/python -c "import sys; print('%d.%d' % sys.version_info[:2])")

# $(call provide,COMMAND,PACKAGE,WHAT,WHY): where COMMAND fails, installs Debian's PACKAGE or says how.
define provide
if ! { $(1); } >/dev/null 2>&1; then \
  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
    echo "$(3) is missing. $(4): apt-get install $(2)"; \
    apt-get update -qq && apt-get install -y -qq --no-install-recommends $(2) >/dev/null; \
  else \
    echo "error: $(3) is missing. $(4)." >&2; \
    echo "hint: sudo apt-get install $(2)" >&2; exit 1; \
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
