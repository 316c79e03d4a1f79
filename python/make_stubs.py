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
from onepass._catalog import ROWS, losses_of
from onepass._contract import contract_of

FOLDER = pathlib.Path(__file__).resolve().parent / "onepass"
TENSOR, ARRAY, NUMBER, MASK = "Tensor", "_Array", "_Number", "_Mask"
LABELS, REAL = "_Labels", "_Real"
FLAGS = ("log_input", "full", "log_target", "broadcast_weight", "inplace", "return_lse", "return_z_loss",
         "return_accuracy", "return_entropy")
NO, YES = "Literal[False]", "Literal[True]"  # flags that tell what comes back
EACH, ANY = 'Literal["none"]', "str"  # reductions, beside those to a number


def type_of(argument, operand, reduction, parameter):
    """What an argument may be where the operands are of type `operand`."""
    name = argument.name
    if name == "reduction":
        return reduction
    if name in ("size_average", "reduce"):
        return "bool | None" if reduction == ANY else "None"
    if name == "inplace" and operand == ARRAY:
        return NO
    if name in FLAGS:
        return "bool"
    if name in ("ignore_index", "labels", "divisor", "dtype", "softcap"):
        return {"ignore_index": "SupportsIndex", "labels": TENSOR if operand == TENSOR else LABELS,
                "divisor": f"{TENSOR} | {REAL} | NDArray[Any] | None" if operand == TENSOR else
                           f"{REAL} | NDArray[Any] | None",
                "dtype": "torch.dtype | None" if operand == TENSOR else "DTypeLike | None",
                "softcap": f"{parameter} | None"}[name]
    if name == "name":
        return "str"
    if name == "var":
        return f"{operand} | {REAL}"
    if name == "mask":
        return f"{TENSOR if operand == TENSOR else MASK} | None"
    if argument.default is None:
        return f"{operand} | None"
    required = argument.default is argument.empty and argument.kind is not argument.VAR_KEYWORD
    return operand if required else parameter


def signature(arguments, operand, reduction=ANY, parameter="SupportsFloat", asked=None, known=None,
              needed="reduction"):
    """Its text. What is needed must be given if that is asked, by name or by position. What is known of an argument
    comes before what its name tells."""
    known = known or {}
    words, by_name, is_before = [], False, True
    for argument in arguments:
        asks = asked and argument.name == needed
        if not by_name and (asks and asked == "by name" or argument.kind is argument.KEYWORD_ONLY):
            words.append("*")
            by_name = True
        stars = "**" if argument.kind is argument.VAR_KEYWORD else ""
        is_needed = asks or argument.default is argument.empty or (asked == "by position" and is_before)
        default = "" if is_needed else f" = {argument.default!r}".replace("'", '"')
        type_name = known.get(argument.name) or type_of(argument, operand, reduction, parameter)
        annotation = "" if argument.name == "self" else f": {type_name}"
        words.append(f"{stars}{argument.name}{annotation}{default}")
        is_before = is_before and argument.name != needed
    return ", ".join(words)


def array_signatures(name, arguments):
    """Of a function of arrays, with its results. A reduction that is written out tells a number from an array, and is
    given by position only after all arguments before it; any other string may mean either."""
    (reduction,) = (argument for argument in arguments if argument.name == "reduction")
    contract = contract_of(losses_of(name)[0][0]["name"])
    reduced = "_ReducedOrBatch" if contract.has_batchmean else "_Reduced", NUMBER
    usual, other = ((EACH, ARRAY), reduced) if reduction.default == "none" else (reduced, (EACH, ARRAY))
    before = arguments[:arguments.index(reduction)]
    ways = [] if reduction.kind is reduction.KEYWORD_ONLY else ["by position"]
    if not ways or any(argument.default is not argument.empty for argument in before):
        ways.append("by name")
    yield signature(arguments, ARRAY, usual[0]), usual[1]
    for way in ways:
        yield signature(arguments, ARRAY, other[0], asked=way), other[1]
    yield signature(arguments, ARRAY), f"{NUMBER} | {ARRAY}"


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
    """A function of tensors, and of arrays."""
    arguments = list(inspect.signature(getattr(onepass, name)).parameters.values())
    if name == "value_and_grad":
        kinds = [(signature(arguments, TENSOR), f"tuple[{TENSOR}, {TENSOR}]"),
                 (signature(arguments, ARRAY, known={"target": f"{ARRAY} | {LABELS}"}), f"tuple[{NUMBER}, {ARRAY}]")]
    else:
        kinds = [(signature(arguments, TENSOR), TENSOR), *array_signatures(name, arguments)]
    return [line for words, result in kinds for line in ["@overload", *definition(name, words, result)]]


def row_function_stub(name):
    """The same of a loss over rows. Without a flag that asks for more it is one result."""
    arguments = list(inspect.signature(getattr(onepass, name)).parameters.values())
    flags = [argument.name for argument in arguments if argument.name.startswith("return_")]
    kinds = []
    for operand, result in ((TENSOR, TENSOR), (ARRAY, ARRAY if name == "log_prob" else "Any")):
        known = {} if operand == TENSOR or name == "log_prob" else {"target": f"{ARRAY} | {LABELS}"}
        kinds.append((signature(arguments, operand, known={**known, **{flag: NO for flag in flags}}), result))
        if flags == ["return_entropy"]:
            kinds += [(signature(arguments, operand, asked=way, known={flags[0]: YES}, needed=flags[0]),
                       f"tuple[{result}, {result}]") for way in ("by position", "by name")]
        if flags:
            kinds.append((signature(arguments, operand, known=known), "Any"))
    return [line for words, result in kinds for line in ["@overload", *definition(name, words, result)]]


def module_stub(name):
    module = getattr(onepass.nn, name)
    made = list(inspect.signature(module.__init__).parameters.values())
    forward = list(inspect.signature(module.forward).parameters.values())
    parameter = "float" if name == "HuberLoss" else "SupportsFloat"  # which asks for one, as PyTorch's does
    kept = [argument for argument in made[1:] if argument.name not in ("reduction", "size_average", "reduce")]
    lines = [f"class {name}(_Loss):"]
    lines += [f"    {argument.name}: {type_of(argument, TENSOR, ANY, parameter)}" for argument in kept]
    lines += definition("__init__", signature(made, TENSOR, parameter=parameter), "None", "    ")
    for method in ("forward", "__call__"):
        lines += definition(method, signature(forward, TENSOR), "Any" if name == "CrossEntropyLoss" else TENSOR, "    ")
    return lines


def stubs():
    """The text of each file."""
    made = "# Made by python/make_stubs.py of the package's signatures."
    number = f"{NUMBER}: TypeAlias = numpy.floating[Any]"
    real = f"{REAL}: TypeAlias = float | {NUMBER} | numpy.integer[Any] | Fraction | Decimal"
    functions = [made, "", "from decimal import Decimal", "from fractions import Fraction",
                 "from typing import Any, Literal, SupportsFloat, SupportsIndex, overload", "", "import numpy",
                 "import torch", "from numpy.typing import DTypeLike, NDArray", "from torch import Tensor",
                 "from typing_extensions import TypeAlias", "", *names(onepass.functional.__all__), "", number, real,
                 f"{ARRAY}: TypeAlias = NDArray[numpy.floating[Any]]",
                 f"{MASK}: TypeAlias = NDArray[numpy.bool_] | NDArray[numpy.uint8]",
                 f"{LABELS}: TypeAlias = NDArray[numpy.int64] | NDArray[numpy.int32] | NDArray[numpy.uint8]",
                 '_Reduced: TypeAlias = Literal["mean", "sum"]',
                 '_ReducedOrBatch: TypeAlias = Literal["mean", "sum", "batchmean"]', ""]
    functions += [line for name in onepass.functional.__all__
                  for line in (row_function_stub if name in ROWS else function_stub)(name)]
    modules = [made, "", "from decimal import Decimal", "from fractions import Fraction",
               "from typing import Any, SupportsFloat, SupportsIndex", "", "import numpy", "import torch",
               "from numpy.typing import NDArray", "from torch import Tensor",
               "from torch.nn.modules.loss import _Loss", "from typing_extensions import TypeAlias", "",
               "from ._linear_modules import *", "from ._vector_modules import *", "",
               *names(onepass.nn.__all__), "", number, real]
    written = onepass._linear_modules.__all__ + onepass._vector_modules.__all__
    modules += [line for name in onepass.nn.__all__ if name not in written for line in ["", *module_stub(name)]]
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
