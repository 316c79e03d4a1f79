# The commands people type. CMake does the work; this file only knows what they are called.

BUILD  ?= build
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
# Options for CMake, as in: make CMAKE_FLAGS=-DCMAKE_C_COMPILER=clang
CMAKE_FLAGS ?=

# Builds for this machine alone, which are quick: of the demo, which times pairs of floats, with kernels for its GPUs, and
# of the quick tests, without.
DEMO   ?= build-demo
CHECK  ?= build-check
CHECK_TESTS = test_losses test_known_results test_weights test_conversions test_order test_rows test_rows_edges \
	test_rows_sizes test_rows_routes test_rows_images test_rows_halves test_rows_arguments test_rows_order_float \
	test_rows_order_double test_accuracy test_accumulator test_scale test_arguments test_tensors test_asking golden
space := $(subst ,, )

# The package in the tree and the plain loops, for the benchmark; and whose PyTorch it is compared with.
BENCH  ?= build-bench
PYTHON ?= build-test/venv/bin/python

SOURCES = $(shell find include src cli bench examples tests python -name '*.[ch]' -o -name '*.cu' -o -name '*.cpp')

MAKEFLAGS += --no-print-directory

# What Python compiles of a module it keeps for all processes of the tests, outside of the tree.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX = $(CURDIR)/build-test/pycache

.PHONY: all help demo check test test-full test-python test-tool test-oldest wheel venv gpu bench record bench-build \
	cross all-floats amalgamation lint format check-format install clean configure
.DEFAULT_GOAL := all

all: configure ## build the library, the tests, the benchmark and the examples in build/
	cmake --build $(BUILD) -j $(JOBS)

configure:
	@mkdir -p $(BUILD)
	@cmake -S . -B $(BUILD) $(CMAKE_FLAGS) >$(BUILD)/configure.log

demo: ## every loss checked against its formula, and how fast a few are; under a minute, the build included
	@tests/quietly.sh $(DEMO)/configure.log cmake -S . -B $(DEMO) -DONEPASS_NATIVE=ON -DONEPASS_CUDA=NATIVE \
		"-DONEPASS_BITS_ONLY=f64;rows" $(CMAKE_FLAGS)
	@tests/quietly.sh $(DEMO)/build.log cmake --build $(DEMO) -j $(JOBS) --target onepass_demo
	@$(DEMO)/examples/demo/onepass_demo

check: ## the quick lane, after every edit: this machine's instruction set, no kernels, the C tests that look at every loss
	@tests/quietly.sh $(CHECK)/configure.log cmake -S . -B $(CHECK) -DONEPASS_NATIVE=ON -DONEPASS_CUDA=OFF -DONEPASS_WERROR=ON \
		$(CMAKE_FLAGS)
	@tests/quietly.sh $(CHECK)/build.log cmake --build $(CHECK) -j $(JOBS) --target $(CHECK_TESTS) onepass_demo
	@cd $(CHECK) && ONEPASS_TEST_QUICK=1 ONEPASS_TEST_CASES=30 ONEPASS_TEST_SHARE=1/4 OMP_WAIT_POLICY=passive ctest -j $(JOBS) --output-on-failure --progress -R "^($(subst $(space),|,$(CHECK_TESTS))|demo_is_right)$$"

test: ## everything but the GPU: tests, sanitizers, fuzzer, both compilers, the other architecture (a quarter of an hour on two cores)
	@JOBS=$(JOBS) tests/run_all.sh

test-full: ## the same with all instruction sets, tests and kernels in every step (an hour)
	@JOBS=$(JOBS) TEST=full tests/run_all.sh

test-python: ## the Python package's tests alone
	@JOBS=$(JOBS) tests/run_all.sh python

test-tool: ## the command-line tool alone, driven as a person would
	@JOBS=$(JOBS) tests/run_all.sh tool

test-oldest: ## the Python package's tests with the oldest PyTorch that there is for this Python, from 2.2 on
	@JOBS=$(JOBS) tests/oldest_torch.sh

wheel: ## the wheel that is handed out, in build-wheel/: kernels for all GPUs, repaired, checked, tried; WHEEL_FLAGS for pip
	@JOBS=$(JOBS) REPAIR=yes tests/check_wheel.sh python3 build-wheel -C cmake.define.ONEPASS_NATIVE=OFF -C cmake.define.ONEPASS_CUDA=ON \
		-C cmake.define.ONEPASS_CUDA_ARCHITECTURES=all $(WHEEL_FLAGS)

venv: build-test/venv/installed ## what the Python package's tests need, in build-test/venv

build-test/venv/installed: tests/python/requirements.txt
	@tests/make_venv.sh build-test/venv -r tests/python/requirements.txt
	@touch $@

gpu: ## on a machine with an NVIDIA GPU: tests, compute-sanitizer, benchmark; GPU_FLAGS="--quick" for a look
	@JOBS=$(JOBS) tests/gpu.sh $(GPU_FLAGS)

bench: bench-build ## the speed compared with plain loops, PyTorch and the memory's limit; BENCH_FLAGS="--quick" for a look
	@PYTHONPATH=$(BENCH)/python $(PYTHON) -m onepass.bench --device cpu --cases plain,sizes $(BENCH_FLAGS)

record: bench-build ## everything that is measured on the CPU, kept in bench/results/ (minutes)
	@PYTHONPATH=$(BENCH)/python $(PYTHON) -m onepass.bench --device cpu --cases all --json bench/results/ $(BENCH_FLAGS)

bench-build: venv # the package in the tree, and the plain loops
	@tests/quietly.sh $(BENCH)/configure.log cmake -S . -B $(BENCH) -DONEPASS_NATIVE=ON -DONEPASS_PYTHON=ON \
		-DONEPASS_CUDA=OFF -DONEPASS_TOOL=OFF -DONEPASS_TESTS=OFF -DONEPASS_EXAMPLES=OFF -DPython3_EXECUTABLE=$(PYTHON)
	@tests/quietly.sh $(BENCH)/build.log cmake --build $(BENCH) -j $(JOBS) --target onepass_python onepass_plain

cross: ## the golden bits on the other architecture, cross-compiled and emulated, in full
	@JOBS=$(JOBS) TEST=full tests/run_all.sh cross

amalgamation: ## the library in one file, for the CPU: onepass.c and onepass.h in build/amalgamation
	@python3 src/make_amalgamation.py $(BUILD)/amalgamation
	@echo 'cc -O3 -march=native -ffp-contract=off -fopenmp -c $(BUILD)/amalgamation/onepass.c'

all-floats: configure ## every one of the 2^32 floats through the elementary functions: their largest errors (minutes)
	@cmake --build $(BUILD) -j $(JOBS) --target all_floats
	@$(BUILD)/tests/all_floats

lint: ## static analysis
	@JOBS=$(JOBS) tests/run_all.sh lint

format: ## let clang-format lay out the sources
	clang-format -i $(SOURCES)

check-format: ## say what clang-format would change
	@tests/run_all.sh format

install: configure ## build what is installed, and install it to PREFIX (/usr/local), below DESTDIR if that is set
	cmake --build $(BUILD) -j $(JOBS) --target onepass_shared onepass_static onepass_tool
	cmake --install $(BUILD) --prefix $(PREFIX)

clean: ## remove all build folders
	rm -rf $(BUILD) $(DEMO) $(CHECK) $(BENCH) build-test build-cross build-gpu build-wheel

help: ## this list
	@echo 'onepass: loss functions and their gradients in one pass over memory.'
	@echo 'Start with "make demo"; "make check" is for every edit, "make test" checks everything that can be checked without a GPU,'
	@echo 'the CUDA engine included, and "make gpu" what needs one.'
	@echo
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do \
		printf '  make %-13s %s\n' "$$name" "$$text"; done
	@echo
	@echo 'Variables: BUILD (the build folder), JOBS, PREFIX, DESTDIR, CMAKE_FLAGS, BENCH_FLAGS, GPU_FLAGS, WHEEL_FLAGS.'
