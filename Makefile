# Tidefill. `make help` lists what there is.

GO     ?= go
BIN    := bin/tidefill
RACE   ?= -race
FUZZ   ?= 20s

# Recordings of a real engine and of real users, which some tests ask for. They are not a part of the project.
TRACES   = $(abspath $(or $(TIDEFILL_TRACES),../shared/traces))
RECORDED = $(addprefix $(TRACES)/,engine/vllm_steps_llama2-70b_h100_tp4.csv.gz azure_conv_2023.csv.gz mooncake_conversation.jsonl.gz)
MISSING  = $(filter-out $(wildcard $(RECORDED)),$(RECORDED))

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN { FS = ":.*## " } /^[a-z0-9-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Run the daemon with two emulated runners and a sample batch.
	$(GO) run ./cmd/tidefill demo

.PHONY: build
build: ## Build the one binary into bin/.
	CGO_ENABLED=0 $(GO) build -o $(BIN) ./cmd/tidefill

.PHONY: test
test: setup check unit e2e ## Install what is missing and pass all tests: format, vet, lint, unit, end to end.
	@echo "all tests passed$(if $(MISSING),; not all recordings were there)"

.PHONY: setup
setup: ## Install what the tests need and the machine lacks (Debian packages, npm packages).
	./tools/setup

.PHONY: check
check: ## Format, vet, lint, generated pages.
	@unformatted="$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go'))"; \
	  if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	cd e2e && $(GO) vet ./...
	$(GO) build -C tools -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	./bin/staticcheck ./...

.PHONY: unit
unit: ## Unit, property and conformance tests under the race detector.
	TIDEFILL_TRACES="$(TRACES)" $(GO) test $(RACE) -timeout 20m ./...
	$(if $(MISSING),@echo "not tested on recordings of a real engine or real users: TIDEFILL_TRACES=$(TRACES) lacks $(notdir $(MISSING))")

.PHONY: e2e
e2e: ## The real binary under the official SDKs, kill -9 and bad days.
	cd e2e && $(GO) test -count=1 -timeout 30m ./...

# ONLY=Nodes runs the scenarios TestChaosNodes... alone; SEED repeats a run that failed.
KILLS  ?= 1000
ROUNDS ?= 1
ONLY   ?=
SEED   ?=

.PHONY: chaos
chaos: ## The fault suite in full, without a time limit, and its table "reliability". KILLS=1000, ROUNDS=1 times all, ONLY, SEED.
	cd e2e && $(GO) test -count=$(ROUNDS) -timeout 0 -run '^TestChaos$(ONLY)' -args -chaos -kills=$(KILLS) -seed=$(SEED)

.PHONY: bench
bench: ## Print the table of docs/benchmarks.md.
	$(GO) run ./cmd/tidefill-bench

# SIM=quick runs one seed of the scenarios that last an hour, without baselines and oracles: minutes instead of hours.
SIM      ?= full
POLICY   ?= probe
SIMOUT   ?= bin/sim
SCENARIOS = $(sort $(wildcard simulator/scenarios/*.yaml))
DAYS      = %/s3-diurnal.yaml %/s4-surprise.yaml %/s9-deadlines.yaml %/s10-two-pools.yaml %/s11-from-zero.yaml

.PHONY: sim
sim: build ## All scenarios, policies and oracles, 5 seeds (SIM=quick: those of an hour, 1 seed). POLICY=probe, report in SIMOUT=bin/sim.
ifeq ($(SIM),quick)
	./$(BIN) simulate $(filter-out $(DAYS),$(SCENARIOS)) --policy $(POLICY) --out $(SIMOUT)
else
	./$(BIN) simulate $(SCENARIOS) --policy $(POLICY) --seeds 5 --baselines --oracles --out $(SIMOUT)
endif

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZ (20s) each.
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZ) $$pkg || exit 1; \
	  done; \
	done

.PHONY: docs
docs: ## Make the generated pages anew.
	$(GO) generate ./config

.PHONY: clean
clean: ## Remove what was built.
	rm -rf bin
