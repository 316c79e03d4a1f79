/*
 * A fuzzer of the parser of .npy headers. Whatever the bytes, the parser stays inside them; an array that it finds lies
 * in the file, to the last byte; a failure has a sentence. What it can read, npy_write_header can write, and reading
 * that gives the same array.
 *
 * Under libFuzzer this is the whole program; elsewhere fuzz_driver.c calls it with pseudo-random bytes.
 */
#include "../cli/files/npy.h"

#include "fuzz_files.h"

long fuzz_failures;
bool fuzz_goes_on;

static const char *const members[] = {
    "'descr': '<f4', ",
    "'descr': '>f8', ",
    "'descr':'|V2',",
    "\"descr\" : \"<u2\" , ",
    "'descr': '=f2'",
    "'descr': '|O', ",
    "'descr': [('a', '<f4')], ",
    "'fortran_order': False, ",
    "'fortran_order': True, ",
    "'fortran_order':\tTrue\n",
    "'fortran_order': Maybe, ",
    "'shape': (), ",
    "'shape': (3, 4), ",
    "'shape': (2L, 3, 1,), ",
    "'shape': (0, 9223372036854775807)",
    "'shape': (6,), ",
    "'shape': (9223372036854775807, 2), ",
    "'shape': (-1,), ",
    "'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1), ",
    "'color': 'red', ",
    ", ",
    "}",
    "'descr': '|b1', ",
    "'descr': '<u1', ",
};

static const char magic[8] = "\x93NUMPY\x01";

/* The dictionary of a dressed file is the input itself, or made of members. Its version
 * is any of the three. */
static built build(const choice *choice, const uint8_t *data, size_t size) {
    built file = {0}, dictionary = {0};
    if (choice->dressing == 0) {
        append(&file, data, size);
        return file;
    }
    if (choice->dressing == 1)
        append(&dictionary, data, size);
    else
        append_members(&dictionary, data, size, members, sizeof members / sizeof *members);
    append(&file, magic, sizeof magic);
    file.bytes[6] = (unsigned char)(1 + (choice->dressing + choice->amount) % 3);
    append_number(&file, dictionary.size, file.bytes[6] == 1 ? 2 : 4);
    append(&file, dictionary.bytes, dictionary.size);
    free(dictionary.bytes);
    return file;
}

/* Only numbers, and class indices of 64 bits, are ever written. */
static void check_written(const layout *array) {
    const purpose purpose = array->dtype == ONEPASS_I64 ? FOR_LABELS : FOR_NUMBERS;
    if (!suits(array->dtype, purpose))
        return;
    char header[NPY_MOST_HEADER];
    const size_t size = npy_write_header(header, array->dtype, array->ndim, array->shape);
    fuzz_check(size % 64 == 0 && size <= sizeof header, "a header is written with an odd length");
    layout again;
    problem problem;
    const uint64_t bytes = (uint64_t)array->count * onepass_dtype_size(array->dtype);
    const bool good = npy_parse((const unsigned char *)header, size, size + bytes, purpose, &again, &problem);
    fuzz_check(good, "what was written cannot be read");
    fuzz_check(!good || (again.dtype == array->dtype && !again.swapped && again.ndim == array->ndim &&
                         again.count == array->count && again.offset == size &&
                         memcmp(again.shape, array->shape, (size_t)again.ndim * sizeof *again.shape) == 0),
               "what was written reads as another array");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const choice choice = choose(data, size);
    const built file = build(&choice, data, size);
    const uint64_t file_size = choose_file_size(&choice, file.size);
    static const purpose purposes[] = {FOR_NUMBERS, FOR_NUMBERS_OR_BITS, FOR_MASK, FOR_LABELS};
    const purpose purpose = purposes[choice.option % 4];
    layout layout;
    problem problem;
    memset(&layout, 0x5a, sizeof layout);
    memset(&problem, 0x5a, sizeof problem);
    npy_is_meant(file.bytes, file.size);
    if (npy_parse(file.bytes, file.size, file_size, purpose, &layout, &problem)) {
        fuzz_check(suits(layout.dtype, purpose), "an array is not what was wanted");
        check_layout(&layout, file_size);
        fuzz_check(layout.offset <= file.size, "a header is longer than what was read");
        fuzz_check(layout.offset + (uint64_t)layout.count * onepass_dtype_size(layout.dtype) == file_size,
                   "an array is not all of its file");
        check_written(&layout);
    } else {
        check_problem(&problem);
    }
    free(file.bytes);
    return 0;
}
