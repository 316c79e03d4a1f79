#!/usr/bin/env python3
"""The types of the functions and modules, for type checkers: many of them are made when the package is loaded.

    PYTHONPATH=build/python python3 python/make_stubs.py            writes functional.pyi and nn.pyi anew
    PYTHONPATH=build/python python3 python/make_stubs.py --check    says which are not the package's, and ends with 1

The signatures are the package's own; what type an argument has, its name tells.
"""

import inspect
import pathlib
import sys

del sys.path[0]  # this folder, whose package is without its extension

import onepass
import onepass.nn
import torch

FOLDER = pathlib.Path(__file__).resolve().parent / "onepass"
TENSOR, ARRAY, NUMBER, MASK = "Tensor", "_Array", "_Number", "_Mask"
FLAGS = ("log_input", "full", "log_target", "broadcast_weight")
REDUCED, EACH = "_Reduced", 'Literal["none"]'


def type_of(argument, operand, reduction, parameter):
    """What an argument may be where the operands are of type `operand`."""
    name = argument.name
    if name == "reduction":
        return reduction
    if name in ("size_average", "reduce"):
        return "bool | None" if operand == TENSOR else "None"
    if name in FLAGS:
        return "bool"
    if name == "name":
        return "str"
    if name == "var":
        return f"{operand} | float"
    if name == "mask":
        return f"{TENSOR if operand == TENSOR else MASK} | None"
    if argument.default is None:
        return f"{operand} | None"
    required = argument.default is argument.empty and argument.kind is not argument.VAR_KEYWORD
    return operand if required else parameter


def signature(arguments, operand, reduction="str", parameter="float", asked=False):
    """Its text. With `asked`, the reduction must be given, by name."""
    words, by_name = [], False
    for argument in arguments:
        asks = asked and argument.name == "reduction"
        if not by_name and (asks or argument.kind is argument.KEYWORD_ONLY):
            words.append("*")
            by_name = True
        stars = "**" if argument.kind is argument.VAR_KEYWORD else ""
        default = "" if argument.default is argument.empty or asks else f" = {argument.default!r}".replace("'", '"')
        annotation = "" if argument.name == "self" else f": {type_of(argument, operand, reduction, parameter)}"
        words.append(f"{stars}{argument.name}{annotation}{default}")
    return ", ".join(words)


def definition(name, words, result, indent=""):
    line = f"{indent}def {name}({words}) -> {result}: ..."
    if len(line) <= 120:
        return [line]
    return [f"{indent}def {name}(", *wrapped(words, indent + "    "), f"{indent}) -> {result}: ..."]


def wrapped(words, indent):
    """In lines that end between two arguments."""
    lines = [indent]
    for word in words.split(", "):
        if len(lines[-1]) + len(word) > 118:
            lines.append(indent)
        lines[-1] += word + ", "
    return [line.rstrip() for line in lines[:-1]] + [lines[-1][:-2]]


def names(words):
    return ["__all__ = [", *wrapped(", ".join(f'"{word}"' for word in words), "    "), "]"]


def function_stub(name):
    """A function of tensors; of arrays, an array without a reduction and else a number."""
    arguments = list(inspect.signature(getattr(onepass, name)).parameters.values())
    parameter = "float | Tensor" if name.removesuffix("_loss") in onepass.functional.GENERATED else "float"
    if name == "value_and_grad":
        kinds = [(signature(arguments, TENSOR), f"tuple[{TENSOR}, {TENSOR}]"),
                 (signature(arguments, ARRAY), f"tuple[{NUMBER}, {ARRAY}]")]
    else:
        (default,) = (argument.default for argument in arguments if argument.name == "reduction")
        kinds = [(signature(arguments, TENSOR, parameter=parameter), TENSOR),
                 (signature(arguments, ARRAY, REDUCED, asked=default == "none"), NUMBER),
                 (signature(arguments, ARRAY, EACH, asked=default != "none"), ARRAY)]
    return [line for words, result in kinds for line in ["@overload", *definition(name, words, result)]]


def module_stub(name):
    module = getattr(onepass.nn, name)
    made = list(inspect.signature(module.__init__).parameters.values())
    forward = list(inspect.signature(module.forward).parameters.values())
    parameter = "float" if hasattr(torch.nn, name) else "float | Tensor"
    kept = [argument for argument in made[1:] if argument.name not in ("reduction", "size_average", "reduce")]
    lines = [f"class {name}(_Loss):"]
    lines += [f"    {argument.name}: {type_of(argument, TENSOR, 'str', parameter)}" for argument in kept]
    lines += definition("__init__", signature(made, TENSOR, parameter=parameter), "None", "    ")
    for method in ("forward", "__call__"):
        lines += definition(method, signature(forward, TENSOR), TENSOR, "    ")
    return lines


def stubs():
    """The text of each file."""
    made = "# Made by python/make_stubs.py of the package's signatures."
    functions = [made, "", "from typing import Any, Literal, overload", "", "import numpy",
                 "from numpy.typing import NDArray", "from torch import Tensor",
                 "from typing_extensions import TypeAlias", "", *names(onepass.functional.__all__), "",
                 f"{NUMBER}: TypeAlias = numpy.floating[Any]",
                 f"{ARRAY}: TypeAlias = NDArray[numpy.floating[Any]]",
                 f"{MASK}: TypeAlias = NDArray[numpy.bool_] | NDArray[numpy.uint8]",
                 f'{REDUCED}: TypeAlias = Literal["mean", "sum", "batchmean"]', ""]
    functions += [line for name in onepass.functional.__all__ for line in function_stub(name)]
    modules = [made, "", "from torch import Tensor", "from torch.nn.modules.loss import _Loss", "",
               *names(onepass.nn.__all__)]
    modules += [line for name in onepass.nn.__all__ for line in ["", *module_stub(name)]]
    return {FOLDER / "functional.pyi": functions, FOLDER / "nn.pyi": modules}


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__.strip())
    stale = 0
    for path, lines in stubs().items():
        text = "\n".join(lines) + "\n"
        if path.exists() and path.read_text() == text:
            continue
        stale += 1
        if check:
            print(f"{path.name}: not the package's signatures; python3 python/make_stubs.py writes it anew")
        else:
            path.write_text(text)
            print(f"{path.name}: written")
    sys.exit(1 if check and stale else 0)


if __name__ == "__main__":
    main()
