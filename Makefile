# Tidefill. `make help` lists the targets.

GO     ?= go
BIN    := bin/tidefill
# The race detector finds nothing in SQLite, which is translated C, and makes it three times as slow.
RACE   ?= -race -gcflags=modernc.org/...=-race=false
FUZZ   ?= 20s

# Recordings of a real engine and of real users, which some tests use. They are not part of the
# repository.
TRACES   = $(abspath $(or $(TIDEFILL_TRACES),../shared/traces))
RECORDED = $(addprefix $(TRACES)/,engine/vllm_steps_llama2-70b_h100_tp4.csv.gz azure_conv_2023.csv.gz mooncake_conversation.jsonl.gz)
MISSING  = $(filter-out $(wildcard $(RECORDED)),$(RECORDED))

.PHONY: help
help: ## List the targets and their variables.
	@awk 'BEGIN { FS = ":.*## " } /^[a-z0-9-]+:.*## / { printf "  %-9s %s\n", $$1, $$2 } \
	  /^## / { printf "             %s\n", substr($$0, 4) }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Run the daemon with two emulated runners and a sample batch.
	$(GO) run ./cmd/tidefill demo

.PHONY: build
build: ## Build the one binary into bin/.
	CGO_ENABLED=0 $(GO) build -o $(BIN) ./cmd/tidefill

.PHONY: test
test: setup check unit deploy kube e2e ## Install what is missing, then check and run the tests. CI runs this.
	@echo "all tests passed$(if $(MISSING),; some were skipped because recordings are missing); make test-all has KEDA's own clients and a day of scaling too"

.PHONY: test-all
test-all: KUBE =
test-all: test keda ## Run all tests: also KEDA's own clients and a day of scaling in real time, which take long.

.PHONY: setup
setup: ## Install the Debian and npm packages that the tests need.
	./tools/setup

.PHONY: check
check: columns words links ## Check format, line length, words, links, vet and lint.
	@unformatted="$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go'))"; \
	  if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -C e2e ./...
	$(GO) vet -C test/deploy ./...
	$(GO) vet -C test/kube ./...
	$(GO) vet -C test/s3 ./...
	$(GO) vet -C tools ./style ./clusterscale
	$(GO) build -C tools -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	./bin/staticcheck ./...

.PHONY: columns
columns: bin/style ## Check that lines of Go files have at most 100 columns.
	./bin/style columns

.PHONY: words
words: bin/style ## Check that no file uses a word that the glossary replaces.
	./bin/style words

.PHONY: links
links: bin/style ## Check that links between pages resolve.
	./bin/style links

.PHONY: bin/style
bin/style:
	@$(GO) build -C tools -o ../bin/style ./style

# Packages that start no goroutine, as architecture_test.go checks. The race detector finds nothing
# in them, and makes simulations ten times as slow.
PURE = ./costmodel ./scheduler/... ./flowcontrol/... ./dispatch/plan ./autoscale ./autoscale/observed \
  ./simulator ./simulator/engine ./simulator/workload ./simulator/scenario ./simulator/random ./simulator/replay \
  ./simulator/oracle/... ./simulator/report ./simulator/search ./simulator/fit/...

.PHONY: unit
unit: ## Run unit, property and conformance tests, those of packages with goroutines under the race detector.
## RACE= turns the race detector off
	TIDEFILL_TRACES="$(TRACES)" $(GO) test -vet=off -timeout 20m $(PURE)
	TIDEFILL_TRACES="$(TRACES)" $(GO) test $(RACE) -vet=off -timeout 20m \
	  $$($(GO) list ./... | grep -vxF "$$($(GO) list $(PURE))")
	$(GO) test -C tools -vet=off ./...
	$(if $(MISSING),@echo "skipped tests on recordings: TIDEFILL_TRACES=$(TRACES) lacks $(notdir $(MISSING))")

.PHONY: e2e
e2e: ## Run the real binary with the official SDKs, with kill -9 and faults.
	cd e2e && $(GO) test -vet=off -count=1 -timeout 50m ./...

.PHONY: deploy
deploy: ## Test the chart, the manifests, the image and the systemd unit.
	$(GO) test -C test/deploy -vet=off -count=1 -timeout 10m ./...

.PHONY: keda
keda: ## Run KEDA's own clients against the scaler. The first build takes 10 minutes.
	$(GO) vet -C test/keda ./...
	$(GO) test -C test/keda -vet=off -count=1 -timeout 10m ./...

# Five hours of a day in as many minutes.
KUBE = -skip '^TestLoopOfADay$$'

.PHONY: kube
kube: ## Test autoscale/kube and the closed loop with a real API server. The first build takes minutes.
	$(GO) test -C test/kube -vet=off -count=1 -timeout 30m $(KUBE) ./...

KILLS  ?= 1000
ROUNDS ?= 1
ONLY   ?=
SEED   ?=
EVENTS ?= 1000

.PHONY: chaos
chaos: ## Run the fault suite in full and print its table.
## KILLS=1000 kills; ROUNDS=1 repetitions; ONLY=Nodes runs TestChaosNodes... alone; SEED repeats a run
## EVENTS=1000 events in the chaos of a cluster
	cd e2e && $(GO) test -count=$(ROUNDS) -timeout 0 -run '^TestChaos$(ONLY)' -args -chaos -kills=$(KILLS) -events=$(EVENTS) -seed=$(SEED)

.PHONY: bench
bench: ## Measure speed and memory (docs/benchmarks.md).
	$(GO) run ./cmd/tidefill-bench

SIM      ?= full
POLICY   ?= headroom
SIMOUT   ?= bin/sim
SCENARIOS = $(sort $(wildcard simulator/scenarios/*.yaml))
LONG      = %/s3-diurnal.yaml %/s4-surprise.yaml %/s9-deadlines.yaml %/s10-two-pools.yaml %/s11-from-zero.yaml

.PHONY: sim
sim: build ## Simulate all scenarios with baselines, 5 seeds, and oracles: hours. Continues after a stop.
## SIM=quick simulates those of one hour with one seed: minutes. POLICY=headroom; SIMOUT=bin/sim is the report
ifeq ($(SIM),quick)
	./$(BIN) simulate $(filter-out $(LONG),$(SCENARIOS)) --policy $(POLICY) --out $(SIMOUT)
else
	./$(BIN) simulate $(SCENARIOS) --policy $(POLICY) --seeds 5 --baselines --oracles --oracle-seeds 1 --out $(SIMOUT)
endif

.PHONY: fuzz
fuzz: ## Run every fuzz target, FUZZ=20s each.
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZ) $$pkg || exit 1; \
	  done; \
	done

.PHONY: docs
docs: ## Generate the pages of the configuration and of the metrics again.
	$(GO) generate ./config ./app

.PHONY: manifests
manifests: ## Generate the chart's schema and deploy/kubernetes again.
	$(GO) test -C test/deploy -vet=off -count=1 -run 'Schema|Alerts' . -args -update
	$(GO) test -C test/deploy -vet=off -count=1 -run Manifests . -args -update

.PHONY: clean
clean: ## Remove what was built.
	rm -rf bin
