# The package's modules import each other without a circle; an import inside a function counts. A fork knows all that
# are imported inside of one.
import ast
import graphlib
import pathlib

from onepass import _forking

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python" / "onepass"
MODULES = {path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", "."): path
           for path in PACKAGE.rglob("*.py")}


def imports_of(name, path):
    """The package's modules that one of them imports, anywhere in its text."""
    return imports_in(ast.parse(path.read_text()), name)


def late_imports_of(name, path):
    """Those of them that it imports inside a function."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            yield from imports_in(node, name)


def imports_in(tree, name):
    folder = name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = folder[:len(folder) + 1 - node.level] + (node.module.split(".") if node.module else [])
            candidates = [".".join(base), *(".".join([*base, alias.name]) for alias in node.names)]
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            candidates = [one.removeprefix("onepass.") for one in names if one.startswith("onepass.")]
        else:
            continue
        yield from (one for one in candidates if one in MODULES)


def test_no_circle():
    graph = {name: set(imports_of(name, path)) for name, path in MODULES.items()}
    assert "_contract" in graph["functional"] and "_torch" in graph["functional"]
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_forks_wait_for_late_imports():
    """The programs of onepass.bench have no threads of their own."""
    late = {one for name, path in MODULES.items() if not name.startswith("bench") for one in late_imports_of(name, path)}
    assert late == {name for side in _forking.LATE.values() for name in side}
