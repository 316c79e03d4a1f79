/*
 * 16: a mean over the ranks of an MPI program, with the same bits for any number of them.
 *
 * Shows ranks that have a share each of an array, cut at any element. What a share comes to
 * travels as a few kilobytes, whatever its size, in one MPI_Allgatherv; every rank then has
 * the very bits that one call over the whole array would have. MPI_Allreduce of the ranks'
 * sums would have other bits for another number of ranks.
 *
 *     mpicc -O2 16_mpi.c -lonepass -o 16_mpi
 *     mpirun -n 7 ./16_mpi
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include <onepass.h>

enum {
    COUNT = 3000017
};

/* The whole array, of which a rank only ever has its share in memory. */
static float prediction_at(int64_t i) {
    return (float)(i % 1009) / 7;
}
static float target_at(int64_t i) {
    return (float)(i % 911) / 11;
}

/* A rank that fails takes the others with it: none of them has a number then. */
static void check(onepass_status status, int rank) {
    if (status == ONEPASS_OK)
        return;
    fprintf(stderr, "rank %d: %s: %s\n", rank, onepass_status_name(status), onepass_message());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *allocate(size_t size, int rank) {
    void *memory = malloc(size ? size : 1);
    if (!memory) {
        fprintf(stderr, "rank %d: no memory\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

/* This rank's share, elements first to end - 1. Its gradients could be asked for in the same call: they are scaled by
 * the count of the whole. */
static onepass_accumulator *add_share(const onepass_call *whole, int64_t first, int64_t end, int rank) {
    const int64_t count = end - first;
    float *p = allocate((size_t)count * sizeof *p, rank), *t = allocate((size_t)count * sizeof *t, rank);
    for (int64_t i = 0; i < count; i++) {
        p[i] = prediction_at(first + i);
        t[i] = target_at(first + i);
    }
    const onepass_tensor prediction = {p, ONEPASS_F32, 1, &count, NULL};
    const onepass_tensor target = {t, ONEPASS_F32, 1, &count, NULL};
    onepass_call slice = *whole;
    slice.operand[ONEPASS_PREDICTION] = &prediction;
    slice.operand[ONEPASS_TARGET] = &target;
    onepass_accumulator *share = NULL;
    check(onepass_accumulator_begin(&share, whole, COUNT), rank);
    check(onepass_accumulator_add(share, &slice, first), rank);
    free(p);
    free(t);
    return share;
}

/* All ranks' shares, merged on every rank. `bytes` is what travelled, of all ranks together. */
static onepass_accumulator *gather(const onepass_accumulator *share, const onepass_call *whole, int ranks, int rank,
                                   int *bytes) {
    size_t size = 0;
    check(onepass_accumulator_export(share, NULL, 0, &size), rank);
    unsigned char *own = allocate(size, rank);
    check(onepass_accumulator_export(share, own, size, &size), rank);

    int *sizes = allocate((size_t)ranks * sizeof *sizes, rank),
        *places = allocate((size_t)ranks * sizeof *places, rank);
    const int own_size = (int)size;
    MPI_Allgather(&own_size, 1, MPI_INT, sizes, 1, MPI_INT, MPI_COMM_WORLD);
    *bytes = 0;
    for (int i = 0; i < ranks; i++) {
        places[i] = *bytes;
        *bytes += sizes[i];
    }
    unsigned char *all = allocate((size_t)*bytes, rank);
    MPI_Allgatherv(own, own_size, MPI_BYTE, all, sizes, places, MPI_BYTE, MPI_COMM_WORLD);

    onepass_accumulator *merged = NULL;
    check(onepass_accumulator_begin(&merged, whole, COUNT), rank);
    for (int i = 0; i < ranks; i++) {
        onepass_accumulator *part = NULL;
        check(onepass_accumulator_import(&part, all + places[i], (size_t)sizes[i]), rank);
        check(onepass_accumulator_merge(merged, part), rank);
        onepass_accumulator_destroy(part);
    }
    free(all);
    free(places);
    free(sizes);
    free(own);
    return merged;
}

int main(int argc, char **argv) {
    int rank = 0, ranks = 1, bytes = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    const onepass_call whole = {.size = sizeof whole, .loss = "mse", .reduction = ONEPASS_MEAN, .threads = 1};
    const int64_t first = (int64_t)COUNT * rank / ranks, end = (int64_t)COUNT * (rank + 1) / ranks;
    onepass_accumulator *share = add_share(&whole, first, end, rank);
    onepass_accumulator *merged = gather(share, &whole, ranks, rank, &bytes);
    double mean = 0, most = 0, least = 0;
    const onepass_tensor value = {&mean, ONEPASS_F64, 0, NULL, NULL};
    check(onepass_accumulator_finish(merged, &value), rank);
    onepass_accumulator_destroy(merged);
    onepass_accumulator_destroy(share);

    MPI_Reduce(&mean, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mean, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    const int is_same = rank != 0 || most == least;
    if (!is_same)
        fprintf(stderr, "the ranks' means differ: %a to %a\n", least, most);
    else if (rank == 0)
        printf("%d ranks, %d bytes: on every rank the mean is %a\n", ranks, bytes, mean);
    MPI_Finalize();
    return is_same ? 0 : 1;
}
