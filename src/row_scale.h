/* What a call says about the logits of a loss over rows, as the plan hands it to the engines. */
#ifndef ONEPASS_ROW_SCALE_H
#define ONEPASS_ROW_SCALE_H

typedef struct softmax_scale {
    double factor, factor_low; /* log2(e) / temperature, as the sum of two doubles */
    double softcap;            /* logits z become softcap * tanh(z / softcap); 0: they stay */
    double per_temperature;    /* 1 / temperature */
} softmax_scale;

#endif
