#!/bin/sh
# tests/quietly.sh LOG COMMAND...: shows a command's output only if it fails; on a terminal, meanwhile, its last line.
set -u
log=$1
shift
mkdir -p "$(dirname "$log")"
: >"$log"
watcher=
if [ -t 2 ]; then
    while sleep 0.5; do
        printf '\r\033[K%.78s' "$(tail -n 1 "$log")" >&2
    done &
    watcher=$!
fi
"$@" >"$log" 2>&1
status=$?
if [ -n "$watcher" ]; then
    kill "$watcher"
    printf '\r\033[K' >&2
fi
if [ $status -ne 0 ]; then
    tail -n 60 "$log"
    echo "failed: $* (all of its output: $log)"
fi
exit $status
