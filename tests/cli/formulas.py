# What the tests know of each loss: its value and its slopes in every operand, written from the table of the losses and
# not from the library; values of its parameters that take every branch; and the kind of numbers that each operand holds.
#
# The functions take arrays of one type and compute in it: in float64, from which the library's float32 is as far as
# expected.py allows; or, for EXACT, in the compute type, where every bit is known.
from collections import namedtuple

import numpy as np

#: function(*operands, **parameters) returns the value and a slope for each operand; size is that of the terms which are
#: added up in them
Formula = namedtuple("Formula", "function kinds parameters size", defaults=[1])

#: a step of plain arithmetic at a time, in the order that the library promises
EXACT = ["mse", "smooth_l1", "hinge"]


def draw(kind, rng, shape):
    """Numbers that a loss makes sense for, away from where terms are orders of magnitude larger than their sum."""
    normal = rng.standard_normal(shape)
    return {
        "any": normal,
        "apart": np.copysign(np.abs(normal) + 0.25, normal),
        "positive": np.exp(normal / 2),
        "share": 0.05 + 0.9 * rng.random(shape),
        "count": rng.poisson(2, shape),
        "side": np.where(normal < 0, -1, 1),
        "logarithm": -np.abs(normal) - 0.05,
    }[kind]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def with_opposite(value, slope):
    """Of a loss of p - t."""
    return value, slope, -slope


def mse(p, t):
    x = p - t
    return with_opposite(x * x, 2 * x)


def l1(p, t):
    return with_opposite(np.abs(p - t), np.sign(p - t))


def smooth_l1(p, t, beta):
    x = p - t
    over = beta.dtype.type(1) / beta  # rounded, as the library divides by a parameter
    near = (0.5 * x * x) * over
    value = np.where(np.abs(x) < beta, near, np.abs(x) - beta.dtype.type(0.5) * beta)
    return with_opposite(value, np.where(np.abs(x) >= beta, np.sign(x), x * over))


def huber(p, t, delta):
    x = p - t
    is_near = np.abs(x) < delta
    value = np.where(is_near, 0.5 * x * x, delta * (np.abs(x) - 0.5 * delta))
    return with_opposite(value, np.where(is_near, x, delta * np.sign(x)))


def log_cosh(p, t):
    return with_opposite(np.log(np.cosh(p - t)), np.tanh(p - t))


def charbonnier(p, t, eps):
    x = p - t
    return with_opposite(np.sqrt(x * x + eps * eps), x / np.sqrt(x * x + eps * eps))


def quantile(p, t, tau):
    e = t - p
    return with_opposite(np.where(e >= 0, tau, tau - 1) * e, np.where(e > 0, -tau, 1 - tau))


def epsilon_insensitive(p, t, eps):
    x = p - t
    return with_opposite(np.maximum(np.abs(x) - eps, 0), np.where(np.abs(x) > eps, np.sign(x), 0))


def mape(p, t, eps):
    x, size = p - t, np.maximum(np.abs(t), eps)
    value = 100 * np.abs(x) / size
    slope = 100 * np.sign(x) / size
    return value, slope, -slope - np.where(np.abs(t) > eps, value * np.sign(t) / size, 0)


def msle(p, t):
    d = np.log1p(p) - np.log1p(t)
    return d * d, 2 * d / (1 + p), -2 * d / (1 + t)


def hinge(p, t, margin):
    room = margin - p * t
    active = np.where(room >= 0, margin.dtype.type(1), margin.dtype.type(0))
    value = np.where(room < 0, margin.dtype.type(0), room)  # a NaN is not less than 0 and stays
    return value, -(active * t), -(active * p)


def squared_hinge(p, t, margin):
    room = np.maximum(margin - p * t, 0)
    return room * room, -2 * room * t, -2 * room * p


def hinge_embedding(p, t, margin):
    value = np.where(t != -1, p, 0) + np.where(t != 1, np.maximum(margin - p, 0), 0)
    return value, np.where(t != -1, 1.0, 0) - np.where((t != 1) & (margin - p >= 0), 1, 0), np.zeros_like(p)


def soft_margin(p, t):
    return softplus(-t * p), -t * sigmoid(-t * p), -p * sigmoid(-t * p)


def margin_ranking(p, t, v, margin):
    room = margin - v * (p - t)
    active = np.where(room >= 0, 1.0, 0)
    return np.maximum(room, 0), -v * active, v * active, -(p - t) * active


def bce(p, t):
    value = (t - 1) * np.log1p(-p) - t * np.log(p)
    return value, (p - t) / ((1 - p) * p), np.log1p(-p) - np.log(p)


def bce_with_logits(p, t):
    return (1 - t) * p + softplus(-p), sigmoid(p) - t, -p


def bce_with_logits_pos_weight(p, t, v):
    weight = 1 + (v - 1) * t
    slopes = 1 - t - weight * sigmoid(-p), (v - 1) * softplus(-p) - p, t * softplus(-p)
    return (1 - t) * p + weight * softplus(-p), *slopes


def focal(p, t, alpha, gamma):
    weight = alpha * t + (1 - alpha) * (1 - t) if alpha >= 0 else np.ones_like(t)
    weight_t = 2 * alpha - 1 if alpha >= 0 else 0
    entropy, right = (1 - t) * p + softplus(-p), sigmoid(p)
    wrong = (1 - t) * right + t * (1 - right)
    power, power_slope = wrong**gamma, gamma * wrong ** (gamma - 1)
    slope_p = weight * ((right - t) * power + entropy * power_slope * (1 - 2 * t) * right * (1 - right))
    slope_t = weight_t * entropy * power + weight * (entropy * power_slope * (1 - 2 * right) - p * power)
    return weight * entropy * power, slope_p, slope_t


def focal_squared(p, t, alpha):
    return focal(p, t, alpha, 2.0)


def stirling(t):
    """The term that stands for the logarithm of t's factorial, and its slope."""
    many = np.where(t > 1, t, 2)
    value = many * np.log(many) - many + 0.5 * np.log(2 * np.pi * many)
    return np.where(t > 1, value, 0), np.where(t > 1, np.log(many) + 0.5 / many, 0)


def poisson_nll(p, t):
    return np.exp(p) - t * p, np.exp(p) - t, -p


def poisson_nll_full(p, t):
    (value, slope_p, slope_t), (more, more_t) = poisson_nll(p, t), stirling(t)
    return value + more, slope_p, slope_t + more_t


def poisson_nll_rate(p, t, eps):
    return p - t * np.log(p + eps), 1 - t / (p + eps), -np.log(p + eps)


def poisson_nll_rate_full(p, t, eps):
    (value, slope_p, slope_t), (more, more_t) = poisson_nll_rate(p, t, eps), stirling(t)
    return value + more, slope_p, slope_t + more_t


def gaussian_nll(p, t, v, full, eps):
    x, c = p - t, np.maximum(v, eps)
    value = 0.5 * (np.log(c) + x * x / c) + (0.5 * np.log(2 * np.pi) if full else 0)
    return value, x / c, -x / c, 0.5 * (1 / c - x * x / (c * c))


def kl_div(p, t):
    return t * (np.log(t) - p), -t, np.log(t) + 1 - p


def kl_div_log_target(p, t):
    return np.exp(t) * (t - p), -np.exp(t), np.exp(t) * (t - p + 1)


def gamma_deviance(p, t):
    return 2 * (t / p - 1 - np.log(t / p)), 2 * (p - t) / (p * p), 2 * (1 / p - 1 / t)


ANY = ("any", "any")
FORMULAS = {
    "mse": Formula(mse, ANY, {}),
    "l1": Formula(l1, ANY, {}),
    "smooth_l1": Formula(smooth_l1, ANY, {"beta": [1.0, 0.5, 0.0, 3.7]}),
    "huber": Formula(huber, ANY, {"delta": [1.0, 0.5, 3.7]}),
    "log_cosh": Formula(log_cosh, ANY, {}),
    "charbonnier": Formula(charbonnier, ANY, {"eps": [1e-3, 0.5]}),
    "quantile": Formula(quantile, ANY, {"tau": [0.5, 0.1, 0.875]}),
    "epsilon_insensitive": Formula(epsilon_insensitive, ANY, {"eps": [0.1, 0.5]}),
    "mape": Formula(mape, ("any", "apart"), {"eps": [1e-7, 0.5]}, size=100),
    "msle": Formula(msle, ("positive", "positive"), {}),
    "hinge": Formula(hinge, ANY, {"margin": [1.0, 0.25, 0.0, -2.0]}),
    "squared_hinge": Formula(squared_hinge, ANY, {"margin": [1.0, 0.25, 0.0, -2.0]}),
    "hinge_embedding": Formula(hinge_embedding, ("any", "side"), {"margin": [1.0, 0.25, 0.0, -2.0]}),
    "soft_margin": Formula(soft_margin, ("any", "side"), {}),
    "margin_ranking": Formula(margin_ranking, ("any", "any", "side"), {"margin": [0.0, 0.5, -0.5]}),
    "bce": Formula(bce, ("share", "share"), {}),
    "bce_with_logits": Formula(bce_with_logits, ("any", "share"), {}),
    "bce_with_logits_pos_weight": Formula(bce_with_logits_pos_weight, ("any", "share", "positive"), {}),
    "focal": Formula(focal, ("any", "share"), {"alpha": [0.25, -1.0, 0.75], "gamma": [2.0, 0.0, 1.5]}),
    "focal_squared": Formula(focal_squared, ("any", "share"), {"alpha": [0.25, -1.0, 0.75]}),
    "poisson_nll": Formula(poisson_nll, ("any", "count"), {}),
    "poisson_nll_full": Formula(poisson_nll_full, ("any", "count"), {}),
    "poisson_nll_rate": Formula(poisson_nll_rate, ("positive", "count"), {"eps": [1e-8, 0.25]}),
    "poisson_nll_rate_full": Formula(poisson_nll_rate_full, ("positive", "count"), {"eps": [1e-8, 0.25]}),
    "gaussian_nll": Formula(gaussian_nll, ("any", "any", "positive"), {"full": [0.0, 1.0], "eps": [1e-6, 0.75]}),
    "kl_div": Formula(kl_div, ("logarithm", "share"), {}),
    "kl_div_log_target": Formula(kl_div_log_target, ("logarithm", "logarithm"), {}),
    "gamma_deviance": Formula(gamma_deviance, ("positive", "positive"), {}),
}
