#!/bin/sh
# The kernels' machine code: fails if a kernel has a stack frame of its own, uses local memory or spills more than 22
# registers, any of which costs trips to memory that the source does not show. Losses of many operations may spill some,
# which stay in the cache: with more registers fewer warps would fit. On sm_75 msle of 16-bit numbers spills 22. Some
# variants may have more, for a reason: tests/kernels_allowed.txt lists them, and what they have is shown.
#
#   tests/check_kernels.sh [FOLDER]
#
#   FOLDER    where a build has left the PTX of the units, mse_f32.ptx and so on; it is used where no source is newer
#
# Needs nvcc, which ONEPASS_NVCC may name. Flags are those of src/cuda/kernels.cmake. ARCHITECTURES are those to look at,
# by default all that the build knows, and UNITS the units, by default all. JOBS is the number of processes; with two of
# them it takes a minute or two an architecture.
set -u
cd "$(dirname "$0")/.." || exit 2

self=tests/check_kernels.sh
nvcc=${ONEPASS_NVCC:-nvcc}
work=build-test/kernels

# assemble ARCHITECTURE NAME [PTX]: machine code of PTX, or of NAME.ptx, and what ptxas says of it.
assemble() {
    "$nvcc" -O3 --fmad=false -cubin -arch="sm_$1" -Xptxas -v -o "$work/$2_sm_$1.cubin" "$work/${3:-$2.ptx}" \
        >"$work/$2_sm_$1.log" 2>&1 && return
    cat "$work/$2_sm_$1.log"
    echo "ptxas failed on $2.ptx for sm_$1"
    return 1
}

# read_log LOG: how many kernels, the most registers of one, bytes of stack frames and local memory, bytes of spills;
# then a line for each kernel that has such, which ends with "(allowed)" if the table has it.
read_log() {
    awk '
        FNR == NR {
            if ($0 !~ /^#/) {
                frame_of[$1] = $2
                spills_of[$1] = $3
            }
            next
        }
        function is_allowed(   variant) {
            for (variant in frame_of)
                if (substr(name, length(name) - length(variant)) == "_" variant && frame <= frame_of[variant] + 0 &&
                    spill <= spills_of[variant] + 0)
                    return 1
            return 0
        }
        function number_before(word) { return match($0, "[0-9]+ bytes " word) ? substr($0, RSTART) + 0 : 0 }
        /Compiling entry function/ { split($0, quoted, "\047"); name = quoted[2]; kernels++ }
        /stack frame/ {
            frame = number_before("stack frame")
            spill = number_before("spill stores") + number_before("spill loads")
        }
        /Used [0-9]+ registers/ {
            match($0, "Used [0-9]+")
            registers = substr($0, RSTART + 5) + 0
            if (registers > most) most = registers
            memory = number_before("lmem") + number_before("cumulative stack size")
            if (memory > frame) frame = memory
            if (frame > 88 || (frame > 0 && spill == 0))
                bad = bad sprintf("%s: %d bytes of stack frame or local memory, %d of spills, %d registers%s\n", name,
                                  frame, spill, registers, is_allowed() ? " (allowed)" : "")
            frames += frame
            spills += spill
            frame = spill = 0
            described++
        }
        END {
            # A ptxas with other words must not pass for one without spills.
            if (kernels == 0 || described != kernels)
                bad = bad sprintf("what ptxas says is not understood: %d kernels, %d described\n", kernels, described)
            printf "%d %d %d %d\n%s", kernels, most, frames, spills, bad
        }' tests/kernels_allowed.txt "$1"
}

# Two that must be found: an array that is indexed by data, and more numbers at once than the kernel may have registers.
plant() {
    cat >$work/planted.cu <<'END'
extern "C" __global__ void planted_frame(int *x) {
    int local[64];
    for (int i = 0; i < 64; i++)
        local[i] = x[i];
    for (int i = 0; i < 64; i++)
        x[i] = local[x[i] & 63];
}
extern "C" __global__ void __launch_bounds__(1024, 2) planted_spill(volatile int *x) {
    int kept[96];
#pragma unroll
    for (int i = 0; i < 96; i++)
        kept[i] = x[i];
#pragma unroll
    for (int i = 0; i < 96; i++)
        x[i] = kept[95 - i];
}
END
    # shellcheck disable=SC2086 # an option or none
    "$nvcc" -ptx -arch="compute_$lowest" $any_compiler -o $work/planted.ptx $work/planted.cu >$work/planted.log 2>&1 &&
        assemble "$lowest" planted || { cat $work/planted.log && return 1; }
    read_log "$work/planted_sm_$lowest.log" >$work/planted.read
    if ! grep -q '^planted_frame: [1-9]' $work/planted.read || grep -q allowed $work/planted.read ||
        ! grep -q '^planted_spill: .*, [1-9][0-9]* of spills' $work/planted.read; then
        cat "$work/planted_sm_$lowest.log" $work/planted.read
        echo "a planted stack frame and a planted spill were not both found"
        return 1
    fi
    echo "a planted stack frame and a planted spill were found"
}

# ptx_of NAME ARCHITECTURE: of which architecture the PTX is that becomes machine code for this one, as in
# src/cuda/kernels.cmake.
ptx_of() {
    own=
    if [ "${1%_f32}" = "$1" ]; then
        : # doubles are not copied so
    elif grep -q "\"loss/${1%_f32}\.h\"" src/row_losses.def; then
        own=80
    elif grep -q "\"loss/${1%_f32}\.h\"" src/vector_losses.def; then
        own=80
        grep -Eq 'VECTOR_LOSS.*(SOFTMAX|CARRIED)' "src/loss/${1%_f32}.h" || own='80 90'
    fi
    of=$lowest
    for newer in $own; do
        [ "$newer" -gt "$2" ] || [ "$newer" -lt "$of" ] || of=$newer
    done
    echo "$of"
}

# bring_ptx NAME FOLDER PTX ARCHITECTURE: the PTX of one unit and compute type (mse_f32), from the folder or made anew.
bring_ptx() {
    if [ -n "$2" ] && [ -e "$2/$3" ] &&
        [ -z "$(find src include \( -name '*.h' -o -name '*.def' -o -name '*.cu' \) -newer "$2/$3")" ]; then
        cp "$2/$3" "$work/$3"
        return
    fi
    unit=${1%_f??} real=${1##*_f}
    source=src/cuda/unit.cu
    [ "$unit" != every_loss ] || source=src/cuda/every_loss.cu
    ! grep -q "\"loss/$unit\.h\"" src/row_losses.def || source=src/cuda/row_unit.cu
    ! grep -q "\"loss/$unit\.h\"" src/vector_losses.def || source=src/cuda/vector_unit.cu
    # shellcheck disable=SC2086 # an option or none
    "$nvcc" -std=c++17 -O3 --fmad=false $any_compiler -I src -I include "-DONEPASS_REAL_F$real" \
        "-DONEPASS_UNIT_HEADER=\"loss/$unit.h\"" -ptx -arch="compute_$4" -o "$work/$3" $source
}

# prepare ARCHITECTURES NAME FOLDER: PTX, and machine code for each of the architectures, which stand apart by commas.
prepare() {
    made=
    for architecture in $(echo "$1" | tr , ' '); do
        of=$(ptx_of "$2" "$architecture") ptx=$2.ptx
        [ "$of" = "$lowest" ] || ptx=$2_$of.ptx
        case " $made " in *" $of "*) ;; *) bring_ptx "$2" "$3" "$ptx" "$of" || return 1 ;; esac
        made="$made $of"
        assemble "$architecture" "$2" "$ptx" || return 1
    done
}

# report ARCHITECTURE REAL: a line of the table; what is wrong, or allowed, goes to a list.
report() {
    cat "$work"/*_"$2_sm_$1.log" >"$work/all.log"
    read_log "$work/all.log" >$work/read
    read -r kernels registers frames spills <$work/read
    printf '%-14s %-6s %8d %16d %14d %8d\n' "sm_$1" "$2" "$kernels" "$registers" "$frames" "$spills"
    sed -e 1d -e "s/^/sm_$1, $2, /" $work/read >>$work/found
}

# ---------------------------------------------------------------- the run

command -v "$nvcc" >/dev/null 2>&1 || { echo "check_kernels.sh: nvcc is not here" >&2 && exit 2; }
any_compiler=
! "$nvcc" --help | grep -q -e -allow-unsupported-compiler || any_compiler=-allow-unsupported-compiler
if [ "${1:-}" = --prepare ]; then
    lowest=${2%%,*}
    prepare "$2" "$3" "${4:-}"
    exit
fi
mkdir -p $work
rm -f $work/*.log $work/*.cubin $work/*.ptx

known=" $("$nvcc" --list-gpu-arch | tr '\n' ' ') "
architectures=
for architecture in ${ARCHITECTURES:-75 80 90 100 120}; do
    case $known in *" compute_$architecture "*) architectures="$architectures $architecture" ;; esac
done
# shellcheck disable=SC2086 # words
set -- "${1:-}" $architectures
lowest=$2
list=$(echo "$architectures" | sed -e 's/^ //' -e 's/ /,/g')
units=${UNITS:-$(sed -n 's/^#include "loss\/\(.*\)\.h"$/\1/p' src/losses.def src/row_losses.def src/vector_losses.def) every_loss}

plant || exit 1
for unit in $units; do
    echo "$list ${unit}_f32${1:+ $1}"
    echo "$list ${unit}_f64${1:+ $1}"
done | xargs -P "${JOBS:-2}" -L 1 $self --prepare || exit 1

: >$work/found
printf '%-14s %-6s %8s %16s %14s %8s\n' architecture type kernels "most registers" "stack, bytes" spills
for architecture in $architectures; do
    report "$architecture" f32
    report "$architecture" f64
done
sed -n 's/ (allowed)$//p' $work/found >$work/allowed
[ ! -s $work/allowed ] || { echo "allowed by tests/kernels_allowed.txt:" && cat $work/allowed; }
! grep -v ' (allowed)$' $work/found
