# The tasks of this repository. `make` alone lists them; `make check` is exactly what CI runs.

BINARY := $(or $(CARGO_TARGET_DIR),target)/release/proofload
FUZZ_SECONDS ?= 60
FUZZ_TARGETS := $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))
DEMO_TARGETS := express-json express-views
DEMO = $(BINARY) compare -c 8 --budget 90s
TUNE = @$(BINARY) tune --seed 1126 --format md
TRUTH := target/truth
PAGE := crates/report/src/page/page.html
# Each with a budget in which two virtual cores should get six blocks; four of capacities, whose blocks take over two minutes.
STUDIES := express-node-env=16m express-node-env-20mbit=5m auth-sync-async=8m auth-ping=6m json-data=12m
STUDIES += json-data-large-short=4m express-tuning=4m express-checklist=7m reverse-proxy=5m reverse-proxy-latency=5m
STUDIES += auth-capacity=13m reverse-proxy-capacity=13m

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup build dist web web-check demo studies studies-tune bench-engine bench-open-loop bench-memory bench-proxy bench-agent bench-fleet
.PHONY: knocks large bench-over-time truth-setup truth-simulated truth-real truth-by-hand truth-variance truth-validity truth-capacity truth-ramps truth-waits truth-ordinary truth-tune check-macos test test-cluster fuzz sanitize miri deny
.PHONY: check check-slow

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing: nginx, nghttpd, ip, Chromium, and the npm packages of services under test, pages and tests
	scripts/setup

build: ## the binary proofload, optimised
	cargo build --release --locked -p proofload

dist: ## what a release has, for this machine's processor: target/packages (about 12 minutes)
	npm ci --prefix web --no-audit --no-fund --loglevel=error
	scripts/dist build
	scripts/dist pack

web: ## the report page from its source in web/, copied to where the binary includes it
	scripts/setup web
	cd web && npm run --silent check && npm run --silent build
	cp web/dist/index.html $(PAGE)

web-check: ## whether the report page in the binary is what its source makes, byte for byte
	scripts/setup web
	cd web && npm run --silent check && npm run --silent build
	@cmp web/dist/index.html $(PAGE) || { echo "the report page is not what web/ makes: run make web" >&2; exit 1; }

demo: ## two answers about Express, measured here in three minutes at most: what NODE_ENV does to views, and gzip to JSON
	scripts/setup $(DEMO_TARGETS)
	@$(MAKE) --no-print-directory build
	$(DEMO) --name 'development=NODE_ENV=development node targets/express-views/server.js' \
		--name 'production=NODE_ENV=production node targets/express-views/server.js'
	$(DEMO) --name 'plain=COMPRESSION=off node targets/express-json/server.js' \
		--name 'gzip=COMPRESSION=default node targets/express-json/server.js' -H 'accept-encoding: gzip'

studies: setup build ## the shipped experiments with short budgets, at most 100 minutes in all (root for one of them)
	@failed=; for study in $(STUDIES); do \
		$(BINARY) run experiments/$${study%=*}.toml --budget $${study#*=} || failed="$$failed $${study%=*}"; \
	done; test -z "$$failed" || { echo "without a verdict:$$failed" >&2; exit 1; }

studies-tune: setup build ## what tune advises for four services of the studies, at most 27 minutes: Markdown on stdout
	$(TUNE) 'node targets/express-json/server.js' --budget 6m
	$(TUNE) 'node targets/express-views/server.js' --budget 8m
	$(TUNE) 'node targets/auth/server.js' --path '/auth?username=ada&password=lovelace' -c 4 --budget 7m
	$(TUNE) experiments/tune-proxy.toml --budget 6m

bench-engine: build ## CPU time per request of proofload, wrk, ab, h2load, oha and autocannon, plain, over TLS and HTTP/2, in about 35 minutes
	python3 bench/engine/compare.py --install --proofload $(BINARY)

bench-open-loop: build ## how well proofload, wrk2, h2load, oha and autocannon keep a rate, in about 12 minutes
	python3 bench/engine/open_loop.py --install --proofload $(BINARY)

bench-memory: build ## whether proofload and oha need more memory for more requests, in about 5 minutes
	python3 bench/engine/memory.py --install --proofload $(BINARY)

bench-over-time: build ## whether proofload, oha, k6 and wrk need more memory the longer they run, in 3 minutes
	python3 bench/engine/over_time.py --install --proofload $(BINARY)

bench-proxy: build ## CPU time per request of reverse proxies (undici, http-proxy-3, nginx), in about 10 minutes
	scripts/setup reverse-proxy
	cd bench/proxy && npm ci --no-audit --no-fund --loglevel=error
	python3 bench/proxy/compare.py --proofload $(BINARY)

bench-agent: build ## what the loaded agent costs a service while it captures nothing, in at most 10 minutes
	scripts/setup express-json
	$(BINARY) run bench/agent/agent-tax.toml

bench-fleet: ## what it costs to receive and merge the slices of 10 to 3,000 generators, in about 2 minutes
	cargo build --release --locked -p proofload-remote --example merge
	python3 bench/fleet/merge.py

# These studies resume where they stopped: their lines are kept in $(TRUTH).
truth-setup:
	scripts/setup planted
	@$(MAKE) --no-print-directory build
	mkdir -p $(TRUTH)

truth-real: truth-setup ## how often proofload finds effects of known size, and differences where there are none: 10 rounds of at most 40 minutes
	python3 bench/truth/real.py --build now=$(BINARY) --out $(TRUTH)/real.jsonl
	python3 bench/truth/tables.py $(TRUTH)/real.jsonl

truth-by-hand: truth-setup ## how often runs of wrk by hand are wrong about the same effects, in about 4 hours
	python3 bench/truth/by_hand.py --effect none spin-5 spin-10 --proofload $(BINARY) --out $(TRUTH)/by-hand.jsonl
	python3 bench/truth/by_hand.py --effect none spin-5 spin-10 --proofload $(BINARY) --out $(TRUTH)/by-hand.jsonl --pairs 7
	python3 bench/truth/tables.py $(wildcard $(TRUTH)/real.jsonl) $(TRUTH)/by-hand.jsonl

truth-variance: truth-setup ## where the variance between identical processes comes from, in about 25 minutes
	python3 bench/truth/variance.py --proofload $(BINARY) --out $(TRUTH)/variance.jsonl
	python3 bench/truth/variance_table.py $(TRUTH)/variance.jsonl

# As root it also plants faults that need a network of their own.
truth-validity: setup truth-setup ## which faults of a measurement the checks find, and how often they report one without a fault, in 74 runs
	python3 bench/truth/faults.py --proofload $(BINARY) --out $(TRUTH)/faults.jsonl
	python3 bench/truth/faults_table.py $(TRUTH)/faults.jsonl

truth-simulated: ## how often intervals and verdicts are right on simulated noisy machines, in a few minutes of CPU time
	cargo run --release --locked -p proofload-lab --example simulated_truth

truth-capacity: build ## how far capacities of services whose queue is known are off, 25 runs in about 80 minutes (needs Go)
	mkdir -p $(TRUTH)
	python3 bench/truth/capacity.py --proofload $(BINARY) --out $(TRUTH)/capacity.jsonl

truth-ramps: ## what k6's breakpoint test and steps by vegeta and oha find on the same queues, 60 runs in about an hour and a half (needs Go)
	mkdir -p $(TRUTH)
	python3 bench/truth/ramps.py --install --out $(TRUTH)/ramps.jsonl

truth-waits: truth-setup ## how far ratios of services that wait are off from uninterrupted runs of wrk, 40 of each in about 45 minutes (needs Go and wrk)
	python3 bench/truth/waits.py --proofload $(BINARY) --out $(TRUTH)/waits.jsonl

truth-ordinary: build ## how often a comparison of 40 s is right, wrong or useless on 60 ordinary pairs of services, against alternated wrk, in about 2 hours
	mkdir -p $(TRUTH)
	python3 bench/truth/ordinary.py --install --proofload $(BINARY) --out $(TRUTH)/ordinary.jsonl

truth-tune: truth-setup ## how often tune advises what is right on planted settings, 50 runs in about 10 hours
	python3 bench/truth/tune.py --proofload $(BINARY) --out $(TRUTH)/tune.jsonl

# Some take root, namespaces or a program that may be missing: the table says which were skipped.
knocks: ## bad servers, services, machines, networks and records, kills and calls that fail: what becomes of them, in about 15 minutes (root for all)
	cargo build --locked -p proofload
	python3 bench/knocks/run.py --proofload $(dir $(patsubst %/,%,$(dir $(BINARY))))debug/proofload

large: build ## 10,000 connections, bodies of 1 GiB, a record of 100,000 blocks, and a simulated run of an hour, in about 8 minutes
	python3 bench/knocks/run.py --proofload $(BINARY) --only large --jobs 1
	cargo run --release --locked -p proofload-lab --example long_run -- 1

test: setup ## all tests: the workspace, the agent, the services under test, the npm packages, and the report page
	scripts/test-workspace
	corpus/corpus.py
	cd agent && node --test
	cd targets && node --test
	cd npm && node --test
	scripts/test-page
	python3 -m unittest discover --start-directory bench/engine
	python3 -m unittest discover --start-directory bench/truth
	python3 -m unittest discover --start-directory bench/knocks
	python3 -m unittest discover --start-directory scripts

# Not part of check: it needs root, and its machines crash for minutes. The first run builds Kubernetes in about ten minutes, and keeps it in
# ~/.cache/proofload-cluster.
test-cluster: ## tests with hosts and a real Kubernetes that crash, are cut off and run full (root; about 12 minutes)
	scripts/setup cluster
	cargo test --workspace --locked --test cluster --no-run
	scripts/cluster/cluster.py run -- cargo test --workspace --locked --test cluster -- --ignored --test-threads 1

# cargo-fuzz needs compiler flags that only nightly allows by default. One alone: make fuzz-plan_reader.
fuzz: $(FUZZ_TARGETS:%=fuzz-%) ## fuzzes each reader for a minute (cargo install cargo-fuzz; FUZZ_SECONDS for longer)

fuzz-%:
	cargo xtask seeds fuzz/seeds
	mkdir -p fuzz/corpus/$*
	RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none $* fuzz/corpus/$* fuzz/seeds/$* -- -max_total_time=$(FUZZ_SECONDS) -max_len=32768 \
		-timeout=10 -rss_limit_mb=2048 $(patsubst %,-dict=%,$(wildcard fuzz/$*.dict))

# Everything that is shared with the kernel: io_uring's buffers and rings, and those of perf_event_open. A leak is told by the tests' own
# means: threads that a test leaves behind would all be leaks.
sanitize: ## the load engine and the sampler of stacks under AddressSanitizer, in about 15 minutes
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=detect_leaks=0 cargo test --locked \
		--target $(shell rustc -vV | sed -n 's/host: //p') -p proofload-load -p proofload-explain

# Miri has no io_uring and no inline assembly: what it can look at is the memory itself.
miri: ## the buffers that are shared with the kernel under Miri (rustup component add miri rust-src --toolchain nightly)
	RUSTFLAGS="--cfg rustix_use_libc" MIRIFLAGS=-Zmiri-disable-isolation \
		cargo +nightly miri test --locked -p proofload-load --lib buffers

# Part of check, which names what it had to skip.
deny: ## whether dependencies have licences, sources and versions as they should, and no advisories (cargo install cargo-deny --locked)
	scripts/deny

# Only Linux runs a measurement. What reads its results must not depend on that.
check-macos: ## whether the crates that only read compile for macOS (rustup target add aarch64-apple-darwin)
	rustup target add aarch64-apple-darwin
	cargo check --locked --target aarch64-apple-darwin -p proofload-report -p proofload-foreign

# Nothing else builds the fuzz targets. Tests that take minutes are named in the code: #[ignore = "slow: make check-slow"].
check-slow: ## end-to-end tests that take minutes (about 6), and tests with hosts and a real Kubernetes (root; about 12)
	scripts/setup
	RUSTFLAGS="--cfg fuzzing" cargo check --locked --manifest-path fuzz/Cargo.toml
	cargo test --locked -p proofload --test end_to_end -- --ignored
	scripts/test-adding
	@$(MAKE) --no-print-directory test-cluster

# Includes the slow tests if the cluster is built already; `ready` says if they are skipped.
check: ## what CI runs: format, lints, house rules, dependencies, all tests
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo xtask tidy
	git apply --check docs/adding/*.diff
	@$(MAKE) --no-print-directory deny
	@$(MAKE) --no-print-directory web-check
	@$(MAKE) --no-print-directory test
	@if scripts/cluster/cluster.py ready; then $(MAKE) --no-print-directory check-slow; fi
