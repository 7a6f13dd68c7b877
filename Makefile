# Two cores are enough for all of it; -p 1 keeps clusters of different packages
# from starving each other.
GO  ?= go
BIN := bin/fencekv

export CGO_ENABLED ?= 0

.PHONY: build cluster test check fuzz histories simulations soak drill bench bench-peers bench-overload bench-growth bench-endurance bench-build clean

build: ## the binary, static, in bin/
	$(GO) build -trimpath -o $(BIN) ./cmd/fencekv

cluster: build ## three nodes on localhost:8700, 8710 and 8720; Ctrl-C stops them
	$(BIN) dev --nodes 3

test: ## everything, with the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -count=1 -p 1 -timeout 12m ./...

check: ## format, vet, static analysis, module file, other platforms
	@unformatted=$$($(GO) run mvdan.cc/gofumpt@v0.9.2 -l .); test -z "$$unformatted" || { echo "gofumpt: $$unformatted"; exit 1; }
	$(GO) vet ./...
	cd test/bench && $(GO) vet ./... && $(GO) mod tidy -diff
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	$(GO) mod tidy -diff
	$(GO) test ./test
	GOOS=darwin $(GO) build -o /dev/null ./cmd/fencekv
	$(GO) build -trimpath -o /dev/null ./cmd/fencekv

histories: ## 10,000 random histories against the reference model, the promises, the replicas
	$(GO) test ./fsm -run 'AgreesWithModel|Promises|ReplicasAgree' -rapid.checks=10000 -timeout 30m

simulations: ## 200 seeds of the simulated cluster
	$(GO) test ./cluster -run Simulation -sim.seeds=200 -timeout 60m

soak: ## the system tests 20 times in a row
	$(GO) test ./test/system -count=20 -timeout 90m

fuzz: ## each fuzz target for FUZZTIME
	@for target in $$(grep -rhoE '^func Fuzz[A-Za-z]+' --include='*_test.go' . | cut -c6- | sort -u); do \
		package=$$(grep -rlE "^func $$target\(" --include='*_test.go' . | head -1 | xargs dirname); \
		echo "$$package $$target"; $(GO) test $$package -run '^$$' -fuzz "^$$target$$" -fuzztime $(or $(FUZZTIME),30s) || exit 1; done

drill: build ## the stories against the cluster on localhost:8700
	$(BIN) drill

bench: ## micro-benchmarks, BENCHCOUNT times each; give two outputs to benchstat
	$(GO) test -run '^$$' -bench . -count $(or $(BENCHCOUNT),6) -timeout 60m ./fsm ./snapshot ./httpapi

bench-build: build
	cd test/bench && $(GO) build -o ../../bin/etcd go.etcd.io/etcd/server/v3 && $(GO) build -o ../../bin/fencekv-bench .

bench-peers: bench-build ## fencekv against etcd, three processes each; writes docs/performance.md
	cd test/bench && ../../bin/fencekv-bench peers -docs ../../docs $(BENCHFLAGS)

bench-overload: bench-build ## a minute of three times what the cluster can do; writes docs/performance.md
	cd test/bench && ../../bin/fencekv-bench overload -docs ../../docs -duration 60s

bench-growth: bench-build ## the cost of a write and a read as the store grows; writes docs/performance.md
	cd test/bench && ../../bin/fencekv-bench growth -docs ../../docs

bench-endurance: bench-build ## an hour at the full rate; writes docs/performance.md
	cd test/bench && ../../bin/fencekv-bench endurance -docs ../../docs -duration $(or $(DURATION),60m)

clean:
	rm -rf bin
