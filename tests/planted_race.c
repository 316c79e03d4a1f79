/*
 * Proves that the thread sanitizer works here before its silence is believed. With the argument "race" two threads add
 * to one variable, which it must report; without, they reduce properly, which it must not (without OpenMP's own
 * tool, Archer, it would).
 */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    long sum = 0;
    if (argc > 1 && strcmp(argv[1], "race") == 0) {
#pragma omp parallel for num_threads(2)
        for (int i = 0; i < 100000; i++)
            sum += i;
    } else {
#pragma omp parallel for num_threads(2) reduction(+ : sum)
        for (int i = 0; i < 100000; i++)
            sum += i;
    }
    printf("%ld\n", sum);
    return 0;
}
