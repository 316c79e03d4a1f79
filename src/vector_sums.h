/* What a vector loss is told about a row, and what it makes of it: double in every compute type. */
#ifndef ONEPASS_VECTOR_SUMS_H
#define ONEPASS_VECTOR_SUMS_H

#define VECTOR_MOST_SUMS    3
#define VECTOR_MOST_FACTORS 3

/* What is known of a row whose two vectors are logits before a loss looks at its elements. */
typedef struct vector_softmaxes {
    double largest[2]; /* logit; NaN: the row has no softmax */
    double per_sum[2]; /* one over the sum of the exponentials */
    double above;      /* lse - largest logit of the second, less that of the first; logits over the temperature */
    double carried;    /* the mean, by the second's probabilities, of how much more its logit lies above its largest
                          than the first's does; of losses without sums */
} vector_softmaxes;

typedef struct vector_sums {
    double sum[VECTOR_MOST_SUMS]; /* of what each element adds to them */
    double number;                /* of the operand that is one number a row */
    double length;                /* how many elements a vector has */
    vector_softmaxes softmaxes;   /* of a loss that has them */
} vector_sums;

/* Of a loss with labels two factors are not its own to choose: the slope of the label's element, and, as the engines
 * leave it for them who write slopes, that element itself. */
#define VECTOR_OWN_POWER   0 /* a parameter */
#define VECTOR_OWN_SLOPE   1
#define VECTOR_OWN_ELEMENT 2

/* The row's value, and factors of its slopes: a slope is a sum of products with one factor each, so that whatever
 * multiplies all slopes of a row can be multiplied into the factors. */
typedef struct vector_slopes {
    double value;
    double factor[VECTOR_MOST_FACTORS];
} vector_slopes;

#endif
