#!/bin/sh
# tests/make_venv.sh FOLDER ARGUMENT...: a virtual environment in which pip has installed what the arguments say. Its
# modules are compiled when they are first used: compiling all of PyTorch and transformers took 38 CPU seconds of 77.
set -eu
folder=$1
shift
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check "$@"
