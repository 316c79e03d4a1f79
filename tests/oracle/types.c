/* The types: their bits as numbers, and numbers rounded to them, by integer arithmetic. */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

/* precision counts the hidden bit; smallest is the exponent of the smallest denormal. */
typedef struct format {
    const char *name;
    size_t size;
    int precision;
    int exponent_bits;
    int smallest;
} format;

static const format half = {"f16", 2, 11, 5, -24};
static const format brain = {"bf16", 2, 8, 8, -133};
static const format single = {"f32", 4, 24, 8, -149};
static const format twice = {"f64", 8, 53, 11, -1074};
static const format byte = {.name = "bool", .size = 1};

static const format *format_of(int32_t dtype) {
    switch (dtype) {
    case ONEPASS_F16:
        return &half;
    case ONEPASS_BF16:
        return &brain;
    case ONEPASS_F32:
        return &single;
    case ONEPASS_F64:
        return &twice;
    case ONEPASS_BOOL:
        return &byte;
    default:
        abort();
    }
}

size_t oracle_size(int32_t dtype) {
    return format_of(dtype)->size;
}

const char *oracle_dtype_name(int32_t dtype) {
    return format_of(dtype)->name;
}

uint64_t oracle_load_bits(int32_t dtype, const void *address) {
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (dtype) {
    case ONEPASS_BOOL:
        return *(const unsigned char *)address;
    case ONEPASS_F16:
    case ONEPASS_BF16:
        memcpy(&two, address, 2);
        return two;
    case ONEPASS_F32:
        memcpy(&four, address, 4);
        return four;
    case ONEPASS_F64:
        memcpy(&eight, address, 8);
        return eight;
    default:
        abort();
    }
}

void oracle_store_bits(int32_t dtype, void *address, uint64_t bits) {
    const uint16_t two = (uint16_t)bits;
    const uint32_t four = (uint32_t)bits;
    switch (dtype) {
    case ONEPASS_BOOL:
        *(unsigned char *)address = (unsigned char)bits;
        break;
    case ONEPASS_F16:
    case ONEPASS_BF16:
        memcpy(address, &two, 2);
        break;
    case ONEPASS_F32:
        memcpy(address, &four, 4);
        break;
    case ONEPASS_F64:
        memcpy(address, &bits, 8);
        break;
    default:
        abort();
    }
}

uint64_t oracle_double_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
}

double oracle_double_from_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

/* A finite number that is not zero, as whole * 2^exponent. */
typedef struct whole_number {
    uint64_t whole;
    int exponent;
} whole_number;

static int bit_length(uint64_t whole) {
    return 64 - __builtin_clzll(whole);
}

/* The magnitude bits (sign cut off) of a format, for the nearest number to
 * `number`, ties to even; infinity beyond the largest. */
static inline __attribute__((always_inline)) uint64_t round_to_format(const format *f, whole_number number) {
    int quantum = number.exponent + bit_length(number.whole) - f->precision;
    if (quantum < f->smallest) {
        quantum = f->smallest;
    }
    const int cut = quantum - number.exponent;
    uint64_t kept;
    if (cut <= 0) {
        kept = number.whole << -cut;
    } else if (cut > 54) {
        kept = 0; /* a whole has 53 bits at most, so this is less than half of the quantum */
    } else {
        const uint64_t rest = number.whole & ((UINT64_C(1) << cut) - 1);
        const uint64_t tie = UINT64_C(1) << (cut - 1);
        kept = number.whole >> cut;
        kept += rest > tie || (rest == tie && (kept & 1));
    }
    const uint64_t hidden = UINT64_C(1) << (f->precision - 1);
    if (kept == 2 * hidden) {
        kept = hidden;
        quantum++;
    }
    if (kept < hidden) {
        return kept;
    }
    const uint64_t field = (uint64_t)(quantum - f->smallest + 1);
    const uint64_t all_ones = (UINT64_C(1) << f->exponent_bits) - 1;
    return field >= all_ones ? all_ones * hidden : field * hidden + (kept - hidden);
}

/* Takes the bits of one format to those of another. Inlined, it knows both: most tests spend their time here. */
static inline __attribute__((always_inline)) uint64_t convert(const format *from, const format *to, uint64_t bits) {
    const uint64_t from_hidden = UINT64_C(1) << (from->precision - 1);
    const uint64_t to_hidden = UINT64_C(1) << (to->precision - 1);
    const uint64_t from_ones = (UINT64_C(1) << from->exponent_bits) - 1;
    const uint64_t to_ones = (UINT64_C(1) << to->exponent_bits) - 1;
    const uint64_t fraction = bits & (from_hidden - 1);
    const uint64_t field = bits >> (from->precision - 1) & from_ones;
    const uint64_t sign = bits >> (8 * from->size - 1) & 1;
    const uint64_t to_sign = sign << (8 * to->size - 1);
    if (field == from_ones) {
        return fraction ? to_ones * to_hidden + to_hidden / 2 : to_sign + to_ones * to_hidden;
    }
    whole_number number = {fraction, from->smallest};
    if (field) {
        number.whole += from_hidden;
        number.exponent += (int)field - 1;
    }
    return number.whole ? to_sign + round_to_format(to, number) : to_sign;
}

double oracle_decode(int32_t dtype, uint64_t bits) {
    switch (dtype) {
    case ONEPASS_F16:
        return oracle_double_from_bits(convert(&half, &twice, bits));
    case ONEPASS_BF16:
        return oracle_double_from_bits(convert(&brain, &twice, bits));
    case ONEPASS_F32:
        return oracle_double_from_bits(convert(&single, &twice, bits));
    case ONEPASS_F64:
        return oracle_double_from_bits(convert(&twice, &twice, bits));
    case ONEPASS_BOOL:
        return bits != 0;
    default:
        abort();
    }
}

uint64_t oracle_encode(int32_t dtype, double value) {
    const uint64_t bits = oracle_double_bits(value);
    switch (dtype) {
    case ONEPASS_F16:
        return convert(&twice, &half, bits);
    case ONEPASS_BF16:
        return convert(&twice, &brain, bits);
    case ONEPASS_F32:
        return convert(&twice, &single, bits);
    case ONEPASS_F64:
        return convert(&twice, &twice, bits);
    case ONEPASS_BOOL:
        return value != 0;
    default:
        abort();
    }
}

void oracle_round(int32_t dtype, double *number, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        number[i] = oracle_decode(dtype, oracle_encode(dtype, number[i]));
    }
}

double oracle_load(int32_t dtype, const void *address) {
    return oracle_decode(dtype, oracle_load_bits(dtype, address));
}

void oracle_store(int32_t dtype, void *address, double value) {
    oracle_store_bits(dtype, address, oracle_encode(dtype, value));
}
