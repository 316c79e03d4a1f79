#!/bin/sh
# Everything that `make test` does: builds in build-test/ and build-cross/, runs, and ends with a table.
#
#   tests/run_all.sh             all steps but clang, which TEST=full adds
#   tests/run_all.sh STEP...     some of: release sanitize thread clang kernels python tool wheel cross lint format
#
# A step whose tools are not there is left out, and the table says what would add it, as it does of tests that skipped
# themselves. A step that fails does not stop the others. What runs on a GPU is in tests/gpu.sh.
#
# Several steps run in two lanes, side by side unless JOBS is 1, so that no core waits while a step configures, links or
# ends with its longest test. What a step says is shown when it has ended, and stays in build-test/logs.
#
# A proof is given once: the release build has every instruction set of this machine and every test, of which those that
# only repeat themselves with more numbers are quick; the others have the one set that the library would choose here and
# quick tests. The shared library and the library in one file have a sixteenth of the golden file, whose rest the static
# one has, and emulated sets too, and clang's with sanitizers in it. test_losses takes one of 3 cases of its
# list, test_rows and test_vectors one of 6, of which the golden file has all; sanitizers see one of 75, and of 15. The
# address sanitizer leaves out tests that are about bits, or stacks, or have fences of their own, and take the same ways
# through the library as others. The other architecture's compiler optimises with -O1, as does the own one where this
# machine does not have the set; of those sets f64, and builds with sanitizers, do not inline what the source asks for,
# and the thread sanitizer's does not optimise rows and vectors.
# TEST=full, which is `make test-full`, gives them all sets, every test in full and every kernel.
#
# JOBS is the number of processes; CC the C compiler of the steps that do not name their own; PYTHON the interpreter of
# the tests in Python, else that of build-test/venv, which is made if need be.
set -u
cd "$(dirname "$0")/.." || exit 2

all_steps="release sanitize thread clang kernels python tool wheel cross lint format"
usual_steps=$all_steps
[ "${TEST:-}" = full ] || usual_steps=$(echo $all_steps | sed 's/ clang//')
jobs=${JOBS:-$(nproc 2>/dev/null || echo 2)}
work=build-test
native=-DONEPASS_NATIVE=ON free_inline=-DONEPASS_FREE_INLINE=ON
[ "${TEST:-}" != full ] || native= free_inline=
# Programs with sanitizers in them are to be compiled soon more than to run soon: test_rows_edges took 3.3 CPU seconds.
# What the source asks to be inlined they inline as they like: run.c takes 1.8 seconds instead of 5.1, and its tests a
# tenth more.
instrumented="-DCMAKE_C_FLAGS_RELEASE=-O1 -DONEPASS_BENCH=OFF -DONEPASS_EXAMPLES=OFF $free_inline"
mkdir -p $work

# Threads that wait do so without spinning: several programs run at once, some with more threads than there are cores.
# test_order took 2.1 CPU seconds instead of 6.2.
export OMP_WAIT_POLICY=passive

# ---------------------------------------------------------------- what the steps share

has() { command -v "$1" >/dev/null 2>&1; }

# note TEXT COMMAND: something was left out, and what would add it.
note() { echo "$1 ($2)" | tee -a "$NOTES"; }

# leave_out REASON COMMAND: ends a step that cannot run here.
leave_out() {
    note "$1" "$2"
    exit 77
}

# need PROGRAM PACKAGE...
need() {
    program=$1
    shift
    has "$program" || leave_out "$program is not here" "apt-get install $*"
}

# build FOLDER TARGETS OPTION...: configures and builds without kernels and without warnings.
build() {
    folder=$1 targets=$2
    shift 2
    # shellcheck disable=SC2086 # targets are words
    tests/quietly.sh "$folder/configure.log" cmake -S . -B "$folder" -DONEPASS_WERROR=ON -DONEPASS_CUDA=OFF "$@" &&
        tests/quietly.sh "$folder/build.log" cmake --build "$folder" -j "$jobs" --target $targets
}

# check FOLDER OPTION...: runs the tests of a build.
check() {
    folder=$1
    shift
    (cd "$folder" && ctest --output-on-failure --no-tests=error -j "$jobs" "$@")
    status=$?
    awk '/^[0-9]+\/[0-9]+ Testing: / { name = $NF }
        /^skipped: / { sub(/^skipped: /, ""); print name " skipped itself: " $0 }' \
        "$folder/Testing/Temporary/LastTest.log" | tee -a "$NOTES"
    return $status
}

# Sets `python` to an interpreter with what the tests need, making its environment if need be: one step at a time.
find_python() {
    python=${PYTHON:-$work/venv/bin/python}
    if [ -z "${PYTHON:-}" ]; then
        need python3 python3-venv
        tests/quietly.sh $work/venv.log flock $work/venv.lock make venv ||
            leave_out "the Python environment could not be made, as $work/venv.log says" "make venv"
    fi
    for module in pytest xdist "$@"; do
        "$python" -c "import $module" >/dev/null 2>&1 || leave_out "$python has no $module" "make venv"
    done
}

# run_pytest FOLDER...: pytest on all cores, files in one piece as far as may be, so that what their tests compile or
# train is done once.
run_pytest() {
    export ONEPASS_ORACLE=$work/release/tests/oracle/libonepass_oracle.so
    "$python" -m pytest -q -rfEs --disable-warnings --durations=10 --durations-min=5 -p no:cacheprovider -n "$jobs" --dist worksteal "$@"
}

# can_build COMMAND...: whether a compiler with these options makes a program that runs.
can_build() {
    echo 'int main(void) { return 0; }' >$work/probe.c
    "$@" $work/probe.c -o $work/probe >$work/probe.log 2>&1 && $work/probe >>$work/probe.log 2>&1
}

# ---------------------------------------------------------------- the steps

# Sets that this machine does not have are only run emulated, in part, by the cross step, and are compiled for that. So is
# SSE2 where there is better, in half the time.
step_release() {
    slow=
    for pair in avx2:avx2 avx512:avx512f sve:sve; do
        grep -qw "${pair#*:}" /proc/cpuinfo 2>/dev/null || slow="$slow;${pair%:*}"
    done
    ! grep -qw avx2 /proc/cpuinfo 2>/dev/null || slow="$slow;sse2"
    [ "${TEST:-}" != full ] || slow=
    build $work/release all "-DONEPASS_BITS_ONLY=$slow" || return
    sed -n 's/^-- onepass: \(no .*\)/\1/p' $work/release/configure.log | tee -a "$NOTES"
    # The longest first, so that no core waits for them at the end. What the library chooses by itself is the golden
    # file of one of the sets that have tests of their own. A set that is slow has a part of it.
    golden='golden(_shared|_amalgamation)?$'
    case $slow in *sse2*) golden="$golden|golden_sse2" ;; esac
    long="^(test_order\$|test_simt_|test_skip_if_one|test_stack|test_transcendental_|test_vectors_order_F64"
    long="$long|test_accumulator_shared|terms_|$golden)"
    lists='^(test_rows|test_vectors)$'
    (
        [ "${TEST:-}" = full ] || export ONEPASS_TEST_QUICK=1 ONEPASS_TEST_SHARE=2/16
        check $work/release -R "$long"
    ) && (
        [ "${TEST:-}" = full ] || export ONEPASS_TEST_CASES=30
        check $work/release -R "$lists"
    ) && (
        [ "${TEST:-}" = full ] || export ONEPASS_TEST_CASES=3
        check $work/release -E "$long|$lists"
    )
}

# Address and undefined-behaviour sanitizers. With clang libFuzzer is in the same build, and a sixteenth of the golden file
# shows that the other compiler has the same bits; with gcc a generator stands in for libFuzzer. Kernels on the CPU have
# sanitizers of their own in the release build.
step_sanitize() {
    echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return (void)d, (void)n, 0; }' >$work/fuzz.c
    if has clang && clang -fsanitize=fuzzer,address,undefined $work/fuzz.c -o $work/fuzz >$work/probe.log 2>&1; then
        set -- -DCMAKE_C_COMPILER=clang -DONEPASS_FUZZ=ON -DONEPASS_SANITIZE=address,undefined
        [ "${TEST:-}" = full ] || set -- "$@" -DONEPASS_FUZZ_SECONDS=2
    else
        note "libFuzzer is not here, and a generator stood in for it" "apt-get install clang libclang-rt-14-dev"
        can_build "${CC:-cc}" -fsanitize=address,undefined ||
            leave_out "${CC:-cc} has no sanitizers" "apt-get install clang libclang-rt-14-dev"
        set -- -DONEPASS_SANITIZE=address,undefined
    fi
    set_aside="test_order test_skip_if_one test_accuracy test_canonical_nan test_stack test_rows_order_float test_rows_order_double
        test_vectors_order_F32 test_vectors_order_F64 test_grown_library"
    for real in f32 f64; do
        set_aside="$set_aside test_transcendental_$real test_transcendental_${real}_emulated test_transcendental_${real}_avx2"
    done
    # shellcheck disable=SC2086 # words, which echo puts on one line
    repeated="|^golden_|^(results_readable|tables_fresh|test_stack_of_workers|$(echo $set_aside | tr ' ' '|'))\$" \
        left_out=$(echo $set_aside onepass_grown | tr ' ' ';')
    [ "${TEST:-}" != full ] || repeated="|^golden" left_out= # the step clang has all of it
    [ "${TEST:-}" = full ] || export ONEPASS_TEST_CASES=75 ONEPASS_TEST_SHARE=1/16
    build $work/sanitize all $native $instrumented "-DONEPASS_LEAVE_OUT_TESTS=$left_out" "$@" || return
    export ONEPASS_TEST_QUICK=1 UBSAN_OPTIONS=print_stacktrace=1
    # A search for leaks takes seconds at the end of each process on some machines. On the CPU only accumulators allocate,
    # and what the CUDA engine keeps is counted by its own tests.
    leaks='^(test_accumulator|test_accumulator_bytes|fuzz_driver|fuzz_state)$'
    ASAN_OPTIONS=detect_leaks=0 check $work/sanitize -E "$leaks$repeated" &&
        ASAN_OPTIONS=detect_leaks=1 check $work/sanitize -R "$leaks"
}

# With clang, its OpenMP runtime and that runtime's tool for the sanitizer, Archer: under gcc the sanitizer does not
# see what libgomp synchronises and reports races that are none. First a planted race must be found.
step_thread() {
    need clang clang libomp-dev libclang-rt-14-dev
    clang -g -O1 -fopenmp -fsanitize=thread tests/planted_race.c -o $work/planted_race >$work/probe.log 2>&1 ||
        leave_out "clang has no OpenMP or no thread sanitizer" "apt-get install libomp-dev libclang-rt-14-dev"
    runtime=$(ldd $work/planted_race | awk '/libomp/ { print $3 }')
    archer=$(dirname "$(readlink -f "$runtime")")/libarcher.so
    [ -e "$archer" ] || archer=libarcher.so
    export OMP_TOOL_LIBRARIES="$archer" TSAN_OPTIONS=ignore_noninstrumented_modules=1 ONEPASS_TEST_QUICK=1
    $work/planted_race >$work/probe.log 2>&1 ||
        leave_out "the thread sanitizer reports a race where there is none" "is Archer, libarcher.so, here?"
    ! $work/planted_race race >$work/probe.log 2>&1 && grep -q "data race" $work/probe.log ||
        { echo "a planted race was not found" && return 1; }
    programs="losses order rows accumulator arguments tensors asking cuda_host_preparation cuda_host_launches cuda_host_rows"
    programs="$programs cuda_host_workspaces cuda_host_threads"
    # Of rows one program runs here, in 1 CPU second more, and they are compiled in 15 fewer.
    soon=
    [ "${TEST:-}" = full ] || export ONEPASS_TEST_CASES=75 soon=-DONEPASS_BITS_ONLY=rows
    build $work/thread "$(echo " $programs" | sed 's/ / test_/g')" $native $instrumented $soon -DCMAKE_C_COMPILER=clang \
        -DONEPASS_SANITIZE=thread &&
        check $work/thread -R "^test_($(echo "$programs" | tr ' ' '|'))\$"
}

# The other compiler, optimising: no warnings, and the same bits.
step_clang() {
    need clang clang
    export ONEPASS_TEST_QUICK=1
    # shellcheck disable=SC2086 # an option or none
    build $work/clang all $native -DCMAKE_C_COMPILER=clang &&
        check $work/clang -R '^(golden|golden_shared|test_arguments|test_tensors|test_asking)$'
}

# What ptxas makes of the kernels: no local memory, few spills.
step_kernels() {
    PATH=$PATH:/usr/local/cuda/bin
    need nvcc nvidia-cuda-toolkit
    [ "${TEST:-}" = full ] || export ARCHITECTURES=75 UNITS="gaussian_nll nll"
    JOBS=$jobs tests/check_kernels.sh
}

# has_python_h: whether an extension of the interpreter `python` can be compiled.
has_python_h() {
    "$python" -c 'import os, sysconfig; os.stat(sysconfig.get_paths()["include"] + "/Python.h")' 2>/dev/null
}

# The tool and the package for `python`, with the objects of the release build, for the steps python and tool, which run
# side by side: the first of them builds.
build_for_python() {
    set -- "onepass_tool onepass_oracle_shared"
    if has_python_h; then
        set -- "$1 onepass_python" -DONEPASS_PYTHON=ON -DPython3_EXECUTABLE="$(realpath -s "$python")"
    fi
    (flock 9 && build $work/release "$@") 9>$work/release.lock
}

# The package in the tree, with the objects of the release build. The step wheel has it as users get it.
step_python() {
    find_python torch numpy hypothesis
    has_python_h || leave_out "Python.h is not here" "apt-get install python3-dev"
    build_for_python || return
    "$python" -c "import torch._dynamo, torch._inductor.compile_fx" # compiled once, and not by each of pytest's processes
    # Tests that are about threads ask for so many; small tensors took a quarter more CPU seconds with two than with one.
    # PyTorch's compiler makes no vectors of what is around our operators, which took it 5 CPU seconds.
    [ "${TEST:-}" = full ] || export ONEPASS_TEST_QUICK=1 OMP_NUM_THREADS=1 TORCHINDUCTOR_VEC_ISA_OK=0
    PYTHONPATH=$work/release/python run_pytest tests/python
}

# The tool of the release build, its bits beside the package's; and, with broken and random files, that of the sanitize
# step, if it is there, which watches itself. TEST=full gives it whole files too, but for what is about numbers.
step_tool() {
    find_python numpy hypothesis safetensors ml_dtypes
    build_for_python || return
    export ONEPASS_TOOL=$work/release/cli/onepass PYTHONPATH=$work/release/python
    whole_files=tests/cli/test_files.py
    [ "${TEST:-}" = full ] || export ONEPASS_TEST_QUICK=1 whole_files=
    run_pytest tests/cli || return
    [ ! -x $work/sanitize/cli/onepass ] ||
        ASAN_OPTIONS=detect_leaks=0 ONEPASS_TEST_QUICK=1 ONEPASS_TOOL=$work/sanitize/cli/onepass run_pytest $whole_files \
            tests/cli/test_broken_files.py tests/cli/test_random.py tests/cli/test_outputs.py \
            -k "not (written_by_torch or infinity or gradients or test_types or numpys_version or number_of_threads or windows)"
}

# The package as users get it: a wheel, in an environment that has nothing else, with the objects of the release build.
# make wheel does so with all kernels.
step_wheel() {
    find_python scikit_build_core
    as_in_release=
    for option in NATIVE=OFF CUDA=OFF TESTS=ON BENCH=ON EXAMPLES=ON; do
        as_in_release="$as_in_release -C cmake.define.ONEPASS_$option"
    done
    export CMAKE_GENERATOR="${CMAKE_GENERATOR:-Unix Makefiles}"
    # shellcheck disable=SC2086 # options are words
    (flock 9 && JOBS=$jobs tests/check_wheel.sh "$python" $work/wheel --no-build-isolation -C build-dir=$work/release \
        $as_in_release) 9>$work/release.lock
}

# The same bits on the other architecture, and with the instruction sets that this machine does not have, emulated.
step_cross() { JOBS=$jobs tests/cross.sh; }

sources() {
    find ${*:-include src cli bench examples tests python} -name '*.[ch]' -o -name '*.cu' -o -name '*.cpp' | sort
}

# cppcheck need not find Python's headers, but should know which of their macros return. TEST=full has it read the tests.
step_lint() {
    need cppcheck cppcheck
    folders="include src cli bench examples python"
    [ "${TEST:-}" != full ] || folders="$folders tests"
    # shellcheck disable=SC2046 # file names here have no blanks
    cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --std=c11 --inline-suppr \
        -I include -I src -I tests -I cli -I bench --suppressions-list=tests/cppcheck.txt -j "$jobs" \
        -DPy_RETURN_NONE='return NULL' -DPy_RETURN_TRUE='return NULL' -DPy_RETURN_FALSE='return NULL' \
        $(sources $folders | grep '\.c$')
}

step_format() {
    need clang-format clang-format
    # shellcheck disable=SC2046
    clang-format --dry-run --Werror $(sources)
}

# ---------------------------------------------------------------- the run

heading() {
    case $1 in
    release) echo "every instruction set of this machine, every test, the CUDA engine on the CPU included" ;;
    sanitize) echo "address and undefined-behaviour sanitizers, libFuzzer; quick tests" ;;
    thread) echo "the thread sanitizer, quick tests" ;;
    clang) echo "a build without warnings, the same bits" ;;
    kernels) echo "nvcc's machine code: few spills and no local memory" ;;
    python) echo "the Python package's tests" ;;
    tool) echo "the command-line tool, driven as a person would" ;;
    wheel) echo "the wheel, installed in an empty environment" ;;
    cross) echo "the same bits on the other architecture, emulated" ;;
    lint) echo "cppcheck" ;;
    format) echo "clang-format has nothing to change" ;;
    esac
}

for step in ${*:-$usual_steps}; do
    case " $all_steps " in *" $step "*) ;; *)
        echo "run_all.sh: no step \"$step\"; there are: $all_steps" >&2
        exit 2
        ;;
    esac
done
steps=" ${*:-$usual_steps} "

# What a step needs of others, if they run at all: the release build, the sanitize step's tool.
needs() {
    case $1 in
    python | wheel | cross) echo release ;;
    tool) echo release sanitize ;;
    esac
}

# run_step STEP: the step and, in build-test/results, its line of the table. What a step exports ends with its shell.
run_step() {
    step=$1
    export NOTES=$results/$step.notes
    : >"$NOTES"
    start=$(date +%s)
    (trap 'times >$results/$step.times' EXIT && "step_$step")
    case $? in
    0) result=passed ;;
    77) result="left out" ;;
    *) result=FAILED ;;
    esac
    cpu=$(awk -F '[ms ]+' 'NR == 2 { print int($1 * 60 + $2 + $3 * 60 + $4) }' $results/$step.times)
    printf '%-10s %5d s %6d CPU s   %s\n' "$step" $(($(date +%s) - start)) "$cpu" "$result" >$results/$step
}

# lane STEP...: those steps that are wanted, one after the other, each as soon as it has what it needs. Says when one
# begins and when it has ended.
lane() {
    for step in "$@"; do
        case $steps in *" $step "*) ;; *) continue ;; esac
        for other in $(needs "$step"); do
            case $steps in *" $other "*) ;; *) continue ;; esac
            while [ ! -e "$results/$other" ]; do sleep 1; done
        done
        echo "begins $step"
        run_step "$step" >$logs/$step.log 2>&1
        echo "ended $step"
    done
}

title() { printf '\n=== %s: %s\n' "$1" "$(heading "$1")"; }

results=$work/results logs=$work/logs
rm -rf $results $logs
mkdir -p $results $logs
case $steps in
*[a-z]" "[a-z]*)
    if [ "$jobs" -eq 1 ]; then
        lane $steps
    else
        lane release python &
        lane sanitize thread clang kernels lint format wheel cross tool &
        wait
    fi | while read -r what step; do
        if [ "$what" = begins ]; then
            printf '\n... %s\n' "$step"
        else
            title "$step"
            cat $logs/$step.log
        fi
    done
    ;;
*) # one alone is watched
    title $steps
    run_step $steps
    ;;
esac

printf '\n=== summary\n'
for step in $steps; do
    cat $results/$step
    sort -u $results/$step.notes | sed "s/^/$step: /" >>$results/left_out
done
[ "${TEST:-}" = full ] ||
    echo "other steps than release: all instruction sets, every test, every kernel (make test-full)" >>$results/left_out
has nvidia-smi && echo "what needs a GPU (make gpu)" >>$results/left_out ||
    echo "what needs a GPU (make gpu, on a machine that has one)" >>$results/left_out
printf '\nLeft out:\n'
cat $results/left_out

# What failed comes last, where it is looked for.
failed=0
for step in $steps; do
    grep -q 'FAILED$' $results/$step || continue
    failed=1
    [ -e $logs/$step.log ] || continue # one alone was watched
    printf '\n%s failed, as %s says:\n' "$step" "$logs/$step.log"
    grep -E '^(FAILED|ERROR|E  ) |\*\*\*|(error|ERROR): ' $logs/$step.log | tail -n 30
    echo ...
    tail -n 10 $logs/$step.log
done
exit $failed
