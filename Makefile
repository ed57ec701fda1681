# Tidefill. `make help` lists the targets.

GO     ?= go
BIN    := bin/tidefill
LAB    := bin/tidefill-lab
FUZZ   ?= 20s
CASES  ?= 1000

# One variant of everything: static, as it is shipped. Only the race detector needs another.
export CGO_ENABLED = 0
export GOFLAGS     = -trimpath
# The race detector finds nothing in SQLite, which is translated C, and makes it three times as slow.
RACE   ?= -race -gcflags=modernc.org/...=-race=false

# SHORT= runs also the tests that take long, or judge times; `make test-all` does.
SHORT  ?= -short
# The time that `make test` may take. The goal is 15 minutes where all is compiled, and 25 elsewhere.
BUDGET ?= 25m

# Recordings of a real engine and of real users, which some tests use. They are not part of the
# repository.
RECORDED = $(addprefix $(TIDEFILL_TRACES)/,engine/vllm_steps_llama2-70b_h100_tp4.csv.gz azure_conv_2023.csv.gz mooncake_conversation.jsonl.gz)
MISSING  = $(filter-out $(wildcard $(RECORDED)),$(RECORDED))

# The modules beside the main one run programs that they build. go test reuses a result of theirs as
# long as no file has changed, but for pages whose commands no test runs.
export TIDEFILL_SOURCES := $(shell { git ls-files -coz --exclude-standard -- . ':!*.md'; printf 'README.md\0docs/faq.md\0'; } | xargs -0 sha256sum 2>/dev/null | sha256sum | cut -c1-16)
# `make test` fails where a server is missing that a test needs. `go test` skips the test.
export TIDEFILL_SERVERS = required

# Property tests draw the same cases in each run, so that a change is judged by itself. `make search`
# draws others.
export RAPID_SEED = 1

STAGE = ./bin/tally stage

.PHONY: help
help: ## List the targets and their variables.
	@awk 'BEGIN { FS = ":.*## " } /^[a-z0-9-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 } \
	  /^## / { printf "             %s\n", substr($$0, 4) }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Run the daemon with two emulated runners and a sample batch.
	$(GO) run ./cmd/tidefill demo

.PHONY: build
build: ## Build the one binary into bin/.
	$(GO) build -o $(BIN) ./cmd/tidefill

.PHONY: test
test: begin setup check unit keda deploy kube e2e ## Install what is missing, then check and run the tests. CI runs this.
	@./bin/tally report -budget $(BUDGET)
	@echo "all tests passed$(if $(MISSING), without recordings of real traffic (TIDEFILL_TRACES)); make test-all runs what was skipped"

.PHONY: test-all
test-all: SHORT =
test-all: begin setup check lint unit keda deploy kube e2e ## Run all tests, for which there is no budget, and all checks.
	@./bin/tally report
	@echo "all tests passed$(if $(MISSING), without recordings of real traffic (TIDEFILL_TRACES))"

.PHONY: begin
begin:
	@$(GO) build -C tools -o ../bin/tally ./tally
	@./bin/tally start

.PHONY: bin/tally
bin/tally:
	@$(GO) build -C tools -o ../bin/tally ./tally

.PHONY: setup
setup: bin/tally ## Install the Debian and npm packages that the tests need.
	@$(STAGE) setup ./tools/setup

.PHONY: check
check: bin/tally bin/style ## Check format, line length, links and vet.
	@unformatted="$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go'))"; \
	  if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	@$(STAGE) check ./bin/style columns
	@$(STAGE) check ./bin/style links
	@$(STAGE) check $(GO) vet ./...
	@$(STAGE) check $(GO) vet -C e2e ./...
	@$(STAGE) check $(GO) vet -C examples/go ./...
	@$(STAGE) check $(GO) vet -C simulator/lab ./...

# The modules that `make lint` checks.
LINTED = . tools e2e examples/go simulator/lab test/deploy test/keda test/kube test/s3

.PHONY: lint
lint: bin/tally test/keda/scalers ## Check all modules with golangci-lint, as .golangci.yaml says. The first run takes a quarter of an hour.
	$(STAGE) lint $(GO) build -C tools/lint -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@failed=; for module in $(LINTED); do echo "lint $$module"; \
	  $(STAGE) lint sh -c "cd $$module && $(CURDIR)/bin/golangci-lint run ./..." || failed="$$failed $$module"; \
	done; [ -z "$$failed" ] || { echo "findings in$$failed"; exit 1; }

.PHONY: vulnerabilities
vulnerabilities: ## Check for known vulnerabilities in what is called of the dependencies. It asks vuln.go.dev.
	$(GO) build -C tools -o ../bin/govulncheck golang.org/x/vuln/cmd/govulncheck
	./bin/govulncheck ./...

.PHONY: columns
columns: bin/style ## Check that lines of Go files have at most 100 columns.
	./bin/style columns

.PHONY: links
links: bin/style ## Check that links between pages resolve.
	./bin/style links

.PHONY: bin/style
bin/style:
	@$(GO) build -C tools -o ../bin/style ./style

# Packages whose tests compute in one goroutine: those that start none, as architecture_test.go
# checks, and some that only compute much. The race detector finds nothing in them, and makes them
# ten to thirty times as slow.
PURE = ./registry ./costmodel ./scheduler/... ./flowcontrol/... ./dispatch/plan ./autoscale \
  ./simulator/... ./config/... ./deploy ./internal/batchfile ./store/segments/protocol

.PHONY: unit
unit: bin/tally ## Run unit, property and conformance tests, those of packages with goroutines under the race detector.
## RACE= turns the race detector off, SHORT= runs long tests too
	@$(STAGE) unit $(GO) test $(SHORT) -vet=off -timeout 20m $(PURE)
	@CGO_ENABLED=$(if $(RACE),1,0) $(STAGE) unit $(GO) test $(RACE) $(SHORT) -vet=off -timeout 20m -p 4 \
	  $$($(GO) list ./... | grep -vxF "$$($(GO) list $(PURE))")
	@$(STAGE) unit $(GO) test -C tools -vet=off ./style ./tally ./release
	@$(STAGE) lab $(GO) test -C simulator/lab $(SHORT) -vet=off -timeout 20m ./...

.PHONY: first-hour
first-hour: bin/tally ## Play the first hour of a newcomer, users, an operator and a tuner in a fresh clone of the last commit.
	@$(STAGE) first-hour ./tools/first-hour

.PHONY: e2e
e2e: bin/tally ## Run the real binary with the official SDKs, with kill -9 and faults.
	@$(STAGE) e2e $(GO) test -C e2e $(SHORT) -vet=off -parallel 4 -timeout 50m ./...

.PHONY: deploy
deploy: bin/tally ## Test the chart, the manifests, the image and the systemd unit.
	@$(STAGE) deploy $(GO) test -C test/deploy $(SHORT) -vet=off -timeout 20m ./...

.PHONY: keda
keda: bin/tally test/keda/scalers ## Run KEDA's own clients against the scaler.
	@$(STAGE) keda $(GO) test -C test/keda $(SHORT) -vet=off -timeout 10m ./...

.PHONY: test/keda/scalers
test/keda/scalers:
	@cd test/keda && $(GO) run extract.go

.PHONY: kube
kube: bin/tally ## Test autoscale/kube, registry/kube and the closed loop with a real API server. The first build takes minutes.
	@$(STAGE) kube $(GO) test -C test/kube $(SHORT) -vet=off -timeout 30m ./...

KILLS  ?= 1000
ROUNDS ?= 1
ONLY   ?=
SEED   ?=
EVENTS ?= 1000

.PHONY: chaos
chaos: ## Run the fault suite in full and print its table.
## KILLS=1000 kills; ROUNDS=1 repetitions; ONLY=Nodes runs TestChaosNodes... alone; SEED repeats a run
## EVENTS=1000 events in the chaos of a cluster
	cd e2e && $(GO) test -count=$(ROUNDS) -parallel 1 -timeout 0 -run '^TestChaos$(ONLY)' -args -chaos -kills=$(KILLS) -events=$(EVENTS) -seed=$(SEED)

.PHONY: bench
bench: lab ## Measure speed and memory (simulator/lab/docs/benchmarks.md).
	./$(LAB) bench

SIM      ?= full
POLICY   ?= headroom
SIMOUT   ?= bin/sim
SCENARIOS = $(sort $(wildcard simulator/scenarios/*.yaml))
LONG      = %/s3-diurnal.yaml %/s4-surprise.yaml %/s9-deadlines.yaml %/s10-two-pools.yaml %/s11-from-zero.yaml

.PHONY: lab
lab: ## Build the binary of the laboratory into bin/.
	$(GO) build -C simulator/lab -o ../../$(LAB) ./cmd/tidefill-lab

.PHONY: sim
sim: $(if $(filter quick,$(SIM)),build,lab) ## Simulate all scenarios with baselines, 5 seeds, and oracles: hours. Continues after a stop.
## SIM=quick simulates those of one hour with one seed: minutes. POLICY=headroom; SIMOUT=bin/sim is the report
ifeq ($(SIM),quick)
	./$(BIN) simulate $(filter-out $(LONG),$(SCENARIOS)) --policy $(POLICY) --out $(SIMOUT)
else
	./$(LAB) simulate $(SCENARIOS) --policy $(POLICY) --seeds 5 --baselines --oracles --oracle-seeds 1 --out $(SIMOUT)
endif

.PHONY: fuzz
fuzz: ## Run every fuzz target, FUZZ=20s each.
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZ) $$pkg || exit 1; \
	  done; \
	done

.PHONY: search
search: RAPID_SEED = 0
search: ## Run the property tests with other cases, CASES=1000 each.
	@for pkg in $$(grep -l '"pgregory.net/rapid"' $$(git ls-files '*_test.go') | xargs -n1 dirname | sort -u); do \
	  names="$$(grep -l '"pgregory.net/rapid"' $$pkg/*_test.go | xargs sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*/\1/p' | paste -sd'|')"; \
	  (cd $$pkg && RAPID_CHECKS=$(CASES) $(GO) test $(SHORT) -count=1 -vet=off -timeout 60m -run "^($$names)$$" .) || failed=1; \
	done; [ -z "$$failed" ]

.PHONY: docs
docs: ## Generate the pages of the configuration and of the metrics again.
	$(GO) generate ./config ./app

.PHONY: manifests
manifests: ## Generate the chart's schema and deploy/kubernetes again.
	$(GO) test -C test/deploy -vet=off -count=1 -run 'Schema|Alerts' . -args -update
	$(GO) test -C test/deploy -vet=off -count=1 -run Manifests . -args -update

VERSION ?= $(shell git describe --tags --always --dirty=+changes)

.PHONY: release
release: ## Build archives, Debian packages, the bill of materials and checksums into dist/.
## VERSION=v0.1.0; without it, that of git describe
	$(GO) build -C tools -o ../bin/release ./release
	$(GO) build -C tools/sbom -o ../../bin/cyclonedx-gomod github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
	rm -rf dist
	./bin/release -version $(VERSION) -out dist

.PHONY: clean
clean: ## Remove what was built.
	rm -rf bin dist
