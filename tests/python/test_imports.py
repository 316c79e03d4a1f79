# The package's modules import each other without a circle; an import inside a function counts.
import ast
import graphlib
import pathlib

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python" / "onepass"
MODULES = {path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", "."): path
           for path in PACKAGE.rglob("*.py")}


def imports_of(name, path):
    """The package's modules that one of them imports, anywhere in its text."""
    folder = name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
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
