# Targets for people. What must hold before a change is merged is `make check`.

GO         ?= go
FUZZTIME   ?= 30s
GOFUMPT     = $(GO) run mvdan.cc/gofumpt@v0.12.0
# v0.8.2 is the module version of staticcheck 2026.2.2.
STATICCHECK = $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2

.DEFAULT_GOAL := help
.PHONY: help build test check format lint race tidy fuzz fuzz-short deps-compat compat deps-diff diff tools faults cloud mutants mutants-short bench bench-short full

help: ## show this text
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build ./queen-edge
	CGO_ENABLED=0 $(GO) build -o queen-edge ./cmd/queen-edge

test: ## run the tests
	$(GO) test ./...

check: format lint tidy race ## all that must hold: gofumpt, vet, staticcheck, tidy, tests with the race detector

format: ## fail on files that gofumpt would change
	@out="$$($(GOFUMPT) -l .)" || exit 1; \
	if [ -n "$$out" ]; then echo "gofumpt would change:"; echo "$$out"; exit 1; fi

lint: ## go vet and staticcheck
	$(GO) vet ./...
	$(STATICCHECK) ./...

race: ## run the tests with the race detector
	$(GO) test -race -timeout 20m ./...

tidy: ## fail if go.mod or go.sum are not what go mod tidy makes
	$(GO) mod tidy -diff

# Each package is built once, and two workers of bounded memory look for inputs.
# What is found becomes a file under testdata/fuzz, which go test replays.
fuzz: ## run every fuzz function for FUZZTIME (30s, or a number of inputs: 1000x) each
	@set -eu; bin="$$(mktemp)"; trap 'rm -f "$$bin"' EXIT; cache="$$($(GO) env GOCACHE)/fuzz"; \
	for dir in $$(grep -rl '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u); do \
		CGO_ENABLED=0 $(GO) test -c -fuzz . -o "$$bin" "$$dir"; \
		for name in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' "$$dir"/*_test.go | sed 's/^func //'); do \
			echo "$$dir $$name"; \
			(cd "$$dir" && GOMEMLIMIT=512MiB "$$bin" -test.run '^$$' -test.fuzz "^$$name\$$" -test.fuzztime $(FUZZTIME) \
				-test.parallel 2 -test.fuzzcachedir "$$cache/$$dir"); \
		done; \
	done

# By number: a round that ends by the clock can fail at its end on a busy
# machine, having found nothing (go.dev/issue/75804, as of Go 1.26).
fuzz-short: ## run every fuzz function for a short round
	@$(MAKE) --no-print-directory fuzz FUZZTIME=300x

deps-compat: ## install what the clients of compat/clients need
	$(GO) run ./compat/clients/runner --deps
	compat/native/deps

compat: deps-compat ## let every client go through the shared checks against a demo, and three through a low request rate and logins that end
	$(GO) run ./compat/clients/runner
	$(GO) run ./compat/clients/throttled
	$(GO) run ./compat/clients/relogin

deps-diff: compat/diff/.cache/kafka/done ## install the Apache Kafka that diff and tools want (Java 17, Maven 3)

compat/diff/.cache/kafka/done: compat/diff/pom.xml
	rm -rf $(@D)
	mvn -B -q -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$(@D) </dev/null
	touch $@

diff: deps-diff ## hold every answer against a real Apache Kafka
	CGO_ENABLED=0 $(GO) run ./compat/diff

tools: deps-diff ## run Apache Kafka's command-line tools, and compare what they print
	CGO_ENABLED=0 $(GO) run ./compat/tools

faults: ## take idempotent producers and transactions through faults, and judge the log
	CGO_ENABLED=0 $(GO) run ./compat/faults
	CGO_ENABLED=0 $(GO) run ./compat/faults --txn

cloud: ## prove the isolation of tenants, here or where QUEEN_EDGE_ variables point (docs/ISOLATION.md)
	CGO_ENABLED=0 $(GO) test -count=1 -v ./compat/cloud

mutants: ## take the tenant out of one place after the other: each must be noticed
	CGO_ENABLED=0 $(GO) run ./compat/mutants

mutants-short: ## the same for the places that matter most
	CGO_ENABLED=0 $(GO) run ./compat/mutants catalog-key cell-tenant error-cache group-key identity-cache offset-index txn-commit-in-two-calls

bench: deps-diff ## measure beside Apache Kafka: 40 minutes, 8 GB of disk, an idle machine
	CGO_ENABLED=0 $(GO) run -C compat/bench .

bench-short: deps-diff ## see that all of bench still runs; measures nothing
	cd compat/bench && $(GO) vet ./... && CGO_ENABLED=0 $(GO) test ./...
	CGO_ENABLED=0 $(GO) run -C compat/bench . -short

full: ## run everything, the slow suites and the slow clients included
	QE_FULL=1 QE_REQUIRE=1 $(GO) test -timeout 60m ./...
	$(GO) run ./compat/clients/runner --deps --slow
	$(GO) run ./compat/clients/runner --slow
	$(GO) run ./compat/clients/throttled
	QE_FULL=1 $(GO) run ./compat/clients/relogin
	$(MAKE) diff
	$(MAKE) tools
	$(MAKE) mutants
