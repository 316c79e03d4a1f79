"""The functions and modules that are made out of the library's catalogue: source with signatures of its own, as
namedtuple makes its classes."""

from ._catalog import default_of, generated_name

FUNCTION = '''
def {function}(input, target, {third}*, {defaults}reduction="mean", weight=None, mask=None):
    """{meaning}."""
    if _overridden(input, target, {third}weight, mask) and _enabled():
        return _override({function}, input, target, {third}{names}reduction, weight, mask)
    given = {unless_plain}Given({third_value}, weight, mask, True)
    return _side(input, target).loss("{name}", input, target, ({names}), reduction, given)
'''

ROW_FUNCTION = '''
def {function}(input, target, weight=None, *, {defaults}reduction="mean", row_weight=None, mask=None, divisor=None,
               dtype=None):
    """{meaning}. The classes are dimension 1, or the only one."""
    if _overridden(input, target, weight, row_weight, mask, divisor) and _enabled():
        return _override({function}, input, target, weight, {names}reduction, row_weight, mask, divisor, dtype)
    given = RowGiven(row_weight=row_weight, mask=mask, divisor=divisor, dtype=dtype)
    return _row_side(input, target).generated("{name}", input, target, weight, ({names}), reduction, given)
'''

MODULE = '''
class {module}(_ParametricLoss):
    """onepass.{function}. A weight and a mask may be given with the operands."""

    def __init__(self, {defaults}reduction="mean"):
        super().__init__("{name}", reduction, {by_name})

    def forward(self, input, target, {third}weight=None, *, mask=None):
        return functional.{function}(input, target, {third}{kept}reduction=self.reduction, weight=weight, mask=mask)
'''

ROW_MODULE = '''
class {module}(_WeightedLoss):
    """onepass.{function}. weight is a buffer; a weight for each row, a mask and a divisor may be given with the
    operands."""

    def __init__(self, weight=None, *, {defaults}reduction="mean"):
        check_row_parameters("{name}", {by_name})
        super().__init__(weight, None, None, reduction)
        {attributes}

    def forward(self, input, target, *, row_weight=None, mask=None, divisor=None):
        return functional.{function}(input, target, self.weight, {kept}reduction=self.reduction, row_weight=row_weight,
                                     mask=mask, divisor=divisor)
'''


def module_name(name):
    return "".join(word.capitalize() for word in name.split("_")) + "Loss"


def source_of(template, loss):
    """The text of a function or a module of one loss."""
    parameters = loss["parameters"]
    names = [parameter["name"] for parameter in parameters]
    third = loss["operands"][2] if len(loss["operands"]) == 3 else None
    return template.format(
        name=loss["name"], function=generated_name(loss["name"]), module=module_name(loss["name"]),
        meaning=loss["meaning"][:1].upper() + loss["meaning"][1:],
        third=f"{third}, " if third else "", third_value=third,
        unless_plain="" if third else "None if weight is None and mask is None else ",  # the way in that asks least
        names="".join(f"{name}, " for name in names),
        defaults="".join(f"{name}={default_of(known)!r}, " for name, known in zip(names, parameters)),
        attributes="; ".join(f"self.{name} = {name}" for name in names),
        by_name=", ".join(f"{name}={name}" for name in names),
        kept="".join(f"{name}=self.{name}, " for name in names))


def made(template, loss, globals):
    """The function or the module itself, among the globals of the file that has it."""
    found = {}
    exec(compile(source_of(template, loss), f"<onepass.{loss['name']}>", "exec"), globals, found)
    (one,) = found.values()
    return one
