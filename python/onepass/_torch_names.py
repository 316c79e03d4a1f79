"""What PyTorch calls the losses that it has: the one table of its names, for whatever falls back to PyTorch, is measured
against it or tested against it."""

from typing import NamedTuple, Optional


class TorchName(NamedTuple):
    """A function of torch.nn.functional, and how it says one loss of the catalogue."""

    function: str
    fixed: dict = {}  #: the arguments that make it this loss
    parameters: tuple = ()  #: the names of the loss's parameters, in the catalogue's order
    third: Optional[str] = None  #: the name of a third operand


TORCH_NAMES = {
    "mse": TorchName("mse_loss"),
    "l1": TorchName("l1_loss"),
    "smooth_l1": TorchName("smooth_l1_loss", {}, ("beta",)),
    "huber": TorchName("huber_loss", {}, ("delta",)),
    "soft_margin": TorchName("soft_margin_loss"),
    "hinge_embedding": TorchName("hinge_embedding_loss", {}, ("margin",)),
    "margin_ranking": TorchName("margin_ranking_loss", {}, ("margin",), "target"),
    "bce": TorchName("binary_cross_entropy"),
    "bce_with_logits": TorchName("binary_cross_entropy_with_logits"),
    "bce_with_logits_pos_weight": TorchName("binary_cross_entropy_with_logits", {}, (), "pos_weight"),
    "poisson_nll": TorchName("poisson_nll_loss", {"log_input": True, "full": False}),
    "poisson_nll_full": TorchName("poisson_nll_loss", {"log_input": True, "full": True}),
    "poisson_nll_rate": TorchName("poisson_nll_loss", {"log_input": False, "full": False}, ("eps",)),
    "poisson_nll_rate_full": TorchName("poisson_nll_loss", {"log_input": False, "full": True}, ("eps",)),
    "gaussian_nll": TorchName("gaussian_nll_loss", {}, ("full", "eps"), "var"),
    "kl_div": TorchName("kl_div", {"log_target": False}),
    "kl_div_log_target": TorchName("kl_div", {"log_target": True}),
}

#: Its functions of losses over rows, whose names are ours, too.
ROW_NAMES = {"cross_entropy", "nll_loss"}

#: The same of vector losses.
VECTOR_NAMES = {"cosine_embedding_loss", "cosine_similarity", "multi_margin_loss",
                "multilabel_margin_loss", "pairwise_distance", "triplet_margin_loss"}
