# The chores of this repository. `make` alone lists them; `make check` is exactly what CI runs.

BINARY := $(or $(CARGO_TARGET_DIR),target)/release/proofload
DEMO_TARGETS := express-json express-views

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup build demo bench-engine test check

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing: nginx, ip, and the packages of the services under test
	scripts/setup

build: ## the binary proofload, optimised
	cargo build --release --locked -p proofload

demo: ## what NODE_ENV does to two Express services, measured here in a few minutes
	scripts/setup $(DEMO_TARGETS)
	@$(MAKE) --no-print-directory build
	$(BINARY) run experiments/node-env.toml --budget 170s

bench-engine: build ## what a request costs us, wrk, ab, h2load, oha and autocannon, measured here in about 20 minutes
	python3 bench/engine/compare.py --install --proofload $(BINARY)

test: setup ## all tests: the workspace's and those of the services under test
	cargo test --workspace --locked
	cd targets && node --test
	python3 -m unittest discover --start-directory bench/engine

check: ## what CI runs: format, lints, house rules, all tests
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo xtask tidy
	@$(MAKE) --no-print-directory test
