"""The catalogue's formulas for NumPy and JAX: what a user writes who finds no function of that name there.

What stands in a formula several times is computed once, so that nobody is beaten by a clumsy peer.
"""

import ast
import collections
import re

from .._documentation import in_python


def tree_of(formula):
    return Choices().visit(ast.parse(in_python(formula), mode="eval")).body


class Choices(ast.NodeTransformer):
    """Choices as a function of arrays."""

    def visit_IfExp(self, node):
        self.generic_visit(node)
        return ast.Call(ast.Name("where"), [node.test, node.body, node.orelse], [])


def statements(formulas):
    """Of a function that returns the formulas: first what several places share, the innermost of it first."""
    trees = [tree_of(formula) for formula in formulas]
    shared = []
    while True:
        count = collections.Counter(ast.unparse(node) for tree in trees + [tree for _, tree in shared]
                                    for node in ast.walk(tree) if isinstance(node, (ast.BinOp, ast.Call)))
        repeated = [text for text, times in count.items() if times > 1]
        if not repeated:
            break
        text, name = min(repeated, key=len), f"_{len(shared)}"
        found = ast.parse(text, mode="eval").body
        trees = [Replace(text, name).visit(tree) for tree in trees]
        shared = [(known, Replace(text, name).visit(tree)) for known, tree in shared] + [(name, found)]
    lines = [f"{name} = {ast.unparse(tree)}" for name, tree in ordered(shared)]
    return [*lines, f"return {', '.join(ast.unparse(tree) for tree in trees)}"]


class Replace(ast.NodeTransformer):
    def __init__(self, text, name):
        self.text, self.name = text, name

    def visit(self, node):
        if isinstance(node, (ast.BinOp, ast.Call)) and ast.unparse(node) == self.text:
            return ast.Name(self.name)
        return super().generic_visit(node)


def ordered(shared):
    """Each after those that it is made of."""
    done = []
    while shared:
        left = {name for name, _ in shared}
        ready = [item for item in shared if not left & set(re.findall(r"\w+", ast.unparse(item[1])))]
        done += ready
        shared = [item for item in shared if item not in ready]
    return done


def function_of(formulas, words, parameters):
    """A function of (p, t, v) that returns the formulas' arrays. `words` has the functions of a library of arrays, and
    the parameters are numbers."""
    lines = statements(formulas)
    lines = (["x = p - t"] if re.search(r"\bx\b", " ".join(lines)) else []) + lines
    source = ["def terms(p, t, v=None):", *("    " + line for line in lines)]
    namespace = {**words, **parameters}
    exec(compile("\n".join(source), f"<{formulas[0]}>", "exec"), namespace)
    return namespace["terms"]


def is_number(x):
    return isinstance(x, (bool, int, float))


def words_for(xp, dtype):
    """The functions of formulas as NumPy or JAX has them, for arrays of a type."""
    names = {"abs", "sign", "exp", "log", "log1p", "expm1", "sqrt", "tanh"}
    words = {name: getattr(xp, name) for name in names}

    def where(condition, yes, no):
        if is_number(condition):
            return yes if condition else no
        return xp.where(condition, *(xp.asarray(x, dtype) if is_number(x) else x for x in (yes, no)))

    words.update(where=where, max=xp.maximum, min=xp.minimum, pow=xp.power,
                 sigmoid=lambda x: 1 / (1 + xp.exp(-x)), softplus=lambda x: xp.logaddexp(x, xp.asarray(0, dtype)))
    return words
