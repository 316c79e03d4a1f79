#!/usr/bin/env python3
"""Derive the polynomials of src/transcendental.h.

    python3 tests/derive_polynomials.py          prints them, with their errors

Needs mpmath. Each polynomial is the one whose largest error, relative to the function that it serves, is smallest on
its interval (Remez's exchange). Its coefficients are then rounded to numbers of the compute type; of the lowest ones,
whose roundings count, both neighbours are tried, and the set that errs least is taken.

The reciprocal needs no search. For a polynomial p of degree n the error of p(d) relative to 1/d is 1 - d p(d), a
polynomial of degree n + 1 that is 1 at 0; the one that deviates least from 0 on [1, 2] is Chebyshev's,
T(3 - 2d) / T(3).
"""

import itertools

from mpmath import mp, mpf

mp.dps = 60
TRIED = 5  # coefficients of which both neighbours are tried


def rounded(x, digits):
    """x to the nearest number of `digits` binary digits."""
    if x == 0:
        return mpf(0)
    unit = mpf(2) ** (mp.floor(mp.log(abs(x), 2)) + 1 - digits)
    return mp.nint(x / unit) * unit


def neighbour(x, nearest, digits):
    """The number on the other side of x."""
    unit = mpf(2) ** (mp.floor(mp.log(abs(x), 2)) + 1 - digits)
    return nearest + unit if nearest < x else nearest - unit


def remez(function, weight, low, high, degree):
    """The polynomial of that degree which makes max |weight (function - polynomial)| smallest; weight >= 0."""
    count = degree + 2
    middle, half = (low + high) / 2, (high - low) / 2
    # An even number of steps would have a point at 0, where a weight may be 0.
    points = [middle - half * mp.cos(mp.pi * (i + mpf("0.4")) / count) for i in range(count)]
    grid = [middle - half * mp.cos(mp.pi * i / (40 * count + 1)) for i in range(40 * count + 2)]
    for _ in range(40):
        # The error at the points is to alternate in sign and to have one magnitude.
        matrix = mp.matrix([[weight(x) * x**i for i in range(degree + 1)] + [(-1) ** n] for n, x in enumerate(points)])
        solution = mp.lu_solve(matrix, mp.matrix([weight(x) * function(x) for x in points]))
        coefficients = list(solution)[:-1]
        extrema = []  # one for each stretch of one sign
        for x in grid:
            error = weight(x) * (function(x) - mp.polyval(coefficients[::-1], x))
            if not extrema or (error > 0) != (extrema[-1][1] > 0):
                extrema.append((x, error))
            elif abs(error) > abs(extrema[-1][1]):
                extrema[-1] = (x, error)
        while len(extrema) > count:
            extrema.pop(0 if abs(extrema[0][1]) < abs(extrema[-1][1]) else -1)
        assert len(extrema) == count
        points = [x for x, _ in extrema]
        sizes = [abs(error) for _, error in extrema]
        if max(sizes) < min(sizes) * mpf("1.001"):
            break
    return coefficients


def fitted(function, weight, low, high, degree, digits, fixed=()):
    """Coefficients that are numbers of `digits` digits, and the largest error; the first ones may be given."""
    order = len(fixed)
    exact = remez(lambda x: (function(x) - mp.polyval(fixed[::-1], x)) / x**order if order else function(x),
                  lambda x: weight(x) * abs(x) ** order, low, high, degree - order)
    nearest = [rounded(c, digits) for c in exact]
    points = [low + (high - low) * i / 300 for i in range(301)]
    wanted = [(x, weight(x), function(x)) for x in points]
    best = None
    for steps in itertools.product((False, True), repeat=min(TRIED, len(exact))):
        done = list(fixed) + [neighbour(e, n, digits) if step else n for e, n, step in zip(exact, nearest, steps)]
        done += nearest[len(steps):]
        largest = max(w * abs(y - mp.polyval(done[::-1], x)) for x, w, y in wanted)
        if best is None or largest < best[1]:
            best = done, largest
    return best


def literal(x, digits):
    """As C writes it, without a loss."""
    number = float(x)
    assert mpf(number) == x
    text = number.hex()
    mantissa, exponent = text.split("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}p{exponent}" + ("f" if digits == 24 else "")


def show(name, coefficients, largest, digits):
    print(f"{name}, largest relative error 2^{float(mp.log(largest, 2)):.1f}")
    for c in reversed(coefficients):
        print(f"    {literal(c, digits)}")


def series(terms, x):
    """sum of terms(i) x^i, where a closed form would cancel."""
    return mp.fsum(terms(i) * x**i for i in range(60))


def exponential(x):
    """(e^x - 1 - x) / x^2, whose first coefficient is to be 1/2; the header's polynomial has the others"""
    return series(lambda i: 1 / mp.factorial(i + 2), x) if abs(x) < 0.1 else (mp.exp(x) - 1 - x) / x**2


def exponential_weight(x):
    """x^2 / |e^x - 1|: the error counts relative to e^x - 1, for tanh"""
    return abs(x) / (1 + x * exponential(x))


def logarithm(f):
    """(log(1 + f) - f + f^2 / 2) / f^3"""
    return series(lambda i: (-1) ** i / mpf(i + 3), f) if abs(f) < 0.1 else (mp.log(1 + f) - f + f**2 / 2) / f**3


def logarithm_weight(f):
    """f^3 / log(1 + f), which is nowhere negative"""
    return f**2 / series(lambda i: (-1) ** i / mpf(i + 1), f) if abs(f) < 0.1 else f**3 / mp.log(1 + f)


def reciprocal(degree, digits):
    """p with 1 - d p(d) = T(3 - 2d) / T(3), and the largest of that."""
    n = degree + 1
    # Through n + 1 points it is exact: solve for the coefficients of T(3 - 2d).
    points = [mpf(1) + mpf(i) / n for i in range(n + 1)]
    values = [mp.chebyt(n, 3 - 2 * x) / mp.chebyt(n, 3) for x in points]
    matrix = mp.matrix([[x**i for i in range(n + 1)] for x in points])
    of_error = mp.lu_solve(matrix, mp.matrix(values))
    coefficients = [rounded(-of_error[i], digits) for i in range(1, n + 1)]
    grid = [mpf(1) + mpf(i) / 1000 for i in range(1001)]
    return coefficients, max(abs(1 - x * sum(c * x**i for i, c in enumerate(coefficients))) for x in grid)


def main():
    ln2 = mp.log(2)
    for name, digits, digits_of_k, exp_degree, log_degree in (("float", 24, 8, 5, 7), ("double", 53, 11, 10, 18)):
        print(f"==== {name}; the coefficients from the highest power down")
        high = rounded(ln2, digits - digits_of_k)
        print("log2(e), the high and the low part of log(2)")
        for x in (rounded(1 / ln2, digits), high, rounded(ln2 - high, digits)):
            print(f"    {literal(x, digits)}")
        reach = ln2 / 2 + mpf(2) ** -10
        show("exp", *fitted(exponential, exponential_weight, -reach, reach, exp_degree, digits, [mpf(1) / 2]), digits)
        show("log", *fitted(logarithm, logarithm_weight, mpf(-5) / 16, mpf(3) / 8, log_degree, digits), digits)
        show("reciprocal", *reciprocal(3, 53), 53)


main()
