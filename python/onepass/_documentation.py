"""What help() says of a function or a module: its own sentences, its formula in Python, and each of its arguments."""

import inspect
import re

from ._catalog import ROW_CATALOG, range_of
from ._contract import contract_of

# What an argument is, unless it is a parameter of the loss, which the catalogue explains.
_ARGUMENTS = {
    "input": "the prediction, a PyTorch tensor or a NumPy array",
    "inputs": "the logits, a PyTorch tensor or a NumPy array",
    "input1": "one of the two, a PyTorch tensor or a NumPy array",
    "input2": "the other, of the same kind",
    "target": "what the prediction should be, of the same kind",
    "targets": "what the sigmoid of the logits should be, of the same kind",
    "var": "the variance: of the same kind, or a number",
    "pos_weight": "the weight of positive targets; broadcasts to the size of the loss",
    "log_input": "whether input is the logarithm of the rate",
    "full": "whether a term is added that depends on no prediction",
    "log_target": "whether target is a logarithm, too",
    "size_average": "deprecated by PyTorch: False for reduction='sum'",
    "reduce": "deprecated by PyTorch: False for reduction='none'",
    "mask": "which elements take part, of bool or uint8; broadcasts to the size of the loss",
    "broadcast_weight": "whether weight may broadcast to the size of the loss instead",
}

# Of losses over rows, where it is another.
_ROW_ARGUMENTS = {
    "input": "the logits, a PyTorch tensor or a NumPy array",
    "target": "class indices (int64, int32 or uint8), of the shape of input without the classes; or a probability for "
              "each class, of the shape of input",
    "labels": "class indices (int64, int32 or uint8), of the shape of logits without the last dimension",
    "weight": "a weight for each class; beside class indices a mean is over the weights of the rows' classes",
    "ignore_index": "rows with this class index take no part",
    "reduction": "'mean', 'sum', 'none' or 'batchmean', the sum over the first extent of the rows",
    "row_weight": "multiplies each row's loss; broadcasts to the rows; a mean is over the sum of the weights",
    "mask": "which rows take part, of bool or uint8; broadcasts to the rows",
    "divisor": "what a mean is divided by instead: a number, or a tensor of one element on the device",
    "dtype": "the type of the loss, whatever that of the input",
    "inplace": "whether backward may write the gradient over the input's memory",
    "softcap": "logits z become softcap*tanh(z/softcap); None: they stay as they are",
    "return_lse": "whether to return each row's log-sum-exp, too",
    "return_z_loss": "whether to return the part of the loss that z_loss has, too",
    "return_accuracy": "whether to return the share of rows whose largest logit is the target's, too",
    "return_entropy": "whether to return each row's entropy, too",
}

# The functions of formulas that Python's math does not have.
_DEFINITIONS = {"softplus": "softplus = lambda z: log1p(exp(z))", "sigmoid": "sigmoid = lambda z: 1 / (1 + exp(-z))"}


def documentation_of(sentences, losses, function, module=None):
    """A docstring. `losses` are what the function computes: entries of the catalogue, and when it is which. With
    `module`, a class, the arguments are that one's. The formulas of a loss over rows are of one row, in NumPy's
    functions."""
    over_rows = losses[0][0]["name"] in ROW_CATALOG
    formulas_of, meaning_of = (row_formulas, row_meaning) if over_rows else (formulas, meaning)
    parameters = {known["name"]: known for loss, _ in losses for known in loss["parameters"]}
    about = []
    for one in inspect.signature(module or function).parameters.values():
        given = "" if one.default in (one.empty, None) else f"; {one.default!r} if not given"
        about.append(f"{one.name}: {meaning_of(one.name, losses, parameters.get(one.name))}{given}")
    lines = [line.strip() for line in sentences.strip().splitlines()]
    return "\n".join([*lines, "", *formulas_of(losses, function), *([""] if about else []), *about]) + "\n"


def row_formulas(losses, function):
    first, second, *others = inspect.signature(function).parameters
    text = " ".join(loss["value"] for loss, _ in losses)
    names = {"z": first, "y": second, "q": second, "w": "weight" if "weight" in others else "ones_like(z)",
             "s": "label_smoothing", "C": "len(z)", "lse": "log(sum(exp(z)))",
             "softmax": "lambda z: exp(z)/sum(exp(z))"}
    before = [f"{name} = {meaning}" for name, meaning in names.items()
              if re.search(rf"\b{name}\b", text) and name not in others]
    lines = [f"loss = {in_python(loss['value'])}" + (f"  # {when}" if when else "") for loss, when in losses]
    return ["    " + line for line in before + lines]


def row_meaning(name, losses, known):
    """Of an argument, in a line; `known` is what the catalogue has of it, if it is a parameter."""
    if name == "target" and len(losses) == 1:
        return _ROW_ARGUMENTS[name].split(";")[0]
    if name == "input" and losses[0][0]["name"] == "nll":
        return "the log-probabilities, a PyTorch tensor or a NumPy array"
    if name in _ROW_ARGUMENTS:
        return _ROW_ARGUMENTS[name]
    return f"{known['meaning']}; {range_of(known)}" if known else _ARGUMENTS.get(name, _ARGUMENTS["inputs"])


def formulas(losses, function):
    """Lines of Python, in the names of the function's arguments."""
    required = [one.name for one in inspect.signature(function).parameters.values() if one.default is one.empty]
    lines = []
    for loss, when in losses:
        names = dict(zip("ptv", (*required[:2], *(required[2:] or loss["operands"][2:]))))
        formula = re.sub(r"\b[ptv]\b", lambda found: names[found[0]], in_python(loss["value"]))
        lines.append(f"loss = {formula}" + (f"  # {when}" if when else ""))
    text = "\n".join(lines)
    before = [f"x = {required[0]} - {required[1]}"] if re.search(r"\bx\b", text) else []
    before += [definition for name, definition in _DEFINITIONS.items() if f"{name}(" in text]
    return ["    " + line for line in before + lines]


def in_python(formula):
    """condition ? yes : no is Python's yes if condition else no; all else is Python already."""
    parts = []

    def keep(found):
        parts.append(choice(found[0]))
        return f"@{len(parts) - 1}@"

    inner = re.compile(r"\([^()]*\)")
    while inner.search(formula):  # from the innermost parentheses outwards
        formula = inner.sub(keep, formula)
    formula = choice(formula)
    while "@" in formula:
        formula = re.sub(r"@(\d+)@", lambda found: parts[int(found[1])], formula)
    return formula


def choice(text):
    """Of a text with parentheses around it, if any."""
    if ", " in text:
        return ", ".join(map(choice, text.split(", ")))
    return re.sub(r"^(\(?)(.*?) \? (.*?) : (.*?)(\)?)$",
                  lambda found: f"{found[1]}{found[3]} if {found[2]} else {choice(found[4])}{found[5]}", text)


def meaning(name, losses, known):
    """The same of a loss whose every element has a value."""
    loss = losses[0][0]
    contract = contract_of(loss["name"])
    if name == "reduction":
        return "'mean', 'sum', 'none'" + (" or 'batchmean', the sum over the first extent" if contract.has_batchmean
                                          else "")
    if name == "weight":
        size = "broadcasts to the size of the loss" if contract.free_weight else "of the size of input"
        divisor = "number of elements" if contract.mean_of_all else "sum of the weights"
        return f"multiplies each element's loss; {size}; a mean is over the {divisor}"
    if name == "target" and loss["operands"][2:] == ["target"]:
        return "1 where input1 should be the larger one, -1 where input2 should"
    if name in _ARGUMENTS or known is None:
        return _ARGUMENTS.get(name, "the third operand, of the same kind")
    return f"{known['meaning']}; {range_of(known)}"


def module_documentation(module, packages, more=None):
    """Of a module whose function has a docstring of its own: the module's sentences, and of the function the formula
    and what is said of the arguments; `more` says what only the module has."""
    name = re.search(r"onepass\.(\w+)", module.__doc__)[1]  # which its first sentence names
    function = next(getattr(package, name) for package in packages if hasattr(package, name))
    formula = re.findall(r"^    \w+ = .*$", function.__doc__, re.MULTILINE)
    known = dict(re.findall(r"^(\w+): (.*(?:\n    .*)*)", function.__doc__, re.MULTILINE)) | (more or {})
    about = [f"{name}: {known[name]}" for name in inspect.signature(module).parameters]
    return "\n".join([inspect.cleandoc(module.__doc__), "", *formula, "", *about]) + "\n"
