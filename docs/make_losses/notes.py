"""What the catalogue cannot know of a loss: its names elsewhere, what is better here, the slopes in other operands than
the first, and what its picture shows. A loss without a note is told by the catalogue alone.
"""

from collections import namedtuple

from .picture import STANDARD, Picture, RowPicture, X

#: python: our function and module, if they are not made of the loss's name; None for no module.
#: torch, optax, keras: the names elsewhere, as the tables show them; "" for none.
#: better: what is better here than there, in a few words.
#: slopes: the slope in t, and that in v, in the catalogue's vocabulary and with the names of `names`. Not needed where
#: the slope in t is minus that in p, or 0.
#: names: short names for parts of the formulas.
#: of: the loss whose row in the table, and whose `better`, this one shares.
Note = namedtuple("Note", "python torch optax keras better slopes names picture of",
                  defaults=(None, "", "", "", "", (), {}, STANDARD, None))

APART = (-3, 3)  # of a prediction around a target of 0
SIGNS = [{"t": 1}, {"t": -1}]
STIRLING = {"s": "t > 1 ? t*log(t) - t + 0.5*log(6.283185307179586*t) : 0"}
FOCAL = {"a": "alpha < 0 ? 1 : alpha*t + (1 - alpha)*(1 - t)", "e": "(1 - t)*p + softplus(-p)",
         "q": "(1 - t)*sigmoid(p) + t*sigmoid(-p)"}
SHARES = [{"alpha": 0.5, "beta": 0.5}, {"alpha": 0.3, "beta": 0.7}, {"alpha": 1, "beta": 1}]  # Dice, between, Jaccard
LOGITS = {"input": (X, 0, 0), "target": (2, 0, -1)}

NOTES = {
    # ----------------------------------------------------------------------------------------------------- distances --
    "mse": Note(
        python=("mse_loss", "MSELoss"), torch="`mse_loss`", optax="`squared_error`", keras="`MeanSquaredError`",
        better="means in half precision do not overflow inside",
        picture=Picture(APART, [{"t": 0}])),
    "l1": Note(
        torch="`l1_loss`", keras="`MeanAbsoluteError`",
        better="NaN has the slope NaN, not 0", picture=Picture(APART, [{"t": 0}])),
    "smooth_l1": Note(
        torch="`smooth_l1_loss`",
        better="weights",
        picture=Picture(APART, [{"t": 0, "beta": beta} for beta in (1, 2, 0.25)])),
    "huber": Note(
        torch="`huber_loss`", optax="`huber_loss`", keras="`Huber`",
        better="mixed types in backward",
        picture=Picture(APART, [{"t": 0, "delta": delta} for delta in (1, 2, 0.25)])),
    "log_cosh": Note(
        optax="`log_cosh`", keras="`LogCosh`", better="small errors keep all their digits",
        picture=Picture(APART, [{"t": 0}])),
    "charbonnier": Note(
        better="they have none",
        picture=Picture(APART, [{"t": 0, "eps": eps} for eps in (0.001, 0.5, 1)])),
    "tukey_biweight": Note(
        better="they have none",
        picture=Picture((-6, 6), [{"t": 0, "c": c} for c in (4.685, 2, 8)])),
    "quantile": Note(
        better="they have none",
        picture=Picture(APART, [{"t": 0, "tau": tau} for tau in (0.5, 0.9, 0.1)])),
    "epsilon_insensitive": Note(
        better="they have none",
        picture=Picture(APART, [{"t": 0, "eps": eps} for eps in (0.1, 0.5, 1)])),
    "mape": Note(
        keras="`MeanAbsolutePercentageError`", better="eps is a parameter",
        slopes=("abs(t) > eps ? -100*sign(x)*p/(t*abs(t)) : -100*sign(x)/eps",),
        picture=Picture((-2, 6), [{"t": 1}, {"t": 2}, {"t": 4}], value=(0, 400), slope=(-120, 120))),
    "msle": Note(
        keras="`MeanSquaredLogarithmicError`",
        better="near the target all digits are kept", slopes=("-2*d/(1 + t)",),
        names={"d": "log1p(p) - log1p(t)"},
        picture=Picture((-0.9, 8), [{"t": 1}, {"t": 4}, {"t": 0}], value=(0, 6), slope=(-6, 2))),
    # ------------------------------------------------------------------------------------------------------- margins --
    "hinge": Note(
        torch="`clamp(margin - p*t, min=0)`", optax="`hinge_loss`",
        keras="`Hinge`", better="a function of its own, with weights",
        slopes=("m >= 0 ? -p : 0",), names={"m": "margin - p*t"},
        picture=Picture(APART, SIGNS)),
    "squared_hinge": Note(
        torch="`clamp(margin - p*t, min=0)**2`", keras="`SquaredHinge`",
        better="a function of its own, with weights", slopes=("m >= 0 ? -2*m*p : 0",),
        names={"m": "margin - p*t"},
        picture=Picture(APART, SIGNS, value=(0, 10), slope=(-8, 8))),
    "hinge_embedding": Note(
        torch="`hinge_embedding_loss`",
        better="weights", picture=Picture((0, 3), SIGNS)),
    "soft_margin": Note(
        torch="`soft_margin_loss`",
        better="no overflow; slope in the target", slopes=("-p*sigmoid(-(t*p))",),
        picture=Picture((-5, 5), SIGNS)),
    "margin_ranking": Note(
        torch="`margin_ranking_loss`",
        better="weights", slopes=(None, "m >= 0 ? -x : 0"), names={"m": "margin - v*x"},
        picture=Picture(APART, [{"t": 0, "v": 1}, {"t": 0, "v": -1}])),
    # ------------------------------------------------------------------------------------------------- probabilities --
    "bce": Note(
        python=("binary_cross_entropy", "BCELoss"), torch="`binary_cross_entropy`", keras="`BinaryCrossentropy`",
        better="a bad input is NaN and no end of the GPU's work",
        slopes=("log1p(-p) - log(p)",),
        picture=Picture((0.001, 0.999), [{"t": 0}, {"t": 1}, {"t": 0.5}], value=(0, 5), slope=(-10, 10))),
    "bce_with_logits": Note(
        python=("binary_cross_entropy_with_logits", "BCEWithLogitsLoss"), torch="`binary_cross_entropy_with_logits`",
        optax="`sigmoid_binary_cross_entropy`", keras="`BinaryCrossentropy(from_logits=True)`",
        better="sure logits keep their digits; slope in `pos_weight`", slopes=("-p",),
        picture=Picture((-5, 5), [{"t": 0}, {"t": 1}, {"t": 0.5}])),
    "bce_with_logits_pos_weight": Note(
        python=("binary_cross_entropy_with_logits", "BCEWithLogitsLoss"),
        torch="`binary_cross_entropy_with_logits(pos_weight=v)`",
        slopes=("(v - 1)*softplus(-p) - p", "t*softplus(-p)"),
        picture=Picture((-5, 5), [{"t": 1, "v": 1}, {"t": 1, "v": 3}, {"t": 1, "v": 0.3}], value=(0, 16)),
        of="bce_with_logits"),
    "focal": Note(
        python=("sigmoid_focal_loss", "SigmoidFocalLoss"), torch="torchvision's `sigmoid_focal_loss`",
        optax="`sigmoid_focal_loss`", keras="`BinaryFocalCrossentropy`",
        better="sure logits keep their digits; no NaN slopes",
        slopes=("(alpha < 0 ? 0 : 2*alpha - 1)*e*pow(q, gamma) - "
                "a*(e*gamma*pow(q, gamma)/q*tanh(0.5*p) + p*pow(q, gamma))",),
        names=FOCAL,
        picture=Picture((-5, 5), [{"t": 1, "alpha": 0.25, "gamma": gamma} for gamma in (2, 0, 5)])),
    "focal_squared": Note(
        python=("sigmoid_focal_loss", "SigmoidFocalLoss"), torch="torchvision's `sigmoid_focal_loss(gamma=2)`",
        slopes=("(alpha < 0 ? 0 : 2*alpha - 1)*e*pow(q, 2) - a*(e*2*q*tanh(0.5*p) + p*pow(q, 2))",),
        names=FOCAL,
        picture=Picture((-5, 5), [{"t": 1, "alpha": 0.25}, {"t": 0, "alpha": 0.25}]), of="focal"),
    # ----------------------------------------------------------------------------------- likelihoods and divergences --
    "poisson_nll": Note(
        python=("poisson_nll_loss", "PoissonNLLLoss"), torch="`poisson_nll_loss`",
        better="with `full` no NaN slope at a target of 0", slopes=("-p",),
        picture=Picture((-2, 3), [{"t": 2}, {"t": 0}, {"t": 5}])),
    "poisson_nll_full": Note(
        python=("poisson_nll_loss", "PoissonNLLLoss"), torch="`poisson_nll_loss(full=True)`",
        slopes=("(t > 1 ? log(t) + 0.5/t : 0) - p",), names=STIRLING,
        picture=Picture((-2, 3), [{"t": 2}, {"t": 1}, {"t": 5}]), of="poisson_nll"),
    "poisson_nll_rate": Note(
        python=("poisson_nll_loss", "PoissonNLLLoss"), torch="`poisson_nll_loss(log_input=False)`",
        keras="`Poisson`", slopes=("-log(p + eps)",),
        picture=Picture((0, 10), [{"t": 2}, {"t": 0}, {"t": 5}], value=(-5, 10), slope=(-4, 2)), of="poisson_nll"),
    "poisson_nll_rate_full": Note(
        python=("poisson_nll_loss", "PoissonNLLLoss"), torch="`poisson_nll_loss(log_input=False, full=True)`",
        slopes=("(t > 1 ? log(t) + 0.5/t : 0) - log(p + eps)",), names=STIRLING,
        picture=Picture((0, 10), [{"t": 2}, {"t": 1}, {"t": 5}], value=(0, 10), slope=(-4, 2)), of="poisson_nll"),
    "gaussian_nll": Note(
        python=("gaussian_nll_loss", "GaussianNLLLoss"), torch="`gaussian_nll_loss`",
        better="the host does not wait for the GPU", slopes=(None, "0.5*(1 - x*x/c)/c"),
        names={"c": "max(v, eps)"},
        picture=Picture((-4, 4), [{"t": 0, "v": v} for v in (1, 4, 0.25)], value=(-1, 8), slope=(-8, 8))),
    "kl_div": Note(
        python=("kl_div", "KLDivLoss"), torch="`kl_div`", optax="`kl_divergence`",
        better="weights", slopes=("log(t) + 1 - p",),
        picture=Picture((-6, 0), [{"t": 0.5}, {"t": 0.1}, {"t": 0.9}])),
    "kl_div_log_target": Note(
        python=("kl_div", "KLDivLoss"), torch="`kl_div(log_target=True)`", optax="`kl_divergence_with_log_targets`",
        slopes=("exp(t)*(t - p + 1)",),
        picture=Picture((-6, 0), [{"t": -0.5}, {"t": -2}, {"t": 0}]), of="kl_div"),
    "relative_entropy": Note(
        keras="`KLDivergence`", better="no logarithm in between; digits where both are near; probabilities of 0",
        slopes=("log(t) - log(p) + 1",),
        picture=Picture((0, 1), [{"t": 0.5}, {"t": 0.1}, {"t": 0.9}], value=(-0.5, 1.5), slope=(-6, 0))),
    "tweedie_deviance": Note(
        better="they have none",
        slopes=("power == 1 ? 2*(log(t) - log(p)) : 2*(pow(t, 1 - power) - pow(p, 1 - power))/(1 - power)",),
        picture=Picture((0.1, 6), [{"t": 2, "power": power} for power in (1.5, 1, 3)], value=(0, 4), slope=(-4, 2))),
    "gamma_deviance": Note(
        better="they have none", slopes=("2*(1/p - 1/t)",),
        picture=Picture((0.1, 6), [{"t": 1}, {"t": 2}, {"t": 4}], value=(0, 8), slope=(-8, 2))),
    # ------------------------------------------------------------------------------------------------------ over rows --
    "cross_entropy": Note(
        python=("cross_entropy", "CrossEntropyLoss"), torch="`cross_entropy`",
        optax="`softmax_cross_entropy_with_integer_labels`", keras="`SparseCategoricalCrossentropy(from_logits=True)`",
        better="sure rows keep their digits; the divisor is a double; z-loss, softcap"),
    "cross_entropy_with_probabilities": Note(
        python=("cross_entropy", "CrossEntropyLoss"), torch="`cross_entropy`", optax="`softmax_cross_entropy`",
        keras="`CategoricalCrossentropy(from_logits=True)`", better="no NaN where a probability is 0"),
    "nll": Note(
        python=("nll_loss", "NLLLoss"), torch="`nll_loss`", better="int32 and uint8 labels of every shape"),
    "log_prob": Note(python=("log_prob", None), better="they have none"),
    "poly": Note(optax="`poly_loss_cross_entropy`", better="a gradient from the same pass"),
    "softmax_focal": Note(keras="`CategoricalFocalCrossentropy`", better="sure rows keep their digits; any gamma"),
    "generalized_cross_entropy": Note(
        python=("generalized_cross_entropy", "GeneralizedCrossEntropyLoss"),
        keras="`CategoricalGeneralizedCrossEntropy`", better="sure and lost rows keep their digits; q from 0 to 1"),
    # ----------------------------------------------------------------------------------------------------- of vectors --
    "cosine_similarity": Note(
        python=("cosine_similarity", "CosineSimilarity"), torch="`cosine_similarity`", optax="`cosine_similarity`",
        keras="`CosineSimilarity`", better="that of parallel floats is 1; nothing overflows or vanishes",
        picture=RowPicture((-4, 4), [{"input1": (X, 1), "input2": (1, 1)}])),
    "cosine_embedding": Note(
        torch="`cosine_embedding_loss`", better="weights and masks; nothing overflows",
        picture=RowPicture((-4, 4), [{"input1": (X, 1), "input2": (1, 1), "target": target} for target in (1, -1)])),
    "pairwise_distance": Note(
        python=("pairwise_distance", "PairwiseDistance"), torch="`pairwise_distance`",
        better="a gradient from the same call; nothing overflows",
        picture=RowPicture((-3, 3), [{"input1": (X, 1), "input2": (0, 0), "p": p} for p in (2, 1)])),
    "triplet_margin": Note(
        torch="`triplet_margin_loss`", optax="`triplet_margin_loss`", better="weights and masks; no temporaries",
        picture=RowPicture((-3, 4), [{"anchor": (X, 0), "positive": (1, 0), "negative": (-1, 1), "swap": swap}
                                     for swap in (0, 1)])),
    "multi_margin": Note(
        torch="`multi_margin_loss`", better="16 bits on the CPU; second derivatives; weights and masks of rows",
        picture=RowPicture((-2, 3), [{"input": (X, 0, 1), "target": 0, "p": p} for p in (1, 2)])),
    "multilabel_margin": Note(
        python=("multilabel_margin_loss", "MultiLabelMarginLoss"), torch="`multilabel_margin_loss`",
        better="16 bits on the CPU; compiled right; weights and masks of rows",
        picture=RowPicture((-2, 3), [{"input": (X, 0, 1, 0.5), "target": [0, 3, -1, -1]}])),
    "tversky": Note(
        keras="`Tversky`, `Dice`", better="all digits where the regions are nearly the same",
        picture=RowPicture((0, 1), [{"input": (X, 0.5), "target": (1, 0), **shares} for shares in SHARES])),
    "tversky_with_logits": Note(
        python=("tversky_loss", "TverskyLoss"), of="tversky",
        picture=RowPicture((-6, 6), [{"input": (X, 0), "target": (1, 0), **shares} for shares in SHARES])),
    "kl_div_with_logits": Note(
        python=("kl_div_with_logits", "KLDivWithLogitsLoss"),
        torch="`kl_div` of two `log_softmax`es", better="both gradients, no temporaries; all digits of confident rows",
        picture=RowPicture((-6, 6), [{**LOGITS, "temperature": temperature} for temperature in (1, 2)])),
    "js_div_with_logits": Note(
        python=("js_div_with_logits", "JSDivWithLogitsLoss"), better="both gradients, no temporaries",
        picture=RowPicture((-6, 6), [{**LOGITS, "beta": beta} for beta in (0.5, 0.1)])),
    "tv_distance_with_logits": Note(
        python=("tv_distance_with_logits", "TVDistanceWithLogitsLoss"), better="both gradients, no temporaries",
        picture=RowPicture((-6, 6), [{**LOGITS, "temperature": temperature} for temperature in (1, 2)])),
}


def note_of(loss):
    return NOTES.get(loss.name, Note())
