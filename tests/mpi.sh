#!/bin/sh
# The MPI example as its recipe has it: mpicc, then 1, 2, 3 and 7 ranks, which must print the same bits as one call over
# the whole. Left out, with a reason, where there is no MPI.
# usage: tests/mpi.sh FOLDER_OF_THE_LIBRARY FOLDER_TO_WORK_IN
set -eu
library=$1 work=$2
root=$(cd "$(dirname "$0")/.." && pwd)
left_out=77 # CTest's SKIP_RETURN_CODE

for program in mpicc mpirun; do
    command -v $program >/dev/null || {
        echo "left out: there is no $program (Debian: apt-get install openmpi-bin libopenmpi-dev, or mpich)"
        exit $left_out
    }
done

# Open MPI runs as root, and with more ranks than cores, if it is told to; MPICH does so anyway.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_base_warn_component_unused=0
export LD_LIBRARY_PATH="$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

mkdir -p "$work"
mpicc -O2 -Wall -Wextra -Werror "$root/examples/16_mpi.c" -I "$root/include" -L "$library" -lonepass -o "$work/16_mpi"
: >"$work/means"
for ranks in 1 2 3 7; do
    mpirun -n $ranks "$work/16_mpi" >"$work/line" || {
        echo "mpirun failed with $ranks ranks"
        exit 1
    }
    cat "$work/line"
    sed 's/.*the mean is //' "$work/line" >>"$work/means"
done
[ "$(sort -u "$work/means" | wc -l)" -eq 1 ] && [ "$(wc -l <"$work/means")" -eq 4 ] || {
    echo "the bits depend on the number of ranks"
    exit 1
}
cc "$root/tests/mpi_whole.c" -I "$root/include" -L "$library" -lonepass -o "$work/whole"
[ "$("$work/whole")" = "$(head -n 1 "$work/means")" ] || {
    echo "the bits are not those of one call"
    exit 1
}
echo "the same bits for 1, 2, 3 and 7 ranks, and of one call"
