# The commands of this repository. What they need is prepared by scripts/setup.sh in .venv, and nowhere else.

SHELL = /bin/sh
# Two plugins that each worker would take seconds to load; the notebooks' tests start nbval themselves.
PYTEST = .venv/bin/python -m pytest -p no:nbval -p no:anyio
# Where the environment forbids to keep compiled modules, each rank, kernel and worker would compile them again.
export PYTHONDONTWRITEBYTECODE =
PYTEST_ARGS ?=
PYTEST_WORKERS ?= 5
CHECK_WORKERS ?= 2
LAB_ARGS ?=
LESSONS ?=
SLIDES_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup setup-bench setup-deepspeed setup-frameworks lab reset test check quick notebooks slides bench soak lint clean distclean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

setup:  ## prepare .venv (PYTHON=... chooses the interpreter); does nothing the second time
	@sh scripts/setup.sh

setup-bench:
	@sh scripts/setup.sh bench

setup-deepspeed:  ## prepare .venv with DeepSpeed too, for its rows in lab 06 (the lab runs without it)
	@sh scripts/setup.sh deepspeed

setup-frameworks:  ## prepare .venv with DeepSpeed, Accelerate, transformers and Lightning: all that the tests can use
	@sh scripts/setup.sh deepspeed frameworks

# JupyterLab listens on loopback only, asks for its token, and prints the address with it: open that where no browser
# can be started here. It refuses to run as root unless told; in a container that is the usual user. Its settings keep
# it from asking the network for news.
lab: setup  ## open the lessons in JupyterLab (LAB_ARGS="--port 9999" and the like are passed on)
	@.venv/bin/python scripts/lessons.py prepare lessons
	@set -- --ServerApp.ip=127.0.0.1 "--LabApp.app_settings_dir=$(CURDIR)/scripts/jupyterlab"; \
	[ "$$(id -u)" != 0 ] || set -- "$$@" --allow-root; \
	[ "$$(uname)" = Darwin ] || [ -n "$$DISPLAY$$WAYLAND_DISPLAY$$BROWSER" ] || set -- "$$@" --no-browser; \
	PATH="$(CURDIR)/.venv/bin:$$PATH" exec .venv/bin/jupyter-lab "$$@" --LabApp.default_url=/lab/tree/Course.md $(LAB_ARGS) lessons

reset: setup  ## begin lessons again, as in LESSONS="03 05"; what you wrote is kept in lessons/yours
	@.venv/bin/python scripts/lessons.py reset lessons $(LESSONS)

# More workers than cores: much of the time a test waits for a kernel, a rank or a browser.
test: setup  ## run the tests (PYTEST_ARGS="-k digits -x" and the like are passed on)
	$(PYTEST) -n $(PYTEST_WORKERS) --dist loadscope $(PYTEST_ARGS)

# Types and tests at once: pyright uses one core.
check: setup  ## what to run while you work: style, types, and the tests that start no process
	@$(MAKE) --no-print-directory -j 2 lint quick

quick: setup
	$(PYTEST) -n $(CHECK_WORKERS) --dist loadscope -m "not ranks and not soak" tests/unit tests/meta $(PYTEST_ARGS)

notebooks: setup  ## execute the notebooks again and store their outputs
	.venv/bin/jupyter nbconvert --to notebook --execute --inplace notebooks/*.ipynb

slides: setup  ## build the decks: build/slides, with a PDF each (SLIDES_ARGS="02_mfu --fresh" and the like are passed on)
	.venv/bin/python slides/build_decks.py $(SLIDES_ARGS)

bench: setup-bench  ## measure the speed of labkit itself
	$(PYTEST) -m benchmark tests/benchmarks -s $(PYTEST_ARGS)

soak: setup  ## look for rare failures, for minutes
	$(PYTEST) -m soak -s $(PYTEST_ARGS)

lint: setup  ## check style and types
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/pyright

clean:  ## remove caches and build outputs
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .coverage htmlcov test-results
	find . -name .venv -prune -o \( -name __pycache__ -o -name .ipynb_checkpoints \) -type d -prune -exec rm -rf {} +

distclean: clean  ## remove .venv as well
	rm -rf .venv
