# Thin targets: each is one command that works by itself. `make help` lists them.
PRESET ?= dev
JOBS ?= $(shell nproc)

.PHONY: help setup build release demo test test-long test-asan test-tsan fuzz bench fmt tidy package clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install the Debian packages that everything here needs (root)
	@tools/setup

build: ## configure and build PRESET (dev)
	@cmake --preset $(PRESET) >/dev/null && cmake --build --preset $(PRESET) -j $(JOBS)

release: setup ## build what is shipped, in build/release
	@cmake --preset release >/dev/null && cmake --build --preset release -j $(JOBS)

demo: ## a market with three GPU nodes that runs a real job (root); KEEP=1 leaves it running
	@tools/demo $(if $(KEEP),--keep)

test: setup ## everything that guards a promise
	@tools/test

test-long: setup ## the long tier
	@tools/test --label long

test-asan: setup ## tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@tools/test --preset asan

test-tsan: setup ## tests under ThreadSanitizer
	@tools/test --preset tsan

fuzz: setup ## each fuzz target for 60 s (clang)
	@tools/fuzz

bench: release ## figures as JSON, with their conditions
	@tools/bench

fmt: ## format the C++ files that git tracks
	@git ls-files '*.h' '*.cc' | xargs clang-format -i

tidy: ## clang-tidy over src/ (slow)
	@cmake --preset dev >/dev/null && git ls-files 'src/*.cc' | xargs -P $(JOBS) -n 4 clang-tidy -p build/dev --quiet

package: release ## a tar archive of the binaries, profiles and units in build/
	@tools/package

clean: ## remove build/
	@rm -rf build
