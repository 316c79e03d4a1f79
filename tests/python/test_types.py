# The types that the package declares: they are those of its signatures, they are installed, and mypy reads them.
import ast
import importlib
import inspect
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass

HERE = pathlib.Path(__file__).resolve().parent
INSTALLED = pathlib.Path(onepass.__file__).parent


def test_stubs_are_the_signatures():
    found = subprocess.run([sys.executable, HERE.parents[1] / "python" / "make_stubs.py", "--check"],
                           capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def written(tree, owner):
    """The functions of a stub that a person has written, and what they stand for."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from written(node, getattr(owner, node.name))
        elif isinstance(node, ast.FunctionDef) and not isinstance(getattr(owner, node.name, None), property) and \
                not (node.name.startswith("__") and node.name != "__init__"):
            yield node, getattr(owner, node.name)


@pytest.mark.parametrize("module", ["accumulator", "distributed", "distributions", "linear", "_linear_modules", "margins",
                                    "regions", "vectors", "_vector_modules"])
def test_written_stubs_are_the_signatures(module):
    """Names, what is given by keyword alone, and defaults."""
    package = importlib.import_module(f"onepass.{module}")
    for node, function in written(ast.parse((INSTALLED / f"{module}.pyi").read_text()), package):
        known = inspect.signature(function).parameters.values()
        for kinds, arguments in (((inspect.Parameter.POSITIONAL_OR_KEYWORD,), node.args.args),
                                 ((inspect.Parameter.KEYWORD_ONLY,), node.args.kwonlyargs)):
            named = [one.arg for one in arguments if one.arg != "cls"]
            assert [one.name for one in known if one.kind in kinds] == named, node.name
        defaults = [ast.unparse(one) for one in (*node.args.defaults, *node.args.kw_defaults) if one is not None]
        expected = [repr(one.default) for one in known if one.default is not one.empty]
        is_one_of_several = any(getattr(one, "id", None) == "overload" for one in node.decorator_list)
        # One of several signatures may ask for what the others leave out.
        assert defaults == (expected[len(expected) - len(defaults):] if is_one_of_several else expected), node.name


@pytest.mark.parametrize("name", ["py.typed", "__init__.pyi", "accumulator.pyi", "distributed.pyi", "distributions.pyi",
                                  "functional.pyi", "nn.pyi", "patch.pyi", "linear.pyi", "_linear_modules.pyi",
                                  "margins.pyi", "regions.pyi", "vectors.pyi", "_vector_modules.pyi"])
def test_they_are_installed(name):
    assert (INSTALLED / name).read_bytes() == (HERE.parents[1] / "python" / "onepass" / name).read_bytes()


# What mypy reads of PyTorch in a quick run: what the declarations name, 5 CPU seconds instead of 30.
PARTS_OF_TORCH = """[mypy-torch.*]
follow_imports = skip
[mypy-torch,torch._tensor,torch._C,torch.types,torch.nn,torch.nn.modules,torch.nn.modules.module,torch.nn.modules.loss]
follow_imports = silent
[mypy-torch.distributed,torch._C._distributed_c10d]
follow_imports = silent
"""


def test_mypy_finds_them(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not here, which reads the types")
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\n" + (PARTS_OF_TORCH if os.environ.get("ONEPASS_TEST_QUICK") == "1" else ""))
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", settings, "--strict", "--no-incremental", "--cache-dir", os.devnull,
         HERE / "typed_use.py"],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "MYPYPATH": str(INSTALLED.parent)})
    assert found.returncode == 0, found.stdout + found.stderr
