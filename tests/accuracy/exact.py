"""The catalogue's formulas, exactly: in decimal numbers of as many digits as it takes.

The plainest form of a formula is good enough, however much of it cancels, where the digits reach from 1 down to the
square of the smallest number of the type, and many further: 200 for float, of which those are 90, and 800 for double,
of which they are 648. So nothing here knows how a loss is computed.
"""

import decimal
import functools
import os
import re
import sys
from decimal import Decimal

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs"))

from make_losses import formula

# Exponents without an end to speak of; what overflows all the same is infinite. What has no value raises.
CONTEXT = decimal.Context(rounding=decimal.ROUND_HALF_EVEN, Emax=10**15, Emin=-10**15,
                          traps=[decimal.InvalidOperation, decimal.DivisionByZero])


class Undefined(Exception):
    """The formula has no value there."""


# ------------------------------------------------------ elementary functions --


@functools.lru_cache(100)  # since the formulas of a loss ask for the same ones time and again
def exp_to(digits, x):
    return x.exp()


@functools.lru_cache(100)
def log_to(digits, x):
    return x.ln()


def exp(x):
    """Beyond all types, and all their squares, any number will do, and soon."""
    if abs(x) > 10**6:
        return Decimal(10) ** (-10**6 if x < 0 else 10**6)
    return exp_to(decimal.getcontext().prec, x)


def log(x):
    return log_to(decimal.getcontext().prec, x)


def power(x, y):
    """Of a negative number there is none, whatever y is."""
    return exp(y * log(x)) if x else x ** y


def log1p(x):
    tiny = Decimal(10) ** -decimal.getcontext().prec
    return x - x * x / 2 if abs(x) < tiny else log(1 + x)


def sigmoid(x):
    return 1 / (1 + exp(-x)) if x > 0 else exp(x) / (1 + exp(x))


def softplus(x):
    return max(x, Decimal(0)) + log1p(exp(-abs(x)))


def tanh(x):
    y = exp(-2 * abs(x))
    return (1 - y) / (1 + y) * sign(x)


def sign(x):
    return Decimal((x > 0) - (x < 0))


def pi():
    """Machin's: 16 atan(1/5) - 4 atan(1/239)."""
    def atan_of_inverse(n):
        total, power, k = Decimal(0), Decimal(1) / n, 0
        while total + power / (2 * k + 1) != total:
            total += (-1) ** k * power / (2 * k + 1)
            power, k = power / (n * n), k + 1
        return total
    return 16 * atan_of_inverse(5) - 4 * atan_of_inverse(239)


FUNCTIONS = {"abs": Decimal.copy_abs, "sign": sign, "exp": exp, "log": log, "log1p": log1p, "sqrt": Decimal.sqrt,
         "tanh": tanh, "sigmoid": sigmoid, "softplus": softplus, "max": max, "min": min, "pow": power}

# Numbers of a formula that are a double's digits of what they stand for.
CONSTANTS = {"0.6931471805599453": lambda: Decimal(2).ln(), "0.9189385332046728": lambda: (2 * pi()).ln() / 2,
             "6.283185307179586": lambda: 2 * pi()}


def number(text):
    """What a number in a formula stands for, to the present number of digits."""
    key = text, decimal.getcontext().prec
    if key not in NUMBERS:
        NUMBERS[key] = CONSTANTS.get(text, lambda: Decimal(text))()
    return NUMBERS[key]


NUMBERS = {}

# ------------------------------------------------------------------ formulas --


def marked(text, rounded):
    """With a call of rounded(place in the list, part) around each part; first the longer ones, which may have others in
    them."""
    for part in sorted(rounded, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.]){re.escape(part)}(?![\w.(])", f"rounded({rounded.index(part)}, {part})", text)
    return text


class Formula:
    """A formula of the catalogue as a function of numbers by these names; `short` has names that it may use for others.

    `rounded` lists parts of it that may be rounded once: evaluate() takes a function of the part's place in the list
    and its number, which says what becomes of it.
    """

    def __init__(self, text, names, short=(), rounded=()):
        text = marked(text, rounded)
        for name, part in dict(short).items():
            text = re.sub(rf"\b{name}\b", lambda _: f"({marked(part, rounded)})", text)
        self.text, self._names = text, names
        tokens = [f"number('{token}')" if token[0].isdigit() else token for token in formula.TOKEN.findall(text)]
        self._code = compile(formula.translation(tokens), f"<{text}>", "eval")

    def evaluate(self, numbers, digits, rounded=lambda part, number: number):
        """Its value for these numbers, which are exact."""
        names = dict(zip(self._names, map(Decimal, numbers)), rounded=rounded, number=number, **FUNCTIONS)
        with decimal.localcontext(CONTEXT) as context:
            context.prec = digits
            names["x"] = names["p"] - names["t"]
            try:
                return Decimal(eval(self._code, names))
            except (decimal.InvalidOperation, decimal.DivisionByZero) as error:
                raise Undefined(self.text) from error
