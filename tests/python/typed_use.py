# Uses of the package that a type checker must accept, with the types that it must find; and uses that it must refuse,
# each of which says so. Read by mypy, in test_types.py, and run by nobody.
from decimal import Decimal
from fractions import Fraction
from typing import Any, Union

import numpy as np
import torch
from numpy.typing import NDArray
from typing_extensions import assert_type

import onepass

p, t, mask = torch.rand(3), torch.rand(3), torch.ones(3, dtype=torch.bool)
a, b = np.ones(3), np.zeros(3, np.float32)

assert_type(onepass.mse_loss(p, t), torch.Tensor)
assert_type(onepass.smooth_l1_loss(p, t, beta=0.5, reduction="none", mask=mask), torch.Tensor)
assert_type(onepass.huber_loss(p, t, "sum", 2, weight=p), torch.Tensor)
assert_type(onepass.gaussian_nll_loss(p, t, 1.0, full=True), torch.Tensor)
assert_type(onepass.quantile_loss(p, t, tau=0.9), torch.Tensor)
assert_type(onepass.functional.kl_div(p, t, reduction="batchmean", log_target=True), torch.Tensor)
assert_type(onepass.mse_loss(a, b), "np.floating[Any]")
assert_type(onepass.log_cosh_loss(a, b, reduction="none", mask=a > 0), "NDArray[np.floating[Any]]")
assert_type(onepass.sigmoid_focal_loss(a, b), "NDArray[np.floating[Any]]")
assert_type(onepass.sigmoid_focal_loss(a, b, reduction="mean"), "np.floating[Any]")
assert_type(onepass.value_and_grad("smooth_l1", p, t, beta=0.5), tuple[torch.Tensor, torch.Tensor])
assert_type(onepass.value_and_grad("mse", a, b), "tuple[np.floating[Any], NDArray[np.floating[Any]]]")
assert_type(onepass.nn.QuantileLoss(0.3), onepass.nn.QuantileLoss)
assert_type(onepass.nn.QuantileLoss(tau=0.3, reduction="sum")(p, t, mask=mask), torch.Tensor)
assert_type(onepass.nn.BCEWithLogitsLoss(pos_weight=p)(p, t), torch.Tensor)
assert_type(onepass.nn.GaussianNLLLoss(full=True)(p, t, p), torch.Tensor)
assert_type(onepass.nn.PoissonNLLLoss(log_input=False)(p, t), torch.Tensor)

# Losses over rows: what they return is told by the flags.
labels, whole = torch.zeros(3, dtype=torch.int64), np.zeros(3, np.int64)
assert_type(onepass.cross_entropy(p, labels, ignore_index=-1, label_smoothing=0.1, divisor=labels), torch.Tensor)
assert_type(onepass.cross_entropy(p, t, softcap=30, dtype=torch.float32, row_weight=p, mask=mask), torch.Tensor)
loss, lse = onepass.cross_entropy(p, labels, return_lse=True)
assert_type(onepass.nll_loss(p, labels, reduction="sum"), torch.Tensor)
assert_type(onepass.log_prob(p, labels, 0.9), torch.Tensor)
assert_type(onepass.log_prob(p, labels, return_entropy=True), tuple[torch.Tensor, torch.Tensor])
assert_type(onepass.log_prob(a, whole), "NDArray[np.floating[Any]]")
onepass.cross_entropy(a, whole, divisor=3, dtype="f8")
onepass.cross_entropy(p, labels, ignore_index=2.5)  # type: ignore[call-overload]
assert_type(onepass.nn.NLLLoss(p, ignore_index=0)(p, labels, divisor=3), torch.Tensor)
flag: bool = True
assert_type(onepass.log_prob(p, labels, 1.0, None, -100, True), tuple[torch.Tensor, torch.Tensor])
pair: tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]] = onepass.log_prob(a, whole, 1.0, None, -100, True)
assert_type(onepass.log_prob(p, labels, return_entropy=flag), Any)
assert_type(onepass.log_prob(a, whole, return_entropy=flag), Any)
onepass.cross_entropy(a, whole, None, None, -100, None, "none", 0.1)
assert_type(onepass.nll_loss(p, labels, None, None, -100, None, "none"), torch.Tensor)
assert_type(onepass.cross_entropy(p, labels, ignore_index=np.int64(3), divisor=np.float32(3)), torch.Tensor)
assert_type(onepass.cross_entropy(p, labels, ignore_index=labels[0], divisor=np.array(3.0)), torch.Tensor)
assert_type(onepass.cross_entropy(p, labels, divisor=Fraction(3), temperature=torch.tensor(2.0)), torch.Tensor)
assert_type(onepass.poly_loss(p, labels, epsilon=torch.tensor(1.0), softcap=None), torch.Tensor)
assert_type(onepass.nn.CrossEntropyLoss(p, None, np.int64(3), None, "sum", 0.1), onepass.nn.CrossEntropyLoss)
assert_type(onepass.value_and_grad("nll", a, whole), "tuple[np.floating[Any], NDArray[np.floating[Any]]]")
onepass.cross_entropy(a, whole, ignore_index=np.int64(3), divisor=np.array(3.0), temperature=np.array(2.0))
onepass.cross_entropy(a, whole, inplace=True)  # type: ignore[call-overload]
onepass.cross_entropy(p, labels, divisor="3")  # type: ignore[call-overload]
onepass.log_prob(a, whole, inplace=True)  # type: ignore[call-overload]
onepass.log_prob(a, labels)  # type: ignore[call-overload]

# Reductions: those that are written out tell a number from an array, by name or by position; any other string does not.
word: str = "mean"
onepass.cross_entropy(a, whole, reduction=word)
assert_type(onepass.cross_entropy(p, labels, reduction=word), torch.Tensor)
assert_type(onepass.nn.CrossEntropyLoss(reduction=word), onepass.nn.CrossEntropyLoss)
assert_type(onepass.mse_loss(p, t, reduction=word), torch.Tensor)
assert_type(onepass.mse_loss(a, b, reduction=word), "Union[np.floating[Any], NDArray[np.floating[Any]]]")
assert_type(onepass.sigmoid_focal_loss(a, b, reduction=word), "Union[np.floating[Any], NDArray[np.floating[Any]]]")
assert_type(onepass.mse_loss(a, b, size_average=False), "Union[np.floating[Any], NDArray[np.floating[Any]]]")
assert_type(onepass.huber_loss(a, b, "none"), "NDArray[np.floating[Any]]")
assert_type(onepass.huber_loss(a, b, "sum", 2, a), "np.floating[Any]")
assert_type(onepass.hinge_loss(a, b, 0.5, "none", weight=a), "NDArray[np.floating[Any]]")
assert_type(onepass.mse_loss(a, b, None, None, "none"), "NDArray[np.floating[Any]]")
assert_type(onepass.mse_loss(a, b, reduction="none"), "NDArray[np.floating[Any]]")
assert_type(onepass.sigmoid_focal_loss(a, b, 0.25, 2, "mean"), "np.floating[Any]")
assert_type(onepass.sigmoid_focal_loss(a, b, 0.25, 2, "none"), "NDArray[np.floating[Any]]")
assert_type(onepass.kl_div(a, b, reduction="batchmean"), "np.floating[Any]")
assert_type(onepass.log_cosh_loss(a, b, reduction="batchmean"), "np.floating[Any]")

# Parameters: every real number.
assert_type(onepass.hinge_loss(p, t, torch.tensor(0.5)), torch.Tensor)
assert_type(onepass.smooth_l1_loss(p, t, beta=torch.tensor(0.5)), torch.Tensor)
assert_type(onepass.smooth_l1_loss(a, b, beta=np.float32(0.5)), "np.floating[Any]")
assert_type(onepass.quantile_loss(a, b, tau=np.array(0.5)), "np.floating[Any]")
assert_type(onepass.quantile_loss(p, t, tau=Fraction(1, 2)), torch.Tensor)
assert_type(onepass.mape_loss(a, b, eps=Decimal("0.5"), reduction="none"), "NDArray[np.floating[Any]]")
assert_type(onepass.gaussian_nll_loss(a, b, np.float32(2)), "np.floating[Any]")
assert_type(onepass.gaussian_nll_loss(p, t, Fraction(1, 2)), torch.Tensor)
assert_type(onepass.value_and_grad("smooth_l1", a, b, beta=np.float32(0.5))[0], "np.floating[Any]")
assert_type(onepass.nn.HingeLoss(np.float32(0.5))(p, t), torch.Tensor)
assert_type(onepass.nn.SmoothL1Loss(beta=np.float32(0.5))(p, t), torch.Tensor)
assert_type(onepass.nn.CharbonnierLoss(torch.tensor(0.5))(p, t), torch.Tensor)

# Losses of a linear layer's outputs.
assert_type(onepass.linear_cross_entropy(p, t, t, linear_bias=p, num_items=t, z_loss=0.5), torch.Tensor)
assert_type(onepass.linear_log_prob(p, t, t, temperature=0.5), torch.Tensor)
assert_type(onepass.causal_lm_loss(p, t, 10, num_items_in_batch=3), torch.Tensor)
assert_type(onepass.nt_xent_loss(p, t) + onepass.supcon_loss(p, t, reduction="sum"), torch.Tensor)
assert_type(onepass.nn.LinearCrossEntropyLoss(3, 4, bias=True)(p, t, num_items=2), torch.Tensor)
assert_type(onepass.nn.NTXentLoss(0.5)(p, t) + onepass.nn.SupConLoss()(p, t), torch.Tensor)

# Losses of vectors, margins and regions.
assert_type(onepass.cosine_similarity(p, t, -1, weight=p), torch.Tensor)
assert_type(onepass.triplet_margin_loss(p, t, p, swap=True, mask=mask, divisor=t), torch.Tensor)
assert_type(onepass.pairwise_distance(a, b, 1), Any)
assert_type(onepass.cosine_embedding_loss(a, b, whole, reduction="sum"), Any)
assert_type(onepass.triplet_margin_with_distance_loss(p, t, p, distance_function=torch.dist), torch.Tensor)
assert_type(onepass.multi_margin_loss(p, labels, 2) + onepass.multilabel_soft_margin_loss(p, t, p), torch.Tensor)
assert_type(onepass.multi_margin_loss(a, whole, row_weight=b), Any)
assert_type(onepass.multilabel_margin_loss(a, whole), Any)
assert_type(onepass.multilabel_soft_margin_loss(a, b), Any)
assert_type(onepass.dice_loss(p, t, mode="multilabel", per="sample", ignore_index=255), torch.Tensor)
assert_type(onepass.nn.TverskyLoss("multiclass", alpha=0.3)(p, labels), torch.Tensor)
assert_type(onepass.nn.PairwiseDistance(1, keepdim=True)(p, t), torch.Tensor)
assert_type(onepass.kl_div_with_logits(p, t, 2.0, True, mask=mask, divisor=3), torch.Tensor)
assert_type(onepass.js_div_with_logits(a, b, beta=0.1, reduction="none"), Any)
assert_type(onepass.nn.TVDistanceWithLogitsLoss(dim=1)(p, t, weight=p), torch.Tensor)
onepass.dice_loss(p, t, mode="ternary")  # type: ignore[call-overload]
onepass.cosine_similarity(p, a)  # type: ignore[call-overload]

module: torch.nn.Module = onepass.nn.MSELoss()
assert_type(onepass.losses()[0]["name"], Any)
assert_type(onepass.machine(), dict[str, Any])
version: str = onepass.__version__
with onepass.patch_torch() as patch:
    patch.undo()

onepass.mse_loss(p, a)  # type: ignore[call-overload]
onepass.mse_loss(p)  # type: ignore[call-overload]
onepass.mse_loss(p, t, bias=1)  # type: ignore[call-overload]
onepass.quantile_loss(p, t, tau="half")  # type: ignore[call-overload]
onepass.quantile_loss(a, b, tau=0.5j)  # type: ignore[call-overload]
onepass.smooth_l1_loss(p, t, beta=None)  # type: ignore[call-overload]
onepass.hinge_loss(a, b, "none")  # type: ignore[call-overload]
onepass.mse_loss(p, t, reduction=None)  # type: ignore[call-overload]
number: np.floating[Any] = onepass.smooth_l1_loss(a, b, reduction="batchmean")  # type: ignore[assignment]
array: NDArray[np.floating[Any]] = onepass.mse_loss(a, b, reduction="sum")  # type: ignore[assignment]
onepass.nn.HuberLoss(delta=np.float32(1))  # type: ignore[arg-type]
onepass.nn.QuantileLoss(quantile=0.5)  # type: ignore[call-arg]
onepass.nn.QuantileLoss()(p)  # type: ignore[call-arg]
onepass.linear_cross_entropy(p, t, t, p)  # type: ignore[call-arg]
onepass.absolute_loss(p, t)  # type: ignore[attr-defined]

# An accumulator, whose result has the type that is asked for.
whole_loss = onepass.Accumulator("smooth_l1", 3, beta=0.5, reduction="sum")
whole_loss.add(p, t, first=0, weight=p, mask=mask)
whole_loss.add(a, b, first=np.int64(0))
whole_loss.add(p, t)  # type: ignore[call-arg]
assert_type(whole_loss.finish(), float)
assert_type(whole_loss.finish(torch.float32), torch.Tensor)
whole_loss.finish(np.float32)
assert_type(whole_loss + onepass.Accumulator.from_bytes(bytes(whole_loss)), onepass.Accumulator)
assert_type(onepass.distributed.loss("mse", p, t, first=0, total=3, averaged=True), torch.Tensor)
