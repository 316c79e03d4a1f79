#!/bin/sh
# Everything that `make test` does: builds in build-test/ and build-cross/, runs, and ends with a table.
#
#   tests/run_all.sh                 all steps
#   tests/run_all.sh STEP...         some of: release sanitize thread fuzz clang kernels python tool lint format
#                                    cross
#
# A step whose tools are not there is left out, and the table says why, as it does of tests that skipped themselves. A
# step that fails does not stop the others. What runs on a GPU is in tests/gpu.sh.
# JOBS is the number of processes to build and test with; CC is the C compiler of the steps that do not name their own;
# CROSS=full emulates every test with every instruction set. PYTHON is the interpreter of the Python package's tests;
# else that of build-test/venv, which `make venv` makes, or python3.
set -u
cd "$(dirname "$0")/.." || exit 2
self=tests/run_all.sh

jobs=${JOBS:-$(nproc 2>/dev/null || echo 2)}
all_steps="release sanitize thread fuzz clang kernels python tool lint format cross"
work=build-test
mkdir -p $work
reason= # why the running step is left out

# ---------------------------------------------------------------- what the steps share

has() { command -v "$1" >/dev/null 2>&1; }

# Ends a step that cannot run here.
leave_out() {
    reason=$1
    return 77
}

# quietly LOG COMMAND...: shows the output only if the command fails.
quietly() {
    log=$1
    shift
    "$@" >"$log" 2>&1 && return 0
    tail -n 60 "$log"
    echo "failed: $*"
    return 1
}

# build FOLDER TARGETS OPTION...: configures and builds.
build() {
    folder=$1 targets=$2
    shift 2
    mkdir -p "$folder"
    # shellcheck disable=SC2086 # targets are words
    quietly "$folder/configure.log" cmake -S . -B "$folder" "$@" &&
        quietly "$folder/build.log" cmake --build "$folder" -j "$jobs" --target $targets
}

# skipped FOLDER: the tests of the last run that skipped themselves, a line each with the reason.
skipped() {
    awk '/^[0-9]+\/[0-9]+ Testing: / { name = $NF }
        /^skipped: / { sub(/^skipped: /, ""); print "skipped " name ": " $0 }' "$1/Testing/Temporary/LastTest.log"
}

# check FOLDER OPTION...: runs the tests of a build.
check() {
    folder=$1
    shift
    (cd "$folder" && ctest --output-on-failure --no-tests=error -j "$jobs" "$@")
    status=$?
    skipped "$folder" | tee -a $work/skipped
    return $status
}

# find_python MODULE...: sets `python` to an interpreter that has pytest and these, and `workers` to pytest's option for
# all cores; or leaves the step out.
find_python() {
    python=${PYTHON:-$work/venv/bin/python}
    has "$python" || python=python3
    has "$python" || leave_out "python3 is not here" || return
    for module in pytest "$@"; do
        "$python" -c "import $module" >/dev/null 2>&1 ||
            leave_out "$("$python" --version) has no $module (make venv installs what the tests need)" || return
    done
    workers=
    ! "$python" -c "import xdist" >/dev/null 2>&1 || workers="-n $jobs"
}

# Instruction sets that this machine does not have, and that sanitizers would take minutes to compile for nothing.
not_here() {
    case $(uname -m) in
    aarch64) grep -qw sve /proc/cpuinfo || echo sve ;;
    x86_64) for set in avx2 avx512f; do grep -qw $set /proc/cpuinfo || echo ${set%f}; done | paste -s -d ';' - ;;
    esac
}

# Whether a compiler can build and run a program with these options.
can_build() {
    echo 'int main(void) { return 0; }' >$work/probe.c
    "$@" $work/probe.c -o $work/probe >$work/probe.log 2>&1 && $work/probe >>$work/probe.log 2>&1
}

# ---------------------------------------------------------------- the steps

# With kernels if nvcc is here, for one architecture: each further one takes a core 100 s. The other steps have no use for
# kernels.
build_release() {
    build $work/release "$1" -DONEPASS_WERROR=ON -DONEPASS_CUDA_ARCHITECTURES=75
}

step_release() {
    build_release all || return
    # What the build goes without: nvcc, or a C++ compiler for the kernels on the CPU.
    sed -n 's/^-- onepass: \(no .*\|built without .*\)/\1/p' $work/release/configure.log | tee -a $work/skipped
    check $work/release
}

step_sanitize() {
    can_build "${CC:-cc}" -fsanitize=address,undefined ||
        leave_out "${CC:-cc} has no address and undefined-behaviour sanitizers" || return
    build $work/sanitize all -DONEPASS_WERROR=ON -DONEPASS_SANITIZE=address,undefined -DONEPASS_CUDA=OFF \
        -DONEPASS_BENCH=OFF -DONEPASS_EXAMPLES=OFF -DONEPASS_LEAVE_OUT="$(not_here)" || return
    export ONEPASS_TEST_QUICK=1 UBSAN_OPTIONS=print_stacktrace=1
    # A search for leaks takes seconds at the end of each process on some machines. On the CPU only accumulators allocate,
    # and what the CUDA engine keeps is counted by its own tests.
    ASAN_OPTIONS=detect_leaks=0 check $work/sanitize &&
        ASAN_OPTIONS=detect_leaks=1 check $work/sanitize -R '^(test_accumulator|fuzz_driver)$'
}

# With clang, its OpenMP runtime and that runtime's tool for the sanitizer, Archer: under gcc the sanitizer does not
# see what libgomp synchronises and reports races that are none. First a planted race must be found.
step_thread() {
    has clang || leave_out "clang is not here" || return
    clang -g -O1 -fopenmp -fsanitize=thread tests/planted_race.c -o $work/planted_race >$work/probe.log 2>&1 ||
        leave_out "clang has no OpenMP or no thread sanitizer (libomp, compiler-rt)" || return
    runtime=$(ldd $work/planted_race | awk '/libomp/ { print $3 }')
    archer=$(dirname "$(readlink -f "$runtime")")/libarcher.so
    [ -e "$archer" ] || archer=libarcher.so
    export OMP_TOOL_LIBRARIES="$archer" TSAN_OPTIONS=ignore_noninstrumented_modules=1
    $work/planted_race >$work/probe.log 2>&1 ||
        leave_out "the thread sanitizer reports a race where there is none (is Archer, libarcher.so, here?)" || return
    ! $work/planted_race race >$work/probe.log 2>&1 && grep -q "data race" $work/probe.log ||
        leave_out "the thread sanitizer does not find a planted race" || return
    echo "a planted race was found"
    programs="losses order accumulator arguments tensors asking cuda_host_preparation cuda_host_launches"
    programs="$programs cuda_host_workspaces cuda_host_threads cuda_host_failures"
    build $work/thread "$(echo " $programs" | sed 's/ / test_/g')" -DCMAKE_C_COMPILER=clang -DONEPASS_SANITIZE=thread \
        -DONEPASS_CUDA=OFF -DONEPASS_BENCH=OFF -DONEPASS_EXAMPLES=OFF -DONEPASS_LEAVE_OUT="$(not_here)" &&
        ONEPASS_TEST_QUICK=1 check $work/thread -R "^test_($(echo "$programs" | tr ' ' '|'))\$"
}

step_fuzz() {
    has clang || leave_out "clang is not here; the stand-in driver ran in the release step" || return
    echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return (void)d, (void)n, 0; }' >$work/fuzz.c
    clang -fsanitize=fuzzer,address,undefined $work/fuzz.c -o $work/fuzz_probe >$work/probe.log 2>&1 ||
        leave_out "clang has no libFuzzer (compiler-rt); the stand-in driver ran in the release step" || return
    build $work/fuzz "fuzz_arguments fuzz_npy fuzz_safetensors" -DCMAKE_C_COMPILER=clang -DONEPASS_FUZZ=ON \
        -DONEPASS_SANITIZE=fuzzer-no-link,address,undefined -DONEPASS_CUDA=OFF -DONEPASS_BENCH=OFF \
        -DONEPASS_EXAMPLES=OFF -DONEPASS_LEAVE_OUT="$(not_here)" && check $work/fuzz -R '^fuzz_(arguments|npy|safetensors)$'
}

# The other compiler: no warnings, and the same bits.
step_clang() {
    has clang || leave_out "clang is not here" || return
    build $work/clang all -DCMAKE_C_COMPILER=clang -DONEPASS_WERROR=ON -DONEPASS_CUDA=OFF &&
        ONEPASS_TEST_QUICK=1 check $work/clang -R '^(golden|golden_shared|test_(arguments|tensors|asking)|packaging)$'
}

# What ptxas made of the kernels, for one architecture: all of them take ten minutes, by tests/check_kernels.sh alone. The
# release step has left their PTX.
step_kernels() {
    PATH=$PATH:/usr/local/cuda/bin
    has nvcc || leave_out "nvcc is not here" || return
    ARCHITECTURES=${ARCHITECTURES:-75} JOBS=$jobs tests/check_kernels.sh $work/release/src/cuda
}

sources() {
    find include src cli bench examples tests python -name '*.[ch]' -o -name '*.cu' -o -name '*.cpp' | sort
}

step_lint() {
    if has cppcheck; then
        # shellcheck disable=SC2046 # file names here have no blanks
        cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --std=c11 --inline-suppr \
            -I include -I src -I tests -I cli -I bench --suppressions-list=tests/cppcheck.txt \
            -j "$jobs" $(sources | grep '\.c$' | grep -v '^python/') || return
        # It need not find Python's headers, but should know which of their macros return.
        # shellcheck disable=SC2046
        cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --std=c11 -I include \
            -DPy_RETURN_NONE='return NULL' -DPy_RETURN_TRUE='return NULL' -DPy_RETURN_FALSE='return NULL' \
            --suppressions-list=tests/cppcheck.txt $(sources | grep '^python/.*\.c$')
    elif has clang-tidy; then
        # shellcheck disable=SC2046
        clang-tidy --quiet --warnings-as-errors='*' --checks='-*,clang-analyzer-*,bugprone-*,-bugprone-easily-swappable-parameters' \
            $(sources | grep '^src/[a-z]*\.c$') -- -std=c17 -Iinclude -Isrc -D_POSIX_C_SOURCE=200809L
    else
        leave_out "neither cppcheck nor clang-tidy is here"
    fi
}

# The Python package as a user gets it: a wheel, installed somewhere else than the sources. Without kernels, which need a
# GPU to be of use, and without instruction sets that this machine cannot run.
step_python() {
    find_python torch numpy hypothesis scikit_build_core || return
    rm -rf $work/wheel $work/site
    without=$(not_here)
    [ -z "$without" ] || echo "left out: $without, which this machine does not have, from the wheel" | tee -a $work/skipped
    quietly $work/wheel.log "$python" -m pip wheel . --no-deps --no-build-isolation --wheel-dir $work/wheel \
        --config-settings=cmake.define.ONEPASS_CUDA=OFF --config-settings=cmake.define.ONEPASS_WERROR=ON \
        ${without:+"--config-settings=cmake.define.ONEPASS_LEAVE_OUT=$without"} || return 1
    ls $work/wheel
    quietly $work/site.log "$python" -m pip install --no-deps --no-index --target $work/site $work/wheel/*.whl || return 1
    build_release onepass_oracle_shared || return 1
    export ONEPASS_ORACLE=$work/release/tests/oracle/libonepass_oracle.so
    # shellcheck disable=SC2086 # an option or none
    PYTHONPATH=$work/site "$python" -m pytest tests/python -q -p no:cacheprovider $workers
}

# The release step has left the tool; the sanitize step, if it ran, one that watches itself, for the tests that bring odd
# files; the python step, if it ran, the package whose bits are compared.
step_tool() {
    find_python numpy hypothesis safetensors ml_dtypes || return
    build_release "onepass_tool onepass_oracle_shared" || return 1
    export ONEPASS_ORACLE=$work/release/tests/oracle/libonepass_oracle.so
    # shellcheck disable=SC2086 # an option or none
    ONEPASS_TOOL=$work/release/cli/onepass PYTHONPATH=$work/site "$python" -m pytest tests/cli -q -rs \
        -p no:cacheprovider $workers || return 1
    [ -x $work/sanitize/cli/onepass ] || return 0
    # shellcheck disable=SC2086
    ASAN_OPTIONS=detect_leaks=0 ONEPASS_TOOL=$work/sanitize/cli/onepass "$python" -m pytest tests/cli/test_files.py \
        tests/cli/test_broken_files.py tests/cli/test_random.py tests/cli/test_outputs.py tests/cli/test_masks.py -q -p no:cacheprovider $workers
}

step_format() {
    has clang-format || leave_out "clang-format is not here" || return
    # shellcheck disable=SC2046
    clang-format --dry-run --Werror $(sources)
}

# emulate ARCHITECTURE FOLDER SET PROGRAM [ARGUMENT...]: one test under one instruction set.
emulate() {
    emulator="qemu-$1 -cpu max"
    [ "$1" = "$(uname -m)" ] || emulator="$emulator -L /usr/$1-linux-gnu"
    folder=$2 set=$3 program=$4
    log=$work/emulated_$1_${set}_$program.log
    shift 4
    if ONEPASS_ISA=$set $emulator "$folder/tests/$program" "$@" >"$log" 2>&1; then
        sed -n "/left out: /s/^/$set, $program: /p" "$log"
        echo "$set, $program: $(tail -n 1 "$log")"
    else
        cat "$log"
        echo "$set, $program: FAILED"
        return 1
    fi
}

# list_emulated ARCHITECTURE FOLDER EXCEPT: what to emulate, a line each: every instruction set that emulation offers
# and EXCEPT does not name. Emulation is slow. So, unless CROSS=full, the sets of the other architecture share the golden
# file out among them, all of it; those of this one, where the release step has checked all of it with another set, have
# half of it each; and the other tests run only with the other architecture's first set.
list_emulated() {
    sets=$(qemu-"$1" -cpu max -L "/usr/$1-linux-gnu" "$2/tests/list_instruction_sets") || return
    others="test_order test_losses"
    parts=$(echo "$sets" | wc -w) part=0
    [ "$1" != "$(uname -m)" ] || [ "${CROSS:-}" = full ] || others= parts=2
    for set in $sets; do
        case " $3 " in *" $set "*) continue ;; esac
        part=$((part % parts + 1)) share=" $part/$parts" # no blank at the end, by which xargs would join two lines
        [ "${CROSS:-}" != full ] || share=
        echo "$1 $2 $set golden --check tests/golden.txt$share"
        for program in $others; do
            echo "$1 $2 $set $program"
        done
        [ "${CROSS:-}" = full ] || others=
    done
}

# not_emulated ARCHITECTURE COMPILER: instruction sets that the emulator does not have, and that would be compiled for
# nothing. The sources are the same for all sets.
not_emulated() {
    [ "$1" = x86_64 ] && [ "${CROSS:-}" != full ] || return 0
    echo 'int main(void) { return __builtin_cpu_supports("avx512f") ? 0 : 3; }' >$work/probe.c
    "$2" $work/probe.c -o $work/probe >$work/probe.log 2>&1 || return 0
    qemu-"$1" -cpu max -L "/usr/$1-linux-gnu" $work/probe >>$work/probe.log 2>&1
    [ $? -ne 3 ] || echo avx512
}

# The same bits on the other architecture, by a cross compiler and user-mode emulation; and on this one with the
# instruction sets that this machine does not have.
step_cross() {
    own=$(uname -m)
    case $own in
    aarch64) other=x86_64 ;;
    x86_64) other=aarch64 ;;
    *) leave_out "no other architecture is known for $own" || return ;;
    esac
    compiler=$other-linux-gnu-gcc
    has "$compiler" || leave_out "$compiler is not here" || return
    has "qemu-$other" || leave_out "qemu-$other is not here" || return
    without=$(not_emulated $other "$compiler")
    [ -z "$without" ] || echo "left out: $without, which qemu-$other does not emulate; CROSS=full compiles it" |
        tee -a $work/skipped
    build "build-cross/$other" "golden test_losses test_order list_instruction_sets" -DCMAKE_SYSTEM_NAME=Linux \
        -DCMAKE_SYSTEM_PROCESSOR=$other -DCMAKE_C_COMPILER="$compiler" -DONEPASS_CUDA=OFF -DONEPASS_BENCH=OFF \
        -DONEPASS_EXAMPLES=OFF -DONEPASS_LEAVE_OUT="$without" || return 1
    list_emulated $other "build-cross/$other" "" >$work/emulated || return 1
    if has "qemu-$own"; then
        build_release "golden test_losses test_order list_instruction_sets" || return 1
        list_emulated "$own" $work/release "$($work/release/tests/list_instruction_sets)" >>$work/emulated || return 1
    fi
    if [ "${CROSS:-}" != full ]; then
        export ONEPASS_TEST_QUICK=1 ONEPASS_TEST_CASES=25
        echo "left out: parts of the golden file and of the tests, with each emulated set; make cross emulates all" |
            tee -a $work/skipped
    fi
    xargs -P "$jobs" -L 1 $self --emulate <$work/emulated
}

# ---------------------------------------------------------------- the run

heading() {
    case $1 in
    release) echo "release: the build without warnings, all tests; the CUDA kernels as far as nvcc is here" ;;
    sanitize) echo "sanitize: address and undefined-behaviour sanitizers, quick tests" ;;
    thread) echo "thread: the thread sanitizer, quick tests" ;;
    fuzz) echo "fuzz: libFuzzer on the argument checks and on the parsers of files, some seconds each" ;;
    clang) echo "clang: a build without warnings, the same bits" ;;
    kernels) echo "kernels: machine code, few spills and no local memory" ;;
    tool) echo "tool: the command-line tool, driven as a person would" ;;
    python) echo "python: the package, built as a wheel, and its tests" ;;
    lint) echo "lint: cppcheck or clang-tidy" ;;
    format) echo "format: clang-format has nothing to change" ;;
    cross) echo "cross: the same bits on the other architecture, emulated" ;;
    esac
}

if [ "${1:-}" = --emulate ]; then
    shift
    emulate "$@"
    exit
fi
steps=${*:-$all_steps}
: >$work/summary
failures=0
for step in $steps; do
    case " $all_steps " in *" $step "*) ;; *)
        echo "run_all.sh: no step \"$step\"; there are: $all_steps" >&2
        exit 2
        ;;
    esac
    printf '\n=== %s\n' "$(heading "$step")"
    start=$(date +%s)
    : >$work/skipped
    # In a shell of its own, so that what a step exports ends with it.
    (
        "step_$step"
        status=$?
        echo "$reason" >$work/reason
        exit $status
    )
    status=$?
    reason=$(cat $work/reason)
    seconds=$(($(date +%s) - start))
    if [ $status -eq 0 ]; then
        result=passed
    elif [ $status -eq 77 ] && [ -n "$reason" ]; then
        result="left out: $reason"
        echo "$result"
    else
        result=FAILED
        failures=$((failures + 1))
    fi
    printf '%-10s %4d s  %s\n' "$step" "$seconds" "$result" >>$work/summary
    sort -u $work/skipped | sed 's/^/                    /' >>$work/summary
done

printf '\n=== summary\n'
cat $work/summary
[ $failures -eq 0 ] || { echo "$failures failed" && exit 1; }
