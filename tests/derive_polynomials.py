#!/usr/bin/env python3
"""Derive the polynomials of src/math/elementary.h.

    python3 tests/derive_polynomials.py          prints them, with their errors

Needs mpmath. Each polynomial is the one whose largest error, relative to the function that it serves, is smallest on
its interval (Remez's exchange). Its coefficients are then rounded to numbers of the compute type; of the lowest ones,
whose roundings count, both neighbours are tried, and the set that errs least is taken.

The reciprocal needs no search. For a polynomial p of degree n the error of p(d) relative to 1/d is 1 - d p(d), a
polynomial of degree n + 1 that is 1 at 0; the one that deviates least from 0 on an interval is Chebyshev's, moved to
there. Newton's step turns an error e into e^2, so half of the largest e^2 is added to the step's 1: the error is then
as large on either side. The interval reaches a little beyond 2, so that e is smaller there and the sum, at 2, is above.
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
    """(e^x - 1 - x) / x^2, whose first coefficient is to be 1/2"""
    return series(lambda i: 1 / mp.factorial(i + 2), x) if abs(x) < 0.1 else (mp.exp(x) - 1 - x) / x**2


def exponential_weight(x):
    """The error counts relative to e^x."""
    return x**2 / mp.exp(x)


def logarithm(f):
    """(log(1 + f) - f) / f^2, whose first coefficient is to be -1/2"""
    return series(lambda i: (-1) ** (i + 1) / mpf(i + 2), f) if abs(f) < 0.1 else (mp.log(1 + f) - f) / f**2


def logarithm_weight(f):
    """f^2 / |log(1 + f)|"""
    return abs(f) / series(lambda i: (-1) ** i / mpf(i + 1), f) if abs(f) < 0.1 else f**2 / abs(mp.log(1 + f))


TANGENT = mp.taylor(mp.tanh, 0, 61)


def tangent(z):
    """(tanh(x) - x) / x^3 of z = x^2"""
    x = mp.sqrt(z)
    return mp.fsum(TANGENT[2 * i + 3] * z**i for i in range(25)) if x < 0.1 else (mp.tanh(x) - x) / x**3


def tangent_weight(z):
    """x^3 / tanh(x)"""
    return z / (1 + z * tangent(z))


def area(z):
    """(2 atanh(s) - 2 s - 2/3 s^3) / s^5 of z = s^2"""
    s = mp.sqrt(z)
    if s < 0.1:
        return mp.fsum(2 * z**i / mpf(2 * i + 5) for i in range(60))
    return (2 * mp.atanh(s) - 2 * s - 2 * s**3 / 3) / s**5


def area_weight(z):
    """s^5 / (2 atanh(s))"""
    return z**2 / (2 + 2 * z / 3 + z**2 * area(z))


def reciprocal(low, high, digits):
    """The parabola p with 1 - d p(d) = T(d) / T(0), where T is Chebyshev's cubic, moved to the interval."""
    middle, half = (low + high) / 2, (high - low) / 2
    # Through four points it is exact: solve for the coefficients of T(d) / T(0).
    points = [mpf(1 + i) for i in range(4)]
    values = [mp.chebyt(3, (x - middle) / half) / mp.chebyt(3, -middle / half) for x in points]
    of_error = mp.lu_solve(mp.matrix([[x**i for i in range(4)] for x in points]), mp.matrix(values))
    return [rounded(-of_error[i], digits) for i in range(1, 4)]


def largest(function):
    return max(abs(function(1 + mpf(i) / 1000)) for i in range(1001))


def show_reciprocal():
    coefficients = reciprocal(mpf(1), mpf("2.03"), 24)

    def error(d):
        return 1 - d * mp.polyval(coefficients[::-1], d)

    first = rounded(1 + largest(error) ** 2 / 2, 24)

    def after_first(d):
        return 1 - (1 - error(d)) * (error(d) + first)

    second = rounded(1 + largest(after_first) ** 2 / 2, 41)

    def after_second(d):
        return 1 - (1 - after_first(d)) * (after_first(d) + second)

    assert after_first(mpf(2)) < 0 and after_second(mpf(2)) < 0
    show("reciprocal", coefficients, largest(error), 53)
    for name, one, left in (("first", first, after_first), ("second", second, after_second)):
        print(f"the {name} step's 1, after which 2^{float(mp.log(largest(left), 2)):.1f} is left")
        print(f"    {literal(one, 53)}")


def main():
    ln2, two_thirds = mp.log(2), mpf(2) / 3
    margin = mpf(2) ** -10  # for the rounding of k
    above_0 = mpf(2) ** -60
    degrees = (("float", 24, 4, 9, 8, 4, 3), ("double", 53, 10, 19, 20, 11, 7))
    for name, digits, of_exp, of_log, of_softplus, of_tanh, of_atanh in degrees:
        print(f"==== {name}; the coefficients from the highest power down")
        print("log2(e), log(2), and what the latter lacks; 2/3, and what it lacks")
        for x in (1 / ln2, ln2, ln2 - rounded(ln2, digits), two_thirds, two_thirds - rounded(two_thirds, digits)):
            print(f"    {literal(rounded(x, digits), digits)}")
        for title, function, weight, low, high, degree, fixed in (
                ("exp", exponential, exponential_weight, mp.log(mpf("0.75")) - margin, mp.log(mpf("1.5")) + margin,
                 of_exp, [mpf("0.5")]),
                ("log", logarithm, logarithm_weight, mpf("-0.25"), mpf("0.5"), of_log, [mpf("-0.5")]),
                ("softplus", logarithm, logarithm_weight, above_0, mpf(1), of_softplus, [mpf("-0.5")]),
                ("tanh", tangent, tangent_weight, above_0, mpf("0.65") ** 2, of_tanh, []),
                ("atanh", area, area_weight, above_0, mpf("0.2") ** 2, of_atanh, [])):
            show(title, *fitted(function, weight, low, high, degree, digits, fixed), digits)
    show_reciprocal()


main()
