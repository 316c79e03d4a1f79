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


def declared(tree, owner):
    """The functions of a stub, and what they stand for."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from declared(node, getattr(owner, node.name))
        elif isinstance(node, ast.FunctionDef) and not isinstance(getattr(owner, node.name, None), property) and \
                not (node.name.startswith("__") and node.name != "__init__"):
            yield node, getattr(owner, node.name)


def defaults_of(arguments):
    """By name, as source."""
    usual = arguments.args[len(arguments.args) - len(arguments.defaults):]
    pairs = [*zip(usual, arguments.defaults), *zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return {one.arg: ast.unparse(default) for one, default in pairs if default is not None}


@pytest.mark.parametrize("module", ["accumulator", "distributed", "distributions", "functional", "linear", "margins",
                                    "nn", "patch", "regions", "vectors"])
def test_stubs_are_the_signatures(module):
    """Names, what is given by keyword alone, and defaults; and that none is missing."""
    package = importlib.import_module(f"onepass.{module}")
    tree = ast.parse((INSTALLED / f"{module}.pyi").read_text())
    for node, function in declared(tree, package):
        known = inspect.signature(function).parameters.values()
        is_one_of_several = any(getattr(one, "id", None) == "overload" for one in node.decorator_list)
        named = [one.arg for one in (*node.args.args, *node.args.kwonlyargs) if one.arg != "cls"]
        assert [one.name for one in known if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)] == named, node.name
        by_name = [one.name for one in known if one.kind is one.KEYWORD_ONLY]
        assert by_name == [one.arg for one in node.args.kwonlyargs][-len(by_name):] or not by_name, node.name
        assert is_one_of_several or len(by_name) == len(node.args.kwonlyargs), node.name
        defaults = defaults_of(node.args)
        expected = {one.name: repr(one.default) for one in known if one.default is not one.empty}
        # One of several signatures may ask for what the others leave out.
        assert defaults.items() <= expected.items() if is_one_of_several else defaults == expected, node.name
    names = {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert set(getattr(package, "__all__", names)) == names


@pytest.mark.parametrize("name", ["py.typed", "__init__.pyi", "accumulator.pyi", "distributed.pyi", "patch.pyi"])
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
