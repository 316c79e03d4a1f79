#!/bin/sh
# The tests of the Python package with the oldest PyTorch, from 2.2 on, that can be installed for this Python. PyTorch
# before 2.3 knows NumPy 1 only.
set -u
cd "$(dirname "$0")/.." || exit 2
venv=build-test/venv-oldest
for torch in 2.2.2 2.3.1 2.4.1 2.5.1 2.6.0 2.7.1 2.8.0; do
    numpy='numpy<2'
    case $torch in 2.2.*) ;; *) numpy=numpy ;; esac
    rm -rf $venv
    if tests/make_venv.sh $venv "torch==$torch" "$numpy" pytest pytest-xdist hypothesis expecttest setuptools; then
        echo "PyTorch $torch"
        PYTHON=$venv/bin/python exec tests/run_all.sh python
    fi
    echo "PyTorch $torch cannot be installed here; trying the next"
done
echo "oldest_torch.sh: none could be installed" >&2
exit 1
