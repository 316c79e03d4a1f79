"""The catalogue's formulas in PyTorch's operations: what is written for people, translated.

A formula is an expression in p, t, v (the third operand), x = p - t and the parameters: numbers, + - * /, unary -,
parentheses, comparisons, condition ? yes : no, and the functions of _FUNCTIONS. The translation is a plain function of
tensors, which PyTorch differentiates and transforms as it does any other, so that a new loss needs none of its own.
"""

import ast
import math
import re

import torch
import torch.nn.functional as F

from ._documentation import in_python


def translate(formula, parameters):
    """A function of (p, t, v, *parameters) that computes the formula."""
    try:
        tree = ast.parse(in_python(formula), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"the formula {formula!r} is not understood: {error.msg}") from None
    code = ast.unparse(Translation(formula, {"p", "t", "v", "x", *parameters}).visit(tree))
    arguments = ", ".join(("p", "t", "v", *parameters))
    difference = "    x = p - t\n" if re.search(r"\bx\b", formula) else ""
    source = f"def value({arguments}):\n{difference}    return {code}\n"
    namespace = {f"_{name}": function for name, function in _FUNCTIONS.items()}
    exec(compile(source, f"<{formula}>", "exec"), namespace)
    return namespace["value"]


class Translation(ast.NodeTransformer):
    """Functions by the names that they have here, and choices as one of them: their conditions are tensors."""

    def __init__(self, formula, names):
        self.formula, self.names = formula, names

    def visit_IfExp(self, node):
        condition, yes, no = (ast.unparse(self.visit(part)) for part in (node.test, node.body, node.orelse))
        return ast.parse(f"_choose({condition}, lambda: {yes}, lambda: {no}, p)", mode="eval").body

    def visit_Call(self, node):
        name = ast.unparse(node.func)
        if name not in _FUNCTIONS or name == "choose":
            raise ValueError(f"the formula {self.formula!r}: there is no function {name!r}")
        return ast.Call(ast.Name(f"_{name}"), [self.visit(argument) for argument in node.args], [])

    def visit_Name(self, node):
        if node.id not in self.names:
            raise ValueError(f"the formula {self.formula!r}: {node.id!r} is unknown")
        return node


# ------------------------------------------------------------- the functions --


def is_number(x):
    return isinstance(x, (int, float))


def of_either(of_tensor, of_number):
    """A function of a tensor, or of a number where a formula has but numbers there."""
    return lambda x: of_number(x) if is_number(x) else of_tensor(x)


def greater(a, b):
    """With a number it is a clamp, whose slope at the kink is the tensor's."""
    if is_number(a) and is_number(b):
        return max(a, b)
    if is_number(a):
        a, b = b, a
    return torch.clamp(a, min=b) if is_number(b) else torch.maximum(a, b)


def smaller(a, b):
    if is_number(a) and is_number(b):
        return min(a, b)
    if is_number(a):
        a, b = b, a
    return torch.clamp(a, max=b) if is_number(b) else torch.minimum(a, b)


def power(base, exponent):
    return base**exponent if is_number(base) and is_number(exponent) else torch.pow(base, exponent)


def choose(condition, yes, no, like):
    """`like` has the type that two numbers take. Where the condition is of numbers, the other side has no value: it may
    divide by 0."""
    if isinstance(condition, (bool, int, float)):
        return yes() if condition else no()
    yes, no = yes(), no()
    if is_number(yes) and is_number(no):
        yes = torch.full_like(like, yes)
    return torch.where(condition, yes, no)


def softplus(x):
    """Not F.softplus, which is x itself from 20 on."""
    return math.log1p(math.exp(-abs(x))) + max(x, 0) if is_number(x) else -F.logsigmoid(-x)


_FUNCTIONS = {
    "abs": of_either(torch.abs, abs),
    "sign": of_either(torch.sign, lambda x: (x > 0) - (x < 0)),
    "exp": of_either(torch.exp, math.exp),
    "log": of_either(torch.log, math.log),
    "log1p": of_either(torch.log1p, math.log1p),
    "sqrt": of_either(torch.sqrt, math.sqrt),
    "tanh": of_either(torch.tanh, math.tanh),
    "sigmoid": of_either(torch.sigmoid, lambda x: 1 / (1 + math.exp(-x))),
    "softplus": softplus,
    "max": greater,
    "min": smaller,
    "pow": power,
    "choose": choose,
}
