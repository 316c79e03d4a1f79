"""Distances of distributions of NumPy's arrays; see _distributions.py."""

import numpy

from ._numpy_rows import reduction_of
from ._numpy_vectors import checked_dimension, checked_floats
from ._numpy_vectors import loss as loss_of_vectors
from ._numpy_vectors import parameters_of


def loss(name, operands, parameters, reduction, dim, weight, mask, divisor):
    first, second = numpy.broadcast_arrays(*checked_floats(input=operands[0], target=operands[1]))
    dim = checked_dimension(first, dim)
    arrays = numpy.moveaxis(first, dim, -1), numpy.moveaxis(second, dim, -1), None, weight, mask
    return loss_of_vectors(name, arrays, parameters_of(name, parameters), -1, reduction_of(None, None, reduction),
                           divisor)
