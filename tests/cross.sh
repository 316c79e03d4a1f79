#!/bin/sh
# The same bits on the other architecture, by a cross compiler and user-mode emulation; and on this one with the
# instruction sets that this machine does not have. Builds in build-cross/; the release build of build-test/ is used.
#
# Emulation is slow. Unless TEST=full, each emulated set checks one of 32 parts of the golden file, and all types of
# every loss; that the bits in there are right is proven elsewhere. The bytes of accumulators are compared too. JOBS is
# the number of processes.
set -u
cd "$(dirname "$0")/.." || exit 2
work=build-test/emulated

# emulator ARCHITECTURE: the command, as words.
emulator() {
    echo "qemu-$1 -cpu max"
    [ "$1" = "$(uname -m)" ] || echo "-L /usr/$1-linux-gnu"
}

# run ARCHITECTURE FOLDER SET PROGRAM [ARGUMENT...]: one test under one instruction set.
run() {
    architecture=$1 folder=$2 set=$3 program=$4
    log=$work/${architecture}_${set}_$program.log
    shift 4
    # shellcheck disable=SC2046 # words
    if ONEPASS_ISA=$set $(emulator "$architecture") "$folder/tests/$program" "$@" >"$log" 2>&1; then
        echo "$set, $program: $(tail -n 1 "$log")"
    else
        cat "$log"
        echo "$set, $program: FAILED"
        return 1
    fi
}

# list ARCHITECTURE FOLDER EXCEPT: what to emulate, a line each: every set that emulation offers and EXCEPT does not name.
list() {
    # shellcheck disable=SC2046
    sets=$($(emulator "$1") "$2/tests/list_instruction_sets") || return
    part=0
    for set in $sets; do
        case " $3 " in *" $set "*) continue ;; esac
        if [ "${TEST:-}" = full ]; then
            for program in "golden --check tests/golden.txt" test_order test_losses test_known_results test_weights \
                test_conversions; do
                echo "$1 $2 $set $program"
            done
        else
            part=$((part + 1))
            echo "$1 $2 $set golden --check tests/golden.txt $part/32"
        fi
    done
    echo "$1 $2 $set test_accumulator_bytes"
}

leave_out() {
    echo "$1 is not here (apt-get install $2)" | tee -a "${NOTES:-/dev/null}"
    exit 77
}

# ---------------------------------------------------------------- the run

if [ "${1:-}" = --run ]; then
    shift
    run "$@"
    exit
fi
own=$(uname -m)
case $own in
aarch64) other=x86_64 packages="gcc-x86-64-linux-gnu libc6-dev-amd64-cross" ;;
*) other=aarch64 packages="gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;;
esac
command -v $other-linux-gnu-gcc >/dev/null || leave_out $other-linux-gnu-gcc "$packages"
command -v qemu-$other >/dev/null || leave_out qemu-$other qemu-user
programs="golden list_instruction_sets test_accumulator_bytes"
[ "${TEST:-}" != full ] || programs="$programs test_losses test_known_results test_weights test_conversions test_order"
rm -rf $work
mkdir -p $work

# What qemu does not emulate would be compiled for nothing; SSE2, whose multiply-adds are calls, takes the emulator twice
# as long as AVX2, and every x86 machine runs it in the release step. Loops are made of vectors with -O1, too, in half the
# time.
without= bits_only=
[ $other = aarch64 ] || [ "${TEST:-}" = full ] || without="avx512;sse2"
[ "${TEST:-}" = full ] || bits_only="avx2;neon;sve"
tests/quietly.sh build-cross/$other/configure.log cmake -S . -B build-cross/$other -DCMAKE_SYSTEM_NAME=Linux \
    -DCMAKE_SYSTEM_PROCESSOR=$other -DCMAKE_C_COMPILER=$other-linux-gnu-gcc -DONEPASS_CUDA=OFF -DONEPASS_BENCH=OFF \
    -DONEPASS_EXAMPLES=OFF "-DONEPASS_LEAVE_OUT=$without" "-DONEPASS_BITS_ONLY=$bits_only" || exit 1
# shellcheck disable=SC2086
tests/quietly.sh build-cross/$other/build.log cmake --build build-cross/$other -j "${JOBS:-2}" --target $programs || exit 1
list $other build-cross/$other "" >$work/list || exit 1
release=build-test/release
if command -v "qemu-$own" >/dev/null && [ -x $release/tests/list_instruction_sets ]; then
    list "$own" $release "$($release/tests/list_instruction_sets)" >>$work/list || exit 1
fi
[ "${TEST:-}" = full ] || export ONEPASS_TEST_QUICK=1
xargs -P "${JOBS:-2}" -L 1 "$0" --run <$work/list
