# Everything starts here: `make demo` and `make test` need nothing installed by hand.
SHELL := /bin/bash
BUILD := .build
export CARGO_TARGET_DIR ?= $(CURDIR)/target
export PATH := $(CURDIR)/$(BUILD)/tools/bin:$(HOME)/.cargo/bin:$(PATH)
BRAID := $(CARGO_TARGET_DIR)/release/braid
# Profile of tests and lints, and the program as they build it.
CHECKS := checks
CHECKED := $(CARGO_TARGET_DIR)/$(CHECKS)/braid

.PHONY: help demo test lint build kernel guest soak soak-kernel setup bench bench-long \
  bench-recovery bench-weights bench-fairness bench-cost bench-lab bench-mpquic bench-swing bench-downloads \
  install clean picture

help:
	@echo 'make demo      install what is missing, build, run the main scenario, show table and report'
	@echo 'make test      the same set-up, then every check and test'
	@echo 'make kernel    build the kernel of the virtual clock, once (SOURCE=... for a tree of yours)'
	@echo 'make guest     build what runs in it'
	@echo 'make soak-kernel     10,000 random transfers under every scheduler in that kernel'
	@echo 'make soak            100 runs of 20 s on this kernel: does one collapse? 200 kills of daemons: is anything in the clear?'
	@echo '                     and of Multipath QUIC in simulated time 1,000 interruptions, and 360 outages'
	@echo 'make bench           the emulator, and recovery, against their bars'
	@echo 'make bench-recovery  200 outages of each access and sort'
	@echo 'make bench-weights   weights, ten times each'
	@echo 'make bench-fairness  MPTCP beside TCP: shares of a line, the shift to the better path'
	@echo 'make bench-cost      what weights cost in processor time'
	@echo 'make bench-lab       MPTCP over the scenarios'
	@echo 'make bench-mpquic    Multipath QUIC: rates, shares, outages, latency'
	@echo 'make bench-swing     links that swing: does an engine carry less than its better path alone?'
	@echo '                     (all of these write into docs/performance.md; what was cut off goes on)'
	@echo 'make install   install braid to PREFIX (/usr/local)'
	@echo 'make lint | build | setup | picture | clean'

setup:
	@scripts/setup.sh build

build: setup
	cargo build --release --locked -p braid $$(scripts/setup.sh features)

# The kernel of the virtual clock, cached under .build/kernel.
kernel:
	@scripts/setup.sh kernel
	@SOURCE='$(SOURCE)' kernel/build.sh

# SEED=... for other scenarios.
soak-kernel: kernel
	kernel/test/run.sh soak 10000

# The user space of the virtual clock's guests: the program as it is here, with its libraries.
GUEST := $(BUILD)/guest
guest: build
	scripts/guest.sh $(BRAID) $(GUEST)

demo: build
	$(BRAID) lab run static --out out/demo

# By the profile of the tests, which then need not build macros and build scripts again.
lint: setup
	@scripts/setup.sh lint
	cargo fmt --all --check
	cargo clippy --profile $(CHECKS) --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --profile $(CHECKS) --workspace --no-deps --locked --quiet
	cargo deny --log-level error check licenses bans sources
	@if cargo deny fetch db >/dev/null 2>&1; then cargo deny --log-level error check advisories; \
	else echo 'advisories: skipped, the RustSec database cannot be fetched from here'; fi
	typos
	@scripts/check-openings.sh

# The tests build the program themselves, in the form that they need it, and lint before it.
test: setup
	@scripts/setup.sh kernel
	@scripts/setup.sh test
	@BUILD=$(BUILD) PROFILE=$(CHECKS) BRAID=$(CHECKED) scripts/tests.sh
	BRAID=$(CHECKED) scripts/check-docs.sh

BENCH := cargo run --release --locked -p braid-bench --
bench: build
	$(BENCH) radio
	$(BENCH) recovery --braid $(BRAID) --runs $(RUNS)

bench-long: build
	$(BENCH) radio --long

# Each of these is made of runs that are kept in RUNS: one that was cut off goes
# on. ARGS=--again makes them anew.
ARGS :=
RUNS := out/bench
bench-recovery bench-weights bench-fairness bench-cost: bench-%: build
	$(BENCH) $* --braid $(BRAID) --runs $(RUNS) $(ARGS)
soak: build
	cargo test --locked --release -p braid-mpquic --lib -- --ignored
	cargo test --locked --release -p braid --test it -- --ignored --show-output
	$(BENCH) soak --braid $(BRAID) --runs $(RUNS) $(ARGS)

# On the real clock one path and `static`, all else on the virtual one.
bench-mpquic: build guest kernel
	$(BENCH) mpquic --braid $(BRAID) --runs $(RUNS) $(ARGS)

# 1,000 random pairs on the virtual clock, half a day on two cores: PAIRS=20 prints a part of them. With
# DRIVES over recordings of 5G and 4G together, too.
PAIRS := 1000
bench-swing: build guest kernel
	$(BENCH) swing --braid $(BRAID) --runs $(RUNS) --pairs $(PAIRS) \
	  $(if $(DRIVES),--drives $(DRIVES)) $(ARGS)

# Tables 4 and 5 of paper 003, on the virtual clock: two hours or more on two cores.
# DRIVES: recordings of 5G and 4G together, for a table of their own.
DRIVES :=
bench-downloads: build guest kernel
	scripts/downloads.sh $(BRAID) $(RUNS)/downloads
	$(if $(DRIVES),scripts/downloads-paired.sh $(BRAID) $(RUNS)/downloads/paired $(DRIVES))
	$(BENCH) downloads "In residential streets=$(RUNS)/downloads/residential/campaign" \
	  "On the road=$(RUNS)/downloads/road/campaign" \
	  $(foreach d,$(notdir $(DRIVES)),"Recorded drives=$(RUNS)/downloads/paired/$(d)/campaign")

# The scenarios, five times each, then their tables.
bench-lab: build
	$(BRAID) lab run static --repeat 5 --out $(RUNS)/static
	$(BRAID) lab run pairs --repeat 5 --out $(RUNS)/pairs
	$(BRAID) lab run interruption --repeat 5 --out $(RUNS)/interruption
	$(BRAID) lab run overrun --repeat 10 --out $(RUNS)/overrun
	$(BENCH) lab $(RUNS)/static $(RUNS)/pairs $(RUNS)/interruption $(RUNS)/overrun

picture: demo
	scripts/picture.sh out/demo docs/static.png

PREFIX ?= /usr/local
UNITS ?= $(PREFIX)/lib/systemd/system
# By sudo what the user has built, as it is: root may have no compiler.
install: $(if $(SUDO_USER),$(BRAID),build)
	install -Dm755 $(BRAID) $(DESTDIR)$(PREFIX)/bin/braid
	mkdir -p $(DESTDIR)$(UNITS) $(DESTDIR)/etc/braid
	for example in device proxy; do \
	  install -Dm644 packaging/$$example.toml $(DESTDIR)$(PREFIX)/share/doc/braid/$$example.toml || exit 1; done
	install -Dm644 packaging/sysusers.conf $(DESTDIR)$(PREFIX)/lib/sysusers.d/braid.conf
	for unit in braid braid-proxy; do \
	  sed 's|/usr/local/bin|$(PREFIX)/bin|' packaging/$$unit.service > $(DESTDIR)$(UNITS)/$$unit.service && \
	  chmod 644 $(DESTDIR)$(UNITS)/$$unit.service || exit 1; done
	if [ -x $(BUILD)/kernel/linux ] && [ -x $(GUEST)/braid ]; then \
	  install -Dm755 $(BUILD)/kernel/linux $(DESTDIR)$(PREFIX)/lib/braid/linux && \
	  rm -rf $(DESTDIR)$(PREFIX)/lib/braid/guest && \
	  cp -r $(GUEST) $(DESTDIR)$(PREFIX)/lib/braid/guest; fi

$(BRAID):
	$(MAKE) build

clean:
	cargo clean
	rm -rf $(BUILD) out
