/*
 * The loops over one loss, for plain.c alone, which includes this file once a loss
 * with LOSS defined. The loop must see the formula to vectorise it, and a function
 * pointer does not survive the outlining of a parallel region: hence an include.
 */
#define JOINED(loss, part) loss##_##part
#define JOIN(loss, part)   JOINED(loss, part)
#define OF_THIS_LOSS(part) JOIN(LOSS, part)

static float OF_THIS_LOSS(forward)(int64_t count, const float *p, const float *t, float k, int threads) {
    float s = 0;
#pragma omp parallel for simd reduction(+ : s) num_threads(threads)
    for (int64_t i = 0; i < count; i++)
        s += OF_THIS_LOSS(term)(p[i], t[i], k);
    return s;
}

static void OF_THIS_LOSS(backward)(int64_t count, const float *p, const float *t, float k, float scale, float *gradient,
                                   int threads) {
#pragma omp parallel for simd num_threads(threads)
    for (int64_t i = 0; i < count; i++)
        gradient[i] = OF_THIS_LOSS(slope)(p[i], t[i], k) * scale;
}

static float OF_THIS_LOSS(both)(int64_t count, const float *p, const float *t, float k, float scale, float *gradient,
                                int threads) {
    float s = 0;
#pragma omp parallel for simd reduction(+ : s) num_threads(threads)
    for (int64_t i = 0; i < count; i++) {
        s += OF_THIS_LOSS(term)(p[i], t[i], k);
        gradient[i] = OF_THIS_LOSS(slope)(p[i], t[i], k) * scale;
    }
    return s;
}

static float OF_THIS_LOSS(nested)(const plain_work *work) {
    const int64_t *n = work->shape, *ps = work->strides[0], *ts = work->strides[1];
    const float k = work->parameter;
    float s = 0;
#pragma omp parallel for collapse(3) reduction(+ : s) num_threads(work->threads)
    for (int64_t a = 0; a < n[0]; a++)
        for (int64_t b = 0; b < n[1]; b++)
            for (int64_t c = 0; c < n[2]; c++) {
                const float *p = work->operand[0] + a * ps[0] + b * ps[1] + c * ps[2];
                const float *t = work->operand[1] + a * ts[0] + b * ts[1] + c * ts[2];
                int64_t p_step = ps[3], t_step = ts[3];
#pragma omp simd reduction(+ : s)
                for (int64_t d = 0; d < n[3]; d++)
                    s += OF_THIS_LOSS(term)(p[d * p_step], t[d * t_step], k);
            }
    return s;
}

#undef JOINED
#undef JOIN
#undef OF_THIS_LOSS
