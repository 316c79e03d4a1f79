"""What a region is: which dimensions of an input are a region's elements, and which number the regions. For tensors and
arrays alike."""

MODES = ("binary", "multilabel", "multiclass")
PERS = ("batch", "class", "sample", "sample_class")


def check_words(function, mode, per):
    if mode not in MODES:
        raise ValueError(f"mode of {function} is {mode!r}; expected {', '.join(map(repr, MODES))}")
    if per not in PERS:
        raise ValueError(f"per of {function} is {per!r}; expected {', '.join(map(repr, PERS))}")


def check_sizes(input, target, mode):
    """That target belongs to input. Whether it lacks the one class of a binary input is told."""
    least = 1 if mode == "binary" else 2
    shape, of_target = tuple(input.shape), tuple(target.shape)
    without = shape[:1] + shape[2:]
    lacks = mode == "binary" and len(shape) > 1 and shape[1] == 1 and of_target == without
    if len(shape) < least or not (lacks or of_target == (without if mode == "multiclass" else shape)):
        expected = "class indices of size (N, ...) beside (N, C, ...)" if mode == "multiclass" else \
            "one size for both" + (", or (N, ...) beside (N, 1, ...)" if mode == "binary" else "")
        raise ValueError(f"target of size {of_target} beside input of size {shape}; expected {expected}")
    return lacks


def rows_of(input, mode, per, swapped, lengthened):
    """A view of input, and the library's axis, from which on its dimensions are a region's elements. `swapped` turns the
    first two dimensions of an array around, `lengthened` adds one of one element at the end."""
    if per == "batch" or (mode == "binary" and per == "class"):
        return input, 1
    if per == "class":
        return swapped(input), 2
    rows = 1 if mode == "binary" or per == "sample" else 2
    return (input, rows + 1) if len(input.shape) > rows else (lengthened(input), rows + 1)
