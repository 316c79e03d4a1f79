/* Hinge embedding: a distance where the target is 1, how far it falls short of a margin where the target is -1. Any
 * other target has both, as in PyTorch. */
#ifndef ONEPASS_LOSS_HINGE_EMBEDDING_H
#define ONEPASS_LOSS_HINGE_EMBEDDING_H

LOSS_FUNCTION real hinge_embedding_value(real p, real t, const real *parameter) {
    const real shortfall = parameter[0] - p;
    const real m = not_negative(shortfall);
    return choose(t != 1, m, 0) + choose(t != -1, p, 0);
}

/* The kink included, as in the gradient of PyTorch's clamp_min. */
LOSS_FUNCTION real hinge_embedding_slope_p(real p, real t, const real *parameter) {
    const real counts = choose(parameter[0] - p >= 0, 1, 0);
    return choose(t != -1, 1, 0) - choose(t != 1, counts, 0);
}

LOSS_FUNCTION real hinge_embedding_slope_t(real p, real t, const real *parameter) {
    (void)p, (void)t, (void)parameter;
    return 0;
}

#endif

LOSS(hinge_embedding, (prediction, target), SHORT,
     "a distance of what is alike; of what is not, how far it falls short",
     "(t != 1 ? max(margin - p, 0) : 0) + (t != -1 ? p : 0)",
     "(t != -1 ? 1 : 0) - (t != 1 ? (margin - p >= 0 ? 1 : 0) : 0)", ACCURACY("margin - p", ULP(0.5), ULP(0), ULP(0)),
     PARAMETERS({"margin", "the distance that is enough where the target is -1", 1.0, ANY}))
