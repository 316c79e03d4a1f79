#!/usr/bin/env python3
"""The types of the functions and modules, for type checkers. The build makes them, beside the package's files:

    PYTHONPATH=build/python python3 python/make_stubs.py build/python/onepass

The signatures are the package's own; what type an argument has, its name and its default tell. Neither PyTorch nor
NumPy need be here: of the modules, which are PyTorch's, the source is read.
"""

import ast
import inspect
import pathlib
import sys

del sys.path[0]  # this folder, whose package is without its extension

import onepass
from onepass import _generated
from onepass._catalog import CATALOG, GENERATED, ROW_CATALOG, ROWS, ROWS_GENERATED, losses_of
from onepass._contract import contract_of

HEADER = '''# Made by python/make_stubs.py of the package's signatures.

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, SupportsFloat, SupportsIndex, overload

import numpy
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor
from torch.nn import Module
from torch.nn.modules.loss import _Loss
from typing_extensions import TypeAlias

_Number: TypeAlias = numpy.floating[Any]
_Real: TypeAlias = float | _Number | numpy.integer[Any] | Fraction | Decimal
_Array: TypeAlias = NDArray[numpy.floating[Any]]
_Mask: TypeAlias = NDArray[numpy.bool_] | NDArray[numpy.uint8]
_Labels: TypeAlias = NDArray[numpy.int64] | NDArray[numpy.int32] | NDArray[numpy.uint8]
_Reduced: TypeAlias = Literal["mean", "sum"]
_ReducedOrBatch: TypeAlias = Literal["mean", "sum", "batchmean"]
_Mode: TypeAlias = Literal["binary", "multilabel", "multiclass"]
_Per: TypeAlias = Literal["batch", "class", "sample", "sample_class"]
_Distance: TypeAlias = Callable[[Tensor, Tensor], Tensor]
'''

TENSOR, ARRAY, NUMBER = "Tensor", "_Array", "_Number"
NO, YES, EACH = "Literal[False]", "Literal[True]", 'Literal["none"]'
DIVISOR = f"{TENSOR} | _Real | NDArray[Any]"

#: What an argument is by its name, whatever the operands are; with a default of None it may be that, too.
TYPES = {"name": "str", "mode": "_Mode", "per": "_Per", "size_average": "bool", "reduce": "bool", "options": "Any",
         "kwargs": "Any", "ignore_index": "SupportsIndex", "softcap": "SupportsFloat | None",
         "parameters": "SupportsFloat", "dim": "int", "chunk_rows": "int", "num_ignored": "int", "vocab_size": "int",
         "in_features": "int", "num_classes": "int", "out_features": "tuple[int, ...]", "num_items": DIVISOR,
         "num_items_in_batch": DIVISOR, "device": "torch.device | str", "loss_dtype": "torch.dtype",
         "distance_function": "_Distance"}
#: The same beside operands of either kind.
BESIDE = {TENSOR: {"dtype": "torch.dtype", "divisor": DIVISOR, "var": f"{TENSOR} | _Real"},
          ARRAY: {"dtype": "DTypeLike", "divisor": "_Real | NDArray[Any]", "var": f"{ARRAY} | _Real", "mask": "_Mask",
                  "labels": "_Labels", "inplace": NO}}
#: Where it is another.
KNOWN = {"HuberLoss": {"delta": "float"},  # which asks for one, as PyTorch's does
         "LinearCrossEntropyLoss": {"label_smoothing": "float"},
         "MultiMarginLoss": {"p": "int"}, "multi_margin_loss": {"p": "int"}}
#: The targets that a function of arrays takes, if not floats; of losses over rows labels, too.
TARGETS = {"cosine_embedding_loss": "NDArray[Any]", "multilabel_soft_margin_loss": "NDArray[Any]",
           "multi_margin_loss": "_Labels", "multilabel_margin_loss": "_Labels",
           **{name: "NDArray[Any]" for name in onepass.regions.__all__},
           **{name: f"{ARRAY} | _Labels" for name in ("value_and_grad", *ROWS)}}
TENSORS_ALONE = {*onepass.linear.__all__, "triplet_margin_with_distance_loss"}


def type_of(argument, operand, known):
    name, default = argument.name, argument.default
    if name in known:
        return known[name]
    found = BESIDE[operand].get(name) or TYPES.get(name)
    if found is None:
        by_default = {bool: "bool", str: "str", float: "SupportsFloat", int: "SupportsFloat"}
        found = operand if default is argument.empty else by_default.get(type(default), operand)
    return f"{found} | None" if default is None and not found.endswith("None") else found


# -------------------------------------------------------------------- signatures --


def signature(arguments, operand, known=None, needed=None, way=None):
    """Its text. What is needed must be given, `way` says how: by name, or by position. What is known of an argument
    comes before what else tells its type."""
    words, by_name, is_before = [], False, way == "by position"
    for argument in arguments:
        if not by_name and (argument.name == needed and way == "by name" or argument.kind is argument.KEYWORD_ONLY):
            words.append("*")
            by_name = True
        stars = "**" if argument.kind is argument.VAR_KEYWORD else ""
        is_required = argument.name == needed or is_before or argument.default is argument.empty
        default = "" if is_required else f" = {argument.default!r}".replace("'", '"')
        annotation = "" if argument.name == "self" else f": {type_of(argument, operand, known or {})}"
        words.append(f"{stars}{argument.name}{annotation}{default}")
        is_before = is_before and argument.name != needed
    return ", ".join(words)


def array_signatures(name, arguments, known):
    """Of a function of arrays, with its results. A reduction that is written out tells a number from an array, and is
    given by position only after all arguments before it; any other string may mean either."""
    (reduction,) = (argument for argument in arguments if argument.name == "reduction")
    has_batchmean = contract_of(losses_of(name)[0][0]["name"]).has_batchmean
    reduced = "_ReducedOrBatch" if has_batchmean else "_Reduced", NUMBER
    usual, other = ((EACH, ARRAY), reduced) if reduction.default == "none" else (reduced, (EACH, ARRAY))
    before = arguments[:arguments.index(reduction)]
    ways = [] if reduction.kind is reduction.KEYWORD_ONLY else ["by position"]
    if not ways or any(argument.default is not argument.empty for argument in before):
        ways.append("by name")
    known = {**known, "size_average": "None", "reduce": "None"}
    yield signature(arguments, ARRAY, {**known, "reduction": usual[0]}), usual[1]
    for way in ways:
        yield signature(arguments, ARRAY, {**known, "reduction": other[0]}, "reduction", way), other[1]
    yield signature(arguments, ARRAY), f"{NUMBER} | {ARRAY}"


def flagged_signatures(arguments, operand, known, result):
    """Of a function whose flags ask for more results; without them it is one."""
    flags = [argument.name for argument in arguments if argument.name.startswith("return_")]
    yield signature(arguments, operand, {**known, **{flag: NO for flag in flags}}), result
    if flags == ["return_entropy"]:
        for way in ("by position", "by name"):
            yield signature(arguments, operand, {**known, flags[0]: YES}, flags[0], way), f"tuple[{result}, {result}]"
    if flags:
        yield signature(arguments, operand, known), "Any"


def signatures_of(name, arguments):
    """All of a function's, with their results."""
    known = KNOWN.get(name, {})
    if name == "value_and_grad":
        yield signature(arguments, TENSOR, known), f"tuple[{TENSOR}, {TENSOR}]"
    else:
        yield from flagged_signatures(arguments, TENSOR, known, TENSOR)
    if name in TENSORS_ALONE:
        return
    known = {**known, "target": TARGETS.get(name, ARRAY)}
    if name == "value_and_grad":
        yield signature(arguments, ARRAY, known), f"tuple[{NUMBER}, {ARRAY}]"
    elif name in onepass.functional.__all__ and name not in ROWS:
        yield from array_signatures(name, arguments, known)
    else:
        yield from flagged_signatures(arguments, ARRAY, known, ARRAY if name == "log_prob" else "Any")


# ------------------------------------------------------------------------- texts --


def definition(name, words, result, indent=""):
    line = f"{indent}def {name}({words}) -> {result}: ..."
    return [line] if len(line) <= 120 else [f"{indent}def {name}(", *wrapped(words, indent + "    "),
                                            f"{indent}) -> {result}: ..."]


def wrapped(words, indent):
    """In lines that end between two arguments."""
    lines = [indent]
    for word in words.split(", "):
        if len(lines[-1]) + len(word) > 118:
            lines.append(indent)
        lines[-1] += word + ", "
    return [line.rstrip() for line in lines[:-1]] + [lines[-1][:-2]]


def text_of(names, lines):
    every = wrapped(", ".join(f'"{name}"' for name in names), "    ")
    return "\n".join([HEADER, "__all__ = [", *every, "]", "", *lines]) + "\n"


def functions_text(module):
    lines = []
    for name in module.__all__:
        found = list(signatures_of(name, list(inspect.signature(getattr(module, name)).parameters.values())))
        for words, result in found:
            lines += ["@overload"] * (len(found) > 1) + definition(name, words, result)
    return text_of(module.__all__, lines)


# ----------------------------------------------------------------------- modules --


def classes():
    """The public modules, as syntax trees: those that are written, and those that are made of the catalogue."""
    folder = pathlib.Path(onepass.__file__).parent
    sources = [(folder / f"{name}.py").read_text() for name in ("nn", "_linear_modules", "_vector_modules")]
    sources += [_generated.source_of(_generated.MODULE, CATALOG[name]) for name in GENERATED]
    sources += [_generated.source_of(_generated.ROW_MODULE, ROW_CATALOG[name]) for name in ROWS_GENERATED]
    for source in sources:
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node


def arguments_of(node, method):
    """Of a class's method, by a function that has but its signature."""
    (found,) = (one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == method)
    found.body, made = found.body[:1], {}
    exec(ast.unparse(found), {}, made)
    return list(inspect.signature(made[method]).parameters.values())


def kept_by(name, arguments):
    """What a module has of its arguments, and what it calls that."""
    out = {"self", "reduction", "size_average", "reduce"}
    if name == "LinearCrossEntropyLoss":
        out |= {"in_features", "bias", "device", "dtype"}
        yield "linear", "torch.nn.Linear"
    for argument in arguments:
        if argument.name not in out:
            called = "norm" if (name, argument.name) == ("PairwiseDistance", "p") else argument.name
            yield called, type_of(argument, TENSOR, KNOWN.get(name, {}))


def module_lines(node):
    name, made, forward = node.name, arguments_of(node, "__init__"), arguments_of(node, "forward")
    result = "Any" if name == "CrossEntropyLoss" else TENSOR
    yield f"class {name}({'_Loss' if name.endswith('Loss') else 'Module'}):"
    yield from (f"    {called}: {type_name}" for called, type_name in kept_by(name, made))
    yield from definition("__init__", signature(made, TENSOR, KNOWN.get(name)), "None", "    ")
    for method in ("forward", "__call__"):
        yield from definition(method, signature(forward, TENSOR), result, "    ")
    yield ""


def modules_text():
    nodes = list(classes())
    return text_of([node.name for node in nodes], [line for node in nodes for line in module_lines(node)])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    folder = pathlib.Path(sys.argv[1])
    for name in ("distributions", "functional", "linear", "margins", "regions", "vectors"):
        (folder / f"{name}.pyi").write_text(functions_text(getattr(onepass, name)))
    (folder / "nn.pyi").write_text(modules_text())


if __name__ == "__main__":
    main()
