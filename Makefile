# The commands of README.md; the build itself is CMake's (CMakePresets.json).
.DEFAULT_GOAL := release
.PHONY: release demo test asan tsan install setup clean check-layers check-format format tidy

setup:
	@scripts/setup.sh

release: setup
	@cmake --preset release >/dev/null
	@cmake --build --preset release

demo: release
	@scripts/demo.sh build/release/paramo

test: release
	@ctest --preset release

asan tsan: setup
	@cmake --preset $@ >/dev/null
	@cmake --build --preset $@
	@ctest --preset $@

install: release
	@cmake --install build/release $(if $(PREFIX),--prefix $(PREFIX))

check-layers:
	@scripts/layers

check-format: setup
	@scripts/format --check

format:
	@scripts/format

tidy: release
	@scripts/tidy

clean:
	rm -rf build
