/* The numbers of losses over rows that are double in every compute type: what a call says about the logits, as the plan
 * hands it to the engines, and what a row comes to. */
#ifndef ONEPASS_ROW_SCALE_H
#define ONEPASS_ROW_SCALE_H

typedef struct softmax_scale {
    double factor, factor_low; /* log2(e) / temperature, as the sum of two doubles */
    double softcap;            /* logits z become softcap * tanh(z / softcap); 0: they stay */
    double per_temperature;    /* 1 / temperature */
} softmax_scale;

/* What a row's tiles come to, and what the backward pass needs of it: ROW_STATE doubles. */
typedef struct softmax_row {
    double largest; /* of the logits; NaN: the row has no softmax */
    double others;  /* the sum of all exponentials but `own`, by the largest of the tiles' exponents */
    double own;     /* the label's, by the same; without a label that of the classes that lead, all of them */
    double lse;     /* the logarithm of the sum of e^z */
    double weights; /* the sum of the class weights, or of weights times probabilities */
} softmax_row;

/* What a loss is told about a row. */
typedef struct row_sums {
    double nll;      /* lse - z_y of the label y: minus the logarithm of its probability */
    double lse;      /* the logarithm of the sum of e^z */
    double own;      /* the label's probability ... */
    double others;   /* ... and that of all others together, both without cancellation */
    double weight;   /* the label's class weight, or 1 */
    double weighted; /* sum of u_c (lse - z_c) over the classes, u_c being the class weights, or these times q_c */
    double weights;  /* sum of u_c */
    double classes;  /* how many there are */
} row_sums;

/* What a loss makes of it: the row's value, and the slope in z_c, exponentials * p_c - weights * u_c, but for the
 * label's own class, whose slope stands by itself. */
typedef struct row_slopes {
    double value;
    double exponentials;
    double weights;
    double own;
} row_slopes;

#endif
