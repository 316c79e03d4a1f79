"""The catalogue's formulas as functions of numbers: Python's words for them, and infinity and NaN where C has these.

A formula has p, t, v (the third operand), x = p - t, the parameters' names, numbers, + - * /, comparisons,
condition ? yes : no, and the functions of WORDS.
"""

import math
import re

TOKEN = re.compile(r"\s*(\d+\.?\d*(?:e[-+]?\d+)?|\w+|<=|>=|==|!=|[-+*/()<>?:,])")


def function_of(formula, names):
    """A function of numbers by these names. It may divide by zero or leave a function's domain, and then raises."""
    code = compile(translation(TOKEN.findall(formula)), f"<{formula}>", "eval")
    return lambda *numbers: eval(code, WORDS, dict(zip(names, numbers)))


def translation(tokens):
    """Up to the end, or to the sign that ends parentheses or a choice. Takes the tokens that it reads."""
    words = []
    while tokens and tokens[0] not in ("?", ":", ",", ")"):
        words.append(tokens.pop(0))
        while words[-1] in ("(", ","):
            words.append(translation(tokens))
            words.append(tokens.pop(0))
    if not tokens or tokens[0] != "?":
        return " ".join(words)
    tokens.pop(0)
    yes = translation(tokens)
    tokens.pop(0)
    return f"({yes} if {' '.join(words)} else {translation(tokens)})"


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))


def softplus(x):
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


def sign(x):
    return (x > 0) - (x < 0)


WORDS = {"abs": abs, "sign": sign, "exp": math.exp, "log": math.log, "log1p": math.log1p, "sqrt": math.sqrt,
         "tanh": math.tanh, "sigmoid": sigmoid, "softplus": softplus, "max": max, "min": min, "pow": math.pow}
