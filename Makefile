# The chores of this repository. `make` alone lists them; `make check` is exactly what CI runs.

BINARY := $(or $(CARGO_TARGET_DIR),target)/release/proofload
FUZZ_SECONDS ?= 60
FUZZ_TARGETS := response_reader transcript_reader
DEMO_TARGETS := express-json express-views
TRUTH := target/truth
PAGE := crates/report/src/page/page.html
# Each with a budget in which two virtual cores should get the six blocks that a verdict takes; docs/experiments.md says which were tried.
STUDIES := express-node-env=16m express-node-env-20mbit=5m auth-sync-async=8m auth-ping=6m json-data=12m
STUDIES += json-data-large-short=4m express-tuning=4m express-checklist=7m reverse-proxy=5m reverse-proxy-latency=5m

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup build web web-check demo studies bench-engine bench-open-loop bench-memory bench-proxy bench-agent bench-fleet
.PHONY: truth-setup truth-simulated truth-aa truth-planted truth-by-hand truth-variance truth-validity test test-cluster fuzz check check-slow

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing: nginx, ip, Chromium, and the npm packages of services under test, pages and tests
	scripts/setup

build: ## the binary proofload, optimised
	cargo build --release --locked -p proofload

web: ## the report page from its source in web/, put where the binary takes it from
	scripts/setup web
	cd web && npm run --silent check && npm run --silent build
	cp web/dist/index.html $(PAGE)

web-check: ## whether the report page in the binary is what its source makes, byte for byte
	scripts/setup web
	cd web && npm run --silent check && npm run --silent build
	@cmp web/dist/index.html $(PAGE) || { echo "the report page is not what web/ makes: run make web" >&2; exit 1; }

demo: ## what NODE_ENV does to two Express services, measured here in a few minutes
	scripts/setup $(DEMO_TARGETS)
	@$(MAKE) --no-print-directory build
	$(BINARY) run experiments/node-env.toml --budget 170s

studies: setup build ## the studies behind the shipped experiments, in short, at most 75 minutes here (root for one of them)
	@failed=; for study in $(STUDIES); do \
		$(BINARY) run experiments/$${study%=*}.toml --budget $${study#*=} || failed="$$failed $${study%=*}"; \
	done; test -z "$$failed" || { echo "without a verdict:$$failed" >&2; exit 1; }

bench-engine: build ## what a request costs us, wrk, ab, h2load, oha and autocannon, measured here in about 20 minutes
	python3 bench/engine/compare.py --install --proofload $(BINARY)

bench-open-loop: build ## how well we and wrk2, h2load, oha and autocannon keep a rate, measured here in about 12 minutes
	python3 bench/engine/open_loop.py --install --proofload $(BINARY)

bench-memory: build ## whether we and oha need more memory for more requests, measured here in about 5 minutes
	python3 bench/engine/memory.py --install --proofload $(BINARY)

bench-proxy: build ## what a reverse proxy costs per request: undici, http-proxy-3, nginx, measured here in about 10 minutes
	scripts/setup reverse-proxy
	cd bench/proxy && npm ci --no-audit --no-fund --loglevel=error
	python3 bench/proxy/compare.py --proofload $(BINARY)

bench-agent: build ## what the agent costs a service that it is loaded into and in which it captures nothing, in at most 10 minutes
	scripts/setup express-json
	$(BINARY) run bench/agent/agent-tax.toml

bench-fleet: ## what it costs to hear 10 to 3,000 generators and to merge their slices, measured here in about 2 minutes
	cargo build --release --locked -p proofload-remote --example merge
	python3 bench/fleet/merge.py

# The studies go on where they were left: their lines are kept in $(TRUTH).
truth-setup:
	scripts/setup planted
	@$(MAKE) --no-print-directory build
	mkdir -p $(TRUTH)

truth-aa: truth-setup ## how often the lab sees a difference where there is none, measured here in about 25 minutes
	python3 bench/truth/real_aa.py --proofload $(BINARY) --out $(TRUTH)/real-aa.jsonl
	python3 bench/truth/tables.py $(TRUTH)/real-aa.jsonl

truth-planted: truth-setup ## how often the lab finds effects of known size, measured here in about 3 hours
	python3 bench/truth/planted.py --proofload $(BINARY) --out $(TRUTH)/planted.jsonl
	python3 bench/truth/tables.py $(TRUTH)/planted.jsonl

truth-by-hand: truth-setup ## how often runs of wrk by hand are wrong about the same, measured here in about 90 minutes
	python3 bench/truth/planted.py --calibrate-only --proofload $(BINARY) --out $(TRUTH)/planted.jsonl
	python3 bench/truth/by_hand.py --effect none spin-2 spin-5 spin-10 spin-20 \
		--calibration $(TRUTH)/planted.jsonl --out $(TRUTH)/by-hand.jsonl
	python3 bench/truth/tables.py $(wildcard $(TRUTH)/real-aa.jsonl) $(TRUTH)/planted.jsonl $(TRUTH)/by-hand.jsonl

truth-variance: truth-setup ## where identical processes get their variance from, measured here in about 25 minutes
	python3 bench/truth/variance.py --proofload $(BINARY) --out $(TRUTH)/variance.jsonl
	python3 bench/truth/variance_table.py $(TRUTH)/variance.jsonl

# As root it also plants what takes a network of its own.
truth-validity: setup truth-setup ## which faults of a measurement the checks find, and how often they speak without one, in 74 runs
	python3 bench/truth/faults.py --proofload $(BINARY) --out $(TRUTH)/faults.jsonl
	python3 bench/truth/faults_table.py $(TRUTH)/faults.jsonl

truth-simulated: ## how often intervals and verdicts are true on simulated noisy machines, in a few minutes of CPU time
	cargo run --release --locked -p proofload-lab --example simulated_truth

test: setup ## all tests: the workspace's, the agent's, those of the services under test, and those of pages
	cargo test --workspace --locked
	cd agent && node --test
	cd targets && node --test
	scripts/test-page
	python3 -m unittest discover --start-directory bench/engine
	python3 -m unittest discover --start-directory bench/truth
	python3 -m unittest discover --start-directory scripts

# Not part of check: it takes root, and machines crash in it for minutes. The first time it builds Kubernetes, which takes some ten minutes;
# what it built is kept in ~/.cache/proofload-cluster.
test-cluster: ## Proofload and other machines that crash, are cut off and run full: hosts and a real Kubernetes (root; about 12 minutes)
	scripts/setup cluster
	cargo test --workspace --locked --test cluster --no-run
	scripts/cluster/cluster.py run -- cargo test --workspace --locked --test cluster -- --ignored --test-threads 1

# cargo-fuzz wants flags of the compiler that only nightly has by default.
fuzz: ## both readers against a minute each of made-up bytes (cargo install cargo-fuzz; FUZZ_SECONDS for longer)
	cargo xtask seeds fuzz/seeds
	mkdir -p $(FUZZ_TARGETS:%=fuzz/corpus/%)
	@for target in $(FUZZ_TARGETS); do \
		RUSTC_BOOTSTRAP=1 cargo fuzz run $$target fuzz/corpus/$$target fuzz/seeds/$$target -- \
			-max_total_time=$(FUZZ_SECONDS) -max_len=4096 -dict=fuzz/$$target.dict || exit 1; \
	done

# Tests that take minutes are named in the code: #[ignore = "slow: make check-slow"].
check-slow: ## end-to-end tests that take minutes (about 6), and those with hosts and a real Kubernetes (root; about 12)
	scripts/setup
	cargo test --locked -p proofload --test end_to_end -- --ignored
	scripts/test-adding
	@$(MAKE) --no-print-directory test-cluster

# The slow tests are part of it where the cluster is built already; where they are skipped, that is said.
check: ## what CI runs: format, lints, house rules, all tests
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo xtask tidy
	@$(MAKE) --no-print-directory web-check
	@$(MAKE) --no-print-directory test
	@if scripts/cluster/cluster.py ready; then $(MAKE) --no-print-directory check-slow; fi
