"""What fuzz_gpu.py calls: a family of cases for each function, each with all its options."""
import random

import torch

import onepass
from onepass._catalog import ROWS
from fuzz_gpu_operands import Maker, Operand


class Case:
    """A call: a function of (tensors by name) that returns what is to be compared, by name."""

    def __init__(self, seed, number, far):
        self.maker = maker = Maker(random.Random(f"{seed} {number}"), far)
        self.operands, self.options, self.with_gradient, self.inplace = {}, {}, [], False
        self.family = maker.rng.choices(list(FAMILIES), [weight for weight, _ in FAMILIES.values()])[0]
        self.call = FAMILIES[self.family][1](self, maker)
        self.upstream = maker.rng.choice((None, None, 1.0, 0.5, 1.7, -3.0, 1024.0, float("nan")))
        self.backward = bool(self.with_gradient) and maker.chance(80)
        self.inplace = self.inplace and self.backward
        # What the package decides by what it has seen, or by the machine.
        self.expected = maker.rng.choice((None, 1.0, 1.0, 0.5, 1.7, 1024.0))
        self.apart, self.state = maker.chance(50), maker.chance(50)

    def __str__(self):
        options = {key: value for key, value in self.options.items() if not isinstance(value, Operand)}
        return f"{self.family} {options} " + "; ".join(f"{name} {one}" for name, one in self.operands.items()) + \
            (f"; backward of {self.with_gradient} with {self.upstream}" if self.backward else "; forward") + \
            (" in place" if self.inplace else "") + \
            f"; expects {self.expected} apart {self.apart:d} state {self.state:d}"

    def draw_option(self, percent, name, *values):
        if self.maker.chance(percent):
            self.options[name] = self.maker.rng.choice(values)

    def draw_rows(self, rows, weight="row_weight", divisor=True):
        """What any loss over rows may have beside its operands."""
        maker = self.maker
        self.options["reduction"] = maker.rng.choice(("mean", "mean", "sum", "none"))
        if maker.chance(20):
            self.operands[weight] = maker.weights(maker.reaching(rows), maker.dtype())
        if maker.chance(20):
            self.operands["mask"] = maker.mask(rows)
        if divisor and self.options["reduction"] == "mean" and maker.chance(15):
            self.options["divisor"] = maker.rng.choice((1.0, 3, 0.1, 1000.0))
            if maker.chance(50):
                self.operands["divisor"] = Operand(torch.tensor(self.options.pop("divisor")), (), (), 0)


def named_tuple(found, *names):
    return dict(zip(names, found)) if isinstance(found, tuple) else {names[0]: found}


def rows_of(shape, axis):
    return shape[:axis] + shape[axis + 1:]


def draw_softmax(case):
    case.draw_option(12, "softcap", 30.0, 5.0, 1.0)
    case.draw_option(15, "temperature", 0.5, 2.0, 1.3, 1.0)


def draw_labels(case, shape, axis):
    maker = case.maker
    ignored = maker.rng.choice((-100, -100, 0, shape[axis] - 1, 255))
    case.options["ignore_index"] = ignored
    case.operands["target"] = maker.labels(rows_of(shape, axis), shape[axis], ignored)


def draw_logits(case, last=False, scale=(0.1, 3.0, 50.0), farness=0.0):
    maker = case.maker
    shape, axis = maker.shape(last)
    dtype = maker.dtype()
    case.operands["input"] = maker.floats(shape, dtype, maker.rng.choice(scale), axis=axis, farness=farness)
    case.with_gradient = ["input"]
    return shape, axis, dtype


def cross_entropy(case, maker):
    shape, axis, dtype = draw_logits(case, farness=2)
    draw_softmax(case)
    case.draw_option(25, "label_smoothing", 0.1, 0.5, 1.0)
    case.draw_option(20, "z_loss", 1e-4, 0.1)
    case.draw_option(15, "dtype", torch.float32, torch.float64)
    case.draw_rows(rows_of(shape, axis))
    if maker.chance(20):
        case.operands["weight"] = maker.weights((shape[axis],), dtype)
    case.inplace = maker.chance(20) and 0 not in case.operands["input"].stride
    if maker.chance(85):
        draw_labels(case, shape, axis)
        case.draw_option(15, "return_accuracy", True)
    else:
        case.operands["target"] = maker.floats(shape, maker.rng.choice((dtype, maker.dtype())), 1, 5, axis=axis,
                                               positive=True)
        if maker.chance(30):
            case.with_gradient = maker.rng.choice((["target"], ["input", "target"]))
            case.inplace = False
    case.draw_option(20, "return_lse", True)
    names = ["value", *(name for name in ("lse", "accuracy") if f"return_{name}" in case.options)]
    return lambda **given: named_tuple(onepass.cross_entropy(**given), *names)


def nll(case, maker):
    shape, axis, dtype = draw_logits(case)
    case.draw_rows(rows_of(shape, axis))
    if maker.chance(20):
        case.operands["weight"] = maker.weights((shape[axis],), dtype)
    draw_labels(case, shape, axis)
    return lambda **given: {"value": onepass.nll_loss(**given)}


def log_prob(case, maker):
    shape, axis, _ = draw_logits(case, last=True)
    draw_softmax(case)
    draw_labels(case, shape, axis)
    case.draw_option(15, "dtype", torch.float32, torch.float64)
    case.inplace = maker.chance(20) and 0 not in case.operands["input"].stride
    return lambda input, target, **given: {"value": onepass.log_prob(input, target, **given)}


def of_softmax(function, **parameters):
    """A row loss that PyTorch lacks."""
    def make(case, maker):
        shape, axis, dtype = draw_logits(case)
        draw_softmax(case)
        for name, values in parameters.items():
            case.draw_option(50, name, *values)
        case.draw_rows(rows_of(shape, axis))
        draw_labels(case, shape, axis)
        if maker.chance(20):
            case.operands["weight"] = maker.weights((shape[axis],), dtype)
        return lambda **given: {"value": function(**given)}
    return make


def vocabulary(case, maker):
    """The classes shared out, compared with one call of all."""
    rows, classes = maker.extents()
    dtype = maker.dtype()
    case.operands["input"] = maker.floats((rows, classes), dtype, maker.rng.choice((0.1, 3.0, 50.0)), plain=70)
    case.with_gradient = ["input"]
    draw_labels(case, (rows, classes), 1)
    draw_softmax(case)
    case.draw_option(25, "label_smoothing", 0.1, 0.5)
    case.draw_option(20, "z_loss", 1e-4, 0.1)
    case.options["reduction"] = maker.rng.choice(("mean", "sum", "none"))
    if maker.chance(20):
        case.operands["weight"] = maker.weights((classes,), dtype)
    edges = sorted(maker.rng.choice((maker.rng.randrange(classes + 1), min(classes, 1024 * maker.rng.randrange(9))))
                   for _ in range(maker.rng.choice((0, 1, 1, 2, 3))))
    case.options["counts"] = [end - begin for begin, end in zip([0, *edges], [*edges, classes])]
    return None


#: A class is compared with each of a list of classes, which takes a while.
MOST_PAIRS = 2**26


def vectors(function, operands, reduces=True, **parameters):
    """A loss of vectors: a letter for each operand, v for one with a gradient, s for signs, l for labels, m for many."""
    def make(case, maker):
        shape, axis = maker.shape(last=True)
        shape = shape if len(shape) > 1 else (1, *shape)
        shape, axis, dtype = (shape[0] * shape[1] if len(shape) > 2 else shape[0], shape[-1]), 1, maker.dtype()
        while "m" in operands.values() and shape[0] * shape[1] ** 2 > MOST_PAIRS:
            shape = (shape[0] // 2, shape[1]) if shape[0] > 1 else (1, shape[1] // 2)
        scale = maker.rng.choice((0.1, 1, 3.0, 1e3))
        for name, kind in operands.items():
            if kind == "v":
                own = dtype if maker.chance(80) else maker.dtype()
                case.operands[name] = maker.floats(shape, own, scale, 15, axis=1)
                if maker.chance(75):
                    case.with_gradient.append(name)
            elif kind == "s":
                count = shape[0]
                signs = torch.where(maker.taken(count, torch.float32) > 0, 1, -1)
                case.operands[name] = Operand(signs.to(maker.rng.choice((torch.int64, dtype))), (count,), (1,), 0)
            elif kind == "m":
                case.operands[name] = maker.labels(shape, shape[1], -1)
            else:
                case.operands[name] = maker.labels((shape[0],), shape[1], 0)
        for name, values in parameters.items():
            case.draw_option(50, name, *values)
        if reduces:
            case.draw_rows((shape[0],), "row_weight" if "l" in operands.values() else "weight")
        if "l" in operands.values() and maker.chance(20):
            case.operands["weight"] = maker.weights((shape[1],), dtype)
        return lambda **given: {"value": function(**given)}
    return make


def distributions(function, **parameters):
    def make(case, maker):
        shape, axis, dtype = draw_logits(case, scale=(0.1, 3.0, 20.0))
        case.operands["target"] = maker.floats(shape, dtype if maker.chance(80) else maker.dtype(),
                                               maker.rng.choice((0.1, 3.0, 20.0)), axis=axis)
        case.with_gradient = maker.rng.choice((["input"], ["target"], ["input", "target"]))
        case.options["dim"] = axis
        for name, values in parameters.items():
            case.draw_option(50, name, *values)
        case.draw_rows(rows_of(shape, axis), "weight")
        return lambda **given: {"value": function(**given)}
    return make


def regions(function, **parameters):
    def make(case, maker):
        rows, classes = maker.extents()
        shape = maker.rng.choice(((rows, classes), (rows, 1, classes)))
        dtype = maker.dtype()
        logits = maker.chance(60)
        case.options.update(mode="multilabel", per=maker.rng.choice(("batch", "class", "sample", "sample_class")),
                            from_logits=logits)
        case.operands["input"] = maker.floats(shape, dtype, 3.0 if logits else 0.2, axis=1, positive=not logits)
        case.operands["target"] = maker.floats(shape, maker.rng.choice((dtype, maker.dtype())), 0.3, 5, axis=1,
                                               positive=True)
        case.with_gradient = maker.rng.choice((["input"], ["input", "target"]))
        for name, values in parameters.items():
            case.draw_option(40, name, *values)
        case.options["reduction"] = maker.rng.choice(("mean", "sum", "none"))
        return lambda **given: {"value": function(**given)}
    return make


FAMILIES = {
    "cross_entropy": (40, cross_entropy),
    "nll_loss": (5, nll),
    "log_prob": (8, log_prob),
    "softmax_focal_loss": (6, of_softmax(onepass.softmax_focal_loss, alpha=(0.25, 2.0), gamma=(0.0, 0.5, 1.0, 5.0))),
    "poly_loss": (5, of_softmax(onepass.poly_loss, epsilon=(0.0, 0.5, 3.0))),
    "generalized_cross_entropy": (5, of_softmax(onepass.generalized_cross_entropy, q=(0.1, 0.5, 1.0))),
    "vocab_parallel": (12, vocabulary),
    "kl_div_with_logits": (5, distributions(onepass.kl_div_with_logits, temperature=(0.5, 2.0), reverse=(True,))),
    "js_div_with_logits": (4, distributions(onepass.js_div_with_logits, temperature=(0.5, 2.0), beta=(0.1, 0.9))),
    "tv_distance_with_logits": (4, distributions(onepass.tv_distance_with_logits, temperature=(0.5, 2.0))),
    "cosine_similarity": (4, vectors(onepass.cosine_similarity, {"x1": "v", "x2": "v"}, False, eps=(0.0, 0.5))),
    "pairwise_distance": (4, vectors(onepass.pairwise_distance, {"x1": "v", "x2": "v"}, False, p=(1, 2),
                                     eps=(0.0, 0.1))),
    "cosine_embedding_loss": (4, vectors(onepass.cosine_embedding_loss, {"input1": "v", "input2": "v", "target": "s"},
                                         margin=(0.3, -0.3))),
    "triplet_margin_loss": (5, vectors(onepass.triplet_margin_loss,
                                       {"anchor": "v", "positive": "v", "negative": "v"}, margin=(0.1, 2.5), p=(1, 2),
                                       eps=(1e-3,), swap=(True,))),
    "multi_margin_loss": (4, vectors(onepass.multi_margin_loss, {"input": "v", "target": "l"}, p=(1, 2),
                                     margin=(0.5, 2.0))),
    "multilabel_margin_loss": (3, vectors(onepass.multilabel_margin_loss, {"input": "v", "target": "m"})),
    "tversky_loss": (5, regions(onepass.tversky_loss, alpha=(0.25, 1.5), beta=(0.1,), smooth=(1.0,), eps=(2.0,))),
    "dice_loss": (2, regions(onepass.dice_loss, smooth=(1.0,))),
}
#: A row loss that has no line above, with its parameters as they are unless given.
FAMILIES |= {name: (5, of_softmax(getattr(onepass, name))) for name in ROWS if name not in FAMILIES}
