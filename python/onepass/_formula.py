"""The catalogue's formulas in PyTorch's operations: what is written for people, translated.

A formula is an expression in p, t, v (the third operand), x = p - t and the parameters: numbers, + - * /, unary -,
parentheses, comparisons, condition ? yes : no, and the functions of _FUNCTIONS. The translation is a plain function of
tensors, which PyTorch differentiates and transforms as it does any other, so that a new loss needs none of its own.
"""

import math
import re

import torch
import torch.nn.functional as F

_TOKEN = re.compile(r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[A-Za-z_]\w*)|"
                    r"(?P<sign><=|>=|==|!=|[-+*/()<>?:,]))")
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def translate(formula, parameters):
    """A function of (p, t, v, *parameters) that computes the formula."""
    code = Parser(formula, {"p", "t", "v", "x", *parameters}).translation()
    arguments = ", ".join(("p", "t", "v", *parameters))
    difference = "    x = p - t\n" if re.search(r"\bx\b", formula) else ""
    source = f"def value({arguments}):\n{difference}    return {code}\n"
    namespace = {f"_{name}": function for name, function in _FUNCTIONS.items()}
    exec(compile(source, f"<{formula}>", "exec"), namespace)
    return namespace["value"]


class Parser:
    """By recursive descent, a method for each rank of operators; each returns the Python code of what it read."""

    def __init__(self, formula, names):
        self.formula, self.names = formula, names
        self.tokens, at = [], 0
        while at < len(formula.rstrip()):
            found = _TOKEN.match(formula, at)
            if found is None:
                raise self.error(f"{formula[at:at + 10]!r} is not understood")
            self.tokens.append((found.lastgroup, found[found.lastgroup]))
            at = found.end()
        self.tokens.append(("end", ""))

    def error(self, what):
        return ValueError(f"the formula {self.formula!r}: {what}")

    def next_is(self, *signs):
        return self.tokens[0][0] == "sign" and self.tokens[0][1] in signs

    def take(self):
        return self.tokens.pop(0)[1]

    def expect(self, sign):
        if not self.next_is(sign):
            raise self.error(f"{sign!r} is expected before {self.tokens[0][1]!r}")
        self.take()

    def translation(self):
        code = self.choice()
        if self.tokens[0][0] != "end":
            raise self.error(f"{self.tokens[0][1]!r} is one too many")
        return code

    def choice(self):
        condition = self.comparison()
        if not self.next_is("?"):
            return condition
        self.take()
        yes = self.choice()
        self.expect(":")
        return f"_choose({condition}, lambda: {yes}, lambda: {self.choice()}, p)"

    def comparison(self):
        code = self.sum()
        if self.next_is(*_COMPARISONS):
            code = f"({code} {self.take()} {self.sum()})"
        return code

    def sum(self):
        code = self.product()
        while self.next_is("+", "-"):
            code = f"({code} {self.take()} {self.product()})"
        return code

    def product(self):
        code = self.signed()
        while self.next_is("*", "/"):
            code = f"({code} {self.take()} {self.signed()})"
        return code

    def signed(self):
        if self.next_is("-"):
            self.take()
            return f"(-{self.signed()})"
        return self.atom()

    def atom(self):
        kind, text = self.tokens[0]
        if self.next_is("("):
            self.take()
            code = self.choice()
            self.expect(")")
            return code
        if kind == "number":
            return self.take()
        if kind != "name":
            raise self.error(f"{text!r} is not expected here" if text else "it ends too early")
        self.take()
        if self.next_is("("):
            return self.call(text)
        if text not in self.names:
            raise self.error(f"{text!r} is unknown")
        return text

    def call(self, name):
        if name not in _FUNCTIONS or name == "choose":
            raise self.error(f"there is no function {name!r}")
        self.take()
        arguments = [self.choice()]
        while self.next_is(","):
            self.take()
            arguments.append(self.choice())
        self.expect(")")
        return f"_{name}({', '.join(arguments)})"


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
