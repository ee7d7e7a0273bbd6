# The commands of README.md; the build itself is CMake's (CMakePresets.json).
.DEFAULT_GOAL := release
.PHONY: release debug demo test asan tsan fuzz install setup clean check-layers check-format format tidy

# Half of the tests wait most of the time (for leases, for a process that was killed).
export CTEST_PARALLEL_LEVEL ?= $(shell echo $$(($$(nproc) * 3 / 2)))
# LeakSanitizer takes blocks of thread-local memory that glibc lays out for others, and crashes in one run of three of a
# process that has loaded a library late ("DTLS" with LSAN_OPTIONS=log_threads=1); without that interceptor it does not.
# ThreadSanitizer's same interceptor reads the size of such a block where there is none, and then "failed to allocate"
# 500 TB in one run of 15 of test_ucx_fabric (UCX is loaded late).
export ASAN_OPTIONS ?= detect_stack_use_after_return=1:intercept_tls_get_addr=0
export LSAN_OPTIONS ?= suppressions=$(CURDIR)/test/lsan.supp:print_suppressions=0
export UBSAN_OPTIONS ?= print_stacktrace=1
export TSAN_OPTIONS ?= halt_on_error=1:intercept_tls_get_addr=0
# ThreadSanitizer's address map does not fit every layout that a kernel with more random bits draws.
tsan: run := $(shell [ "$$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 28)" -le 28 ] || echo setarch -R)

setup:
	@scripts/setup.sh

release: setup
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target paramo paramo_static paramo_shared

debug: setup
	@cmake --preset debug >/dev/null
	@cmake --build --preset debug

demo: release
	@scripts/demo.sh build/release/paramo

test:
	@scripts/setup.sh --test
	@cmake --preset release >/dev/null
	@cmake --build --preset release
	@ctest --preset release --no-tests=error $(CTEST_FLAGS)

asan tsan:
	@scripts/setup.sh --test
	@cmake --preset $@ >/dev/null
	@$(run) cmake --build --preset $@
	@$(run) ctest --preset $@ --no-tests=error $(CTEST_FLAGS)

# Longer than .ci/run does: FUZZ_SECONDS of processor time over all targets.
fuzz:
	@scripts/setup.sh --all
	@FUZZ_SECONDS=$(or $(FUZZ_SECONDS),3600) scripts/fuzz

install: release
	@cmake --build --preset release --target man
	@cmake --install build/release $(if $(PREFIX),--prefix $(PREFIX))

check-layers:
	@scripts/layers

check-format:
	@scripts/format --check

format:
	@scripts/format

tidy: release
	@scripts/tidy

clean:
	rm -rf build
