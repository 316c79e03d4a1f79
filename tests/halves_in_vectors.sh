#!/bin/sh
# That no loop over halves computes one element at a time: it would have the same bits, four times later, and gcc says
# nothing of it. Whoever converts single halves to floats does so.
#
#   tests/halves_in_vectors.sh OBJDUMP OBJECT...     objects of the CPU engine in float, for Arm
objdump=$1
shift
"$objdump" -d --no-show-raw-insn "$@" | awk '
    /^[0-9a-f]+ </ { name = $2; sums = name ~ /_f16>:$/; functions += sums }
    sums && /\tfcvt\ts[0-9]+, h[0-9]+/ && !found[name]++ { print "one element at a time: " name; failed++ }
    END { print functions - failed " passed, " failed + 0 " failed"; exit failed || !functions }'
