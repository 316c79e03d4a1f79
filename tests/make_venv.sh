#!/bin/sh
# tests/make_venv.sh FOLDER ARGUMENT...: a virtual environment in which pip has installed what the arguments say.
set -eu
folder=$1
shift
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
