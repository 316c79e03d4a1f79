#!/bin/sh
# Everything that `make gpu` does, on a machine with an NVIDIA GPU: builds in build-gpu/, runs, and ends with a table.
# Needs cmake, a C compiler and nvcc; for the Python package and the benchmark also python3 with PyTorch. Nothing is
# downloaded.
#
#   tests/gpu.sh [OPTION...] [FOLDER]
#
#   FOLDER                where the benchmark leaves its results, seen from the repository's root; else bench/results
#   --quick               leaves out inputs of gigabytes; the benchmark takes a short look
#   --no-sanitizer        without compute-sanitizer
#   --no-bench            without the benchmark
#   --own-architecture    kernels for this GPU alone: a quicker build, but not the library that users get
#   --only=STEP,...       some steps of: build cpu gpu python fuzz tool memcheck racecheck initcheck synccheck bench;
#                         without "build" they take what stands in build-gpu/
#
# A step whose tools are not there is left out, and the table says why. A step that fails does not stop the others,
# except that nothing runs without a build. JOBS is the number of processes to build with.
#
# Estimates for an H200 with 16 cores, in seconds: build 60 (nvcc), cpu 20, gpu 60 (a third of it the CPU's part in 2^30
# and more elements), python 130, fuzz 30, tool 30, each sanitizer 20, bench 200. Most steps have a limit of several
# times that, so that a kernel which hangs does not hold the GPU.
set -u
cd "$(dirname "$0")/.." || exit 2

jobs=${JOBS:-$(nproc 2>/dev/null || echo 2)}
folder=build-gpu
results=bench/results
quick= sanitizer=yes bench=yes architectures=all
all_steps="build cpu gpu python fuzz tool memcheck racecheck initcheck synccheck bench"
steps=$all_steps
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=--quick ;;
    --no-sanitizer) sanitizer= ;;
    --no-bench) bench= ;;
    --own-architecture) architectures=own ;;
    --only=*) steps=$(echo "${1#--only=}" | tr ',' ' ') ;;
    -*)
        echo "gpu.sh: no option \"$1\"; there are --quick, --no-sanitizer, --no-bench, --own-architecture and --only" >&2
        exit 2
        ;;
    *) results=$1 ;;
    esac
    shift
done

for step in $steps; do
    case " $all_steps " in *" $step "*) ;; *)
        echo "gpu.sh: no step \"$step\"; there are: $all_steps" >&2
        exit 2
        ;;
    esac
done

# ---------------------------------------------------------------- what must be here

has() { command -v "$1" >/dev/null 2>&1; }

give_up() {
    echo "make gpu: $1" >&2
    exit 1
}

# Where NVIDIA's tools are if the PATH does not say.
PATH=$PATH:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer
export PATH

has nvidia-smi || give_up "this machine has no NVIDIA GPU, or no driver for it (nvidia-smi is not here)."
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d '. ')
case $capability in
'' | *[!0-9]*) give_up "this machine has no NVIDIA GPU that can be used (nvidia-smi names none)." ;;
esac
has cmake || give_up "cmake is not here."
has nvcc || give_up "nvcc, the compiler of the CUDA toolkit, is not here, so there would be no kernels to test."
[ $architectures = all ] || architectures=$capability
[ -z "$quick" ] || export ONEPASS_TEST_QUICK=1
mkdir -p $folder
nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv,noheader
nvcc --version | sed -n 's/^.*\(release.*\)/nvcc, \1/p'

# ---------------------------------------------------------------- what the steps share

reason= # why the running step is left out

leave_out() {
    reason=$1
    return 77
}

# within SECONDS COMMAND...: ends a command that takes too long.
within() {
    seconds=$1
    shift
    timeout -k 10 "$seconds" "$@"
    status=$?
    [ $status -ne 124 ] || echo "ended after $seconds s: $*"
    return $status
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

# ---------------------------------------------------------------- the steps

step_build() {
    quietly $folder/configure.log cmake -S . -B $folder -DCMAKE_BUILD_TYPE=Release -DONEPASS_CUDA=ON \
        -DONEPASS_CUDA_ARCHITECTURES="$architectures" -DONEPASS_TESTS=ON -DONEPASS_BENCH=OFF -DONEPASS_EXAMPLES=OFF \
        -DONEPASS_PYTHON="$(has_python_headers && echo ON || echo OFF)" || return 1
    grep 'onepass:' $folder/configure.log
    quietly $folder/build.log within 600 cmake --build $folder -j "$jobs" --target onepass_shared golden golden_shared \
        test_losses test_known_results test_weights test_conversions test_order test_cuda onepass_tool onepass_oracle_shared $(has_python_headers && echo onepass_python) || return 1
    ls -lL $folder/src/libonepass.so
}

has_python_headers() {
    has python3 && python3 -c 'import os, sysconfig
raise SystemExit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))'
}

# The CPU's bits are what the GPU is compared with, and this is another CPU than the one that most work is done on.
step_cpu() {
    (cd $folder && within 300 ctest --output-on-failure --no-tests=error -j "$jobs" \
        -R '^(golden|golden_.*|test_losses|test_known_results|test_weights|test_conversions|test_order)$' -E amalgamation)
}

step_gpu() {
    within 600 $folder/tests/test_cuda
    status=$?
    # There is a GPU and there is nvcc, so a test that skips itself has failed.
    [ $status -ne 77 ] || echo "the test found nothing to test, although this machine has a GPU and nvcc"
    [ $status -eq 0 ]
}

# sanitize TOOL SECTION...: the reduced list, or these sections of it. They misuse nothing, so that a report is a mistake
# of the library.
sanitize() {
    [ $sanitizer ] || leave_out "by --no-sanitizer" || return
    has compute-sanitizer || leave_out "compute-sanitizer is not here" || return
    tool=$1 log=$folder/$1.log
    shift
    barriers= # more of them than the tool knows of by itself
    [ "$tool" != synccheck ] || barriers="--num-cuda-barriers 512"
    # shellcheck disable=SC2086 # an option or none
    within 120 compute-sanitizer --tool "$tool" $barriers --error-exitcode 9 --print-limit 20 \
        $folder/tests/test_cuda --reduced "$@" >"$log" 2>&1
    status=$?
    ! grep -q 'Device not supported' "$log" ||
        leave_out "compute-sanitizer does not support this GPU or machine" || return
    if [ $status -eq 0 ]; then
        grep -E 'SUMMARY|passed, ' "$log"
        # The tool must have been at work.
        grep -q 'SUMMARY' "$log" || { tail -n 20 "$log" && echo "$tool gave no summary" && return 1; }
    else
        head -n 60 "$log"
        echo "..."
        tail -n 20 "$log"
        echo "all of it: $log"
        return 1
    fi
}

step_memcheck() { sanitize memcheck; }
# Not the threads: under this tool eight of them at once do not end. Nor clusters: it takes what a warp's threads have
# written before they met, and one of them has told at a barrier in memory, for a race with whoever has waited there.
step_racecheck() { sanitize racecheck cases shapes scale rows vectors graphs rows_graphs vectors_graphs workspace; }
# Not the slices of accumulators: the host copies the memory that has their sums as a whole, with the gaps between them.
step_initcheck() {
    sanitize initcheck cases shapes scale skip_if_one reciprocals rows rows_clusters rows_graphs rows_threads \
        rows_edges rows_shards vectors vectors_graphs graphs threads workspace
}
step_synccheck() { sanitize synccheck; }

export ONEPASS_ORACLE=$folder/tests/oracle/libonepass_oracle.so

# The files of tests/python but one, as many at a time as there are pairs of cores: what a test waits for is a GPU, a
# compiler or an import. The other judges microseconds, and has the machine to itself. A file that left out all of its
# tests ends with 5.
python_tests() {
    # shellcheck disable=SC2016 # for the shells that xargs begins
    xargs -P "$1" -I FILE sh -c '
        log=$0/$(basename "$1" .py).log
        timeout -k 10 400 python3 -m pytest "$1" -q -rs -p no:cacheprovider >"$log" 2>&1
        status=$?
        [ $status -ne 5 ] || status=0
        [ $status -eq 0 ] || tail -n 60 "$log"
        grep SKIPPED "$log"
        echo "$(basename "$1"): $(tail -n 1 "$log")"
        exit $status' $folder FILE
}

# The Python package, built in-tree: what needs a GPU, and the rest with this machine's PyTorch.
step_python() {
    has_python_headers || leave_out "python3, or its headers, are not here" || return
    for module in pytest torch numpy hypothesis; do
        python3 -c "import $module" >/dev/null 2>&1 || leave_out "python3 has no $module" || return
    done
    export PYTHONPATH=$folder/python
    alone=tests/python/test_better.py
    find tests/python -name 'test_*.py' ! -path $alone | OMP_NUM_THREADS=2 python_tests $(((jobs + 1) / 2))
    status=$?
    echo $alone | python_tests 1 && return $status
}

# Random calls of the package's losses over rows and vectors: the GPU's bits against the CPU's.
step_fuzz() {
    has_python_headers || leave_out "python3, or its headers, are not here" || return
    python3 -c 'import torch' >/dev/null 2>&1 || leave_out "python3 has no PyTorch" || return
    seconds=30
    [ -z "$quick" ] || seconds=5
    PYTHONPATH=$folder/python within 120 python3 tests/fuzz_gpu.py --device cuda --seconds $seconds
}

# The command-line tool: its files on the GPU, and all the rest as elsewhere.
step_tool() {
    for module in pytest numpy hypothesis safetensors ml_dtypes; do
        has python3 && python3 -c "import $module" >/dev/null 2>&1 || leave_out "python3 has no $module" || return
    done
    workers=
    python3 -c "import xdist" >/dev/null 2>&1 && workers="-n $jobs"
    # shellcheck disable=SC2086 # an option or none
    ONEPASS_TOOL=$folder/cli/onepass PYTHONPATH=$folder/python within 300 python3 -m pytest tests/cli -q -rs \
        -p no:cacheprovider $workers
}

step_bench() {
    [ $bench ] || leave_out "by --no-bench" || return
    has python3 || leave_out "python3 is not here" || return
    python3 -c 'import torch' >/dev/null 2>&1 || leave_out "python3 has no PyTorch" || return
    mkdir -p "$results"
    # shellcheck disable=SC2086 # an option or none
    PYTHONPATH=$folder/python within 600 python3 -m onepass.bench --device cuda --cases all --json "$results/" $quick
}

# ---------------------------------------------------------------- the run

heading() {
    case $1 in
    build) echo "build: the library with kernels for ${architectures}, and the tests" ;;
    cpu) echo "cpu: the bits of this machine's CPU, with each of its instruction sets" ;;
    gpu) echo "gpu: the GPU against the CPU's bits, graphs, threads, contexts, refusals" ;;
    memcheck) echo "memcheck: loads and stores out of bounds or misaligned" ;;
    racecheck) echo "racecheck: races in shared memory" ;;
    initcheck) echo "initcheck: reads of memory that nobody wrote" ;;
    synccheck) echo "synccheck: barriers that are not reached by all" ;;
    fuzz) echo "fuzz: random losses over rows and vectors, the GPU's bits against the CPU's" ;;
    tool) echo "tool: the command-line tool's tests" ;;
    python) echo "python: the package's tests, on the CPU and on the GPU" ;;
    bench) echo "bench: onepass compared with PyTorch, JAX and the memory's limit" ;;
    esac
}

: >$folder/summary
failures=0
built=
case " $steps " in *" build "*) ;; *) built=yes ;; esac
for step in $steps; do
    printf '\n=== %s\n' "$(heading $step)"
    start=$(date +%s)
    # In a shell of its own, so that what a step exports ends with it.
    (
        if [ $step = build ] || [ $built ]; then
            step_$step
        else
            leave_out "there is no build"
        fi
        status=$?
        echo "$reason" >$folder/reason
        exit $status
    )
    status=$?
    reason=$(cat $folder/reason)
    seconds=$(($(date +%s) - start))
    if [ $status -eq 0 ]; then
        result=passed
        [ $step != build ] || built=yes
    elif [ $status -eq 77 ] && [ -n "$reason" ]; then
        result="left out: $reason"
    else
        result=FAILED
        failures=$((failures + 1))
    fi
    echo "$step: $result, $seconds s"
    printf '%-10s %4d s  %s\n' $step "$seconds" "$result" >>$folder/summary
done

printf '\n=== summary\n'
cat $folder/summary
[ $failures -eq 0 ] || { echo "$failures failed" && exit 1; }
