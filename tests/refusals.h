/*
 * What the tests of refusals share: a good call to spoil, edits that spoil it, and what is expected of a refusal, which
 * is the right status, a sentence that names what was wrong, and nothing written.
 *
 * A case is a good call plus a few edits. Everything that a call can reach (the call itself, its tensors, their
 * shapes, strides and memory) lies in one struct, the scene, so that an edit is an offset and a number, the cases are
 * tables, and "nothing was written" is one memcmp of the scene with what it was before.
 *
 * Like check.h it is a header of static functions, and each program has a scene of its own.
 */
#ifndef ONEPASS_TESTS_REFUSALS_H
#define ONEPASS_TESTS_REFUSALS_H

#include <onepass.h>

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "check.h"

#define HOLDS(condition) CHECK(condition, "%s does not hold", #condition)
#define COUNT(array)     (sizeof(array) / sizeof *(array))

/* ---------------------------------------------------------------- the scene -- */

enum {
    ROOM = 512, /* bytes behind each tensor, far more than a good call touches */
    EXTENTS = ONEPASS_MAX_DIMENSIONS + 4,
    POISON = 0xA5
};

typedef struct part {
    onepass_tensor tensor;
    int64_t shape[EXTENTS];
    int64_t strides[EXTENTS];
    _Alignas(64) unsigned char memory[ROOM];
} part;

typedef struct scene {
    onepass_call call;
    unsigned char tail[16]; /* what a call of a later version would have behind ours */
    part prediction, target, third, weight, mask, upstream, value, gradient_p, gradient_t, gradient_v;
    part log_sum_exp, predicted, row_state, divisor, divided_by;
} scene;

static scene stage, before;

static inline void place_tensor(part *part, int32_t ndim) {
    memset(part->memory, POISON, ROOM);
    part->tensor = (onepass_tensor){part->memory, ONEPASS_F32, ndim, part->shape, NULL};
    part->shape[0] = 2;
    part->shape[1] = 3;
    for (int i = 2; i < EXTENTS; i++)
        part->shape[i] = 1;
}

/* The good call that most cases start from: mean squared error of (2, 3) floats, everything wanted, a weight of 1 and a
 * mask that leaves all. */
static inline scene *good_scene(void) {
    scene *s = &stage;
    memset(s, 0, sizeof *s);
    place_tensor(&s->prediction, 2);
    place_tensor(&s->target, 2);
    place_tensor(&s->third, 2);
    place_tensor(&s->weight, 0);
    place_tensor(&s->mask, 0);
    place_tensor(&s->upstream, 0);
    place_tensor(&s->value, 0);
    place_tensor(&s->gradient_p, 2);
    place_tensor(&s->gradient_t, 2);
    place_tensor(&s->gradient_v, 2);
    memcpy(s->prediction.memory, (float[]){1, 2, 3, 4, 5, 6}, 6 * sizeof(float));
    memcpy(s->target.memory, (float[]){0, 0, 0, 1, 1, 1}, 6 * sizeof(float));
    memcpy(s->third.memory, (float[]){1, 1, 1, 1, 1, 1}, 6 * sizeof(float));
    memcpy(s->weight.memory, (float[]){1, 1, 1, 1, 1, 1}, 6 * sizeof(float));
    memcpy(s->mask.memory, (char[]){1, 1, 1, 1, 1, 1}, 6);
    s->mask.tensor.dtype = ONEPASS_BOOL;
    memcpy(s->upstream.memory, (float[]){1}, sizeof(float));
    s->call.size = sizeof s->call;
    s->call.loss = "mse";
    s->call.operand[ONEPASS_PREDICTION] = &s->prediction.tensor;
    s->call.operand[ONEPASS_TARGET] = &s->target.tensor;
    s->call.weight = &s->weight.tensor;
    s->call.mask = &s->mask.tensor;
    s->call.upstream = &s->upstream.tensor;
    s->call.value = &s->value.tensor;
    s->call.gradient[ONEPASS_PREDICTION] = &s->gradient_p.tensor;
    s->call.gradient[ONEPASS_TARGET] = &s->gradient_t.tensor;
    return s;
}

/* The same for a loss of three operands, the third being a variance of 1. */
static inline scene *third_scene(void) {
    scene *s = good_scene();
    s->call.loss = "gaussian_nll";
    s->call.operand[ONEPASS_THIRD] = &s->third.tensor;
    s->call.gradient[ONEPASS_THIRD] = &s->gradient_v.tensor;
    return s;
}

/* ---------------------------------------------------------------- the edits -- */

typedef enum edit_kind {
    NO_EDIT,
    SET_INTEGER,
    SET_REAL,
    SET_TEXT,
    SET_MEMBER,  /* a pointer to somewhere in the scene */
    SET_SHAPE,   /* of a part: number of dimensions, then extents */
    SET_STRIDES, /* of a part */
} edit_kind;

typedef struct edit {
    edit_kind kind;
    size_t offset, size;
    int64_t integer[4];
    double real;
    const char *text;
} edit;

#define FIELD(type, field) offsetof(type, field), sizeof(((type *)0)->field)
#define INTEGER(field, number)                                                                                         \
    { SET_INTEGER, FIELD(scene, field), {(int64_t)(number)}, 0, NULL }
#define NOTHING(field)                                                                                                 \
    { SET_INTEGER, FIELD(scene, field), {0}, 0, NULL }
#define REAL(field, number)                                                                                            \
    { SET_REAL, FIELD(scene, field), {0}, (number), NULL }
#define TEXT(field, string)                                                                                            \
    { SET_TEXT, FIELD(scene, field), {0}, 0, (string) }
#define MEMBER(field, member)                                                                                          \
    { SET_MEMBER, FIELD(scene, field), {(int64_t)offsetof(scene, member)}, 0, NULL }
#define SHAPE(part, ndim, ...)                                                                                         \
    { SET_SHAPE, FIELD(scene, part), {(ndim), __VA_ARGS__}, 0, NULL }
#define STRIDES(part, ...)                                                                                             \
    { SET_STRIDES, FIELD(scene, part), {__VA_ARGS__}, 0, NULL }
#define OWN_INTEGER(field, number)                                                                                     \
    { SET_INTEGER, FIELD(part, field), {(int64_t)(number)}, 0, NULL }
#define OWN_SHAPE(ndim, ...)                                                                                           \
    { SET_SHAPE, 0, sizeof(part), {(ndim), __VA_ARGS__}, 0, NULL }
#define OWN_STRIDES(...)                                                                                               \
    { SET_STRIDES, 0, sizeof(part), {__VA_ARGS__}, 0, NULL }

static inline void apply(scene *s, const edit *edit, size_t base) {
    unsigned char *at = (unsigned char *)s + base + edit->offset;
    part *part = (void *)at;
    const void *pointer;
    int32_t small;
    switch (edit->kind) {
    case NO_EDIT:
        break;
    case SET_INTEGER:
        small = (int32_t)edit->integer[0];
        memcpy(at, edit->size == sizeof small ? (void *)&small : (void *)edit->integer, edit->size);
        break;
    case SET_REAL:
        memcpy(at, &edit->real, sizeof edit->real);
        break;
    case SET_TEXT:
        memcpy(at, &edit->text, sizeof edit->text);
        break;
    case SET_MEMBER:
        pointer = (unsigned char *)s + edit->integer[0];
        memcpy(at, &pointer, sizeof pointer);
        break;
    case SET_SHAPE:
        part->tensor.ndim = (int32_t)edit->integer[0];
        memcpy(part->shape, edit->integer + 1, 3 * sizeof(int64_t));
        break;
    case SET_STRIDES:
        memcpy(part->strides, edit->integer, 4 * sizeof(int64_t));
        part->tensor.strides = part->strides;
        break;
    }
}

/* ---------------------------------------------------------------- the cases -- */

enum {
    EDITS = 8
};

/* `words` must all be in the message; they stand apart by '|'. A good case has ONEPASS_OK and no words. */
typedef struct argument_case {
    const char *name;
    onepass_status status;
    const char *words;
    edit edits[EDITS];
} argument_case;

/* ---------------------------------------------------------------- what is expected -- */

/* A sentence: something, without a line's end, and with every word that was expected. */
static inline bool sentence_has(const char *sentence, const char *words) {
    if (sentence[0] == '\0' || sentence[strlen(sentence) - 1] == '\n')
        return false;
    while (*words != '\0') {
        char word[64] = "";
        size_t length = strcspn(words, "|");
        memcpy(word, words, length);
        if (!strstr(sentence, word))
            return false;
        words += length + (words[length] == '|');
    }
    return true;
}

static inline void expect_refusal(onepass_status status, onepass_status expected, const char *words, const char *what) {
    const char *message = onepass_message();
    CHECK(status == expected, "%s: %s expected, %s came: \"%s\"", what, onepass_status_name(expected),
          onepass_status_name(status), message);
    CHECK(sentence_has(message, words), "%s: the message lacks one of \"%s\": \"%s\"", what, words, message);
}

/* The call of the scene, and then a good one: an error must leave no trace but its message. */
static inline void expect(scene *s, const argument_case *argument_case, const char *whose) {
    memcpy(&before, s, sizeof before);
    onepass_status status = onepass_run(&s->call);
    const char *message = onepass_message();
    CHECK(status == argument_case->status, "%s %s: %s expected, %s came: \"%s\"", whose, argument_case->name,
          onepass_status_name(argument_case->status), onepass_status_name(status), message);
    if (argument_case->status == ONEPASS_OK) {
        CHECK(message[0] == '\0', "%s %s: a message although all is well: \"%s\"", whose, argument_case->name, message);
        return;
    }
    CHECK(sentence_has(message, argument_case->words), "%s %s: the message lacks one of \"%s\": \"%s\"", whose,
          argument_case->name, argument_case->words, message);
    CHECK(sentence_has(message, whose), "%s %s: the message does not name it: \"%s\"", whose, argument_case->name,
          message);
    CHECK(memcmp(&before, s, sizeof before) == 0, "%s %s: something was written", whose, argument_case->name);
    status = onepass_run(&good_scene()->call);
    CHECK(status == ONEPASS_OK && onepass_message()[0] == '\0', "a good call after %s %s: %s \"%s\"", whose,
          argument_case->name, onepass_status_name(status), onepass_message());
}

static inline void run_cases(scene *(*make)(void), const argument_case *cases, size_t count, size_t base,
                             const char *whose) {
    for (size_t i = 0; i < count; i++) {
        scene *s = make();
        for (int e = 0; e < EDITS; e++)
            apply(s, &cases[i].edits[e], base);
        expect(s, &cases[i], whose);
    }
}

/* ---------------------------------------------------------------- parameters -- */

static inline void expect_parameter(scene *s, const onepass_parameter_info *known, int32_t index, double parameter,
                                    bool accepted) {
    s->call.parameter[index] = parameter;
    if (accepted)
        CHECK(onepass_run(&s->call) == ONEPASS_OK, "%s, %s = %g: \"%s\"", s->call.loss, known->name, parameter,
              onepass_message());
    else
        expect_refusal(onepass_run(&s->call), ONEPASS_INVALID_ARGUMENT, known->name, s->call.loss);
}

/* The list's word is the check's word: what it calls least or greatest is accepted, unless it says otherwise, what is
 * beyond is not, and NaN never is. */
static inline void expect_limits_of_parameters(scene *(*scene_of)(const onepass_loss_info *),
                                               const onepass_loss_info *info) {
    for (int32_t k = 0; k < info->parameter_count; k++) {
        const onepass_parameter_info *parameter = &info->parameter[k];
        const double least = parameter->minimum, greatest = parameter->maximum;
        scene *s = scene_of(info);
        s->call.loss = info->name;
        s->call.parameter_count = k + 1;
        for (int32_t j = 0; j < k; j++)
            s->call.parameter[j] = info->parameter[j].default_value;
        expect_parameter(s, parameter, k, parameter->default_value, true);
        expect_parameter(s, parameter, k, least, !parameter->minimum_excluded);
        expect_parameter(s, parameter, k, greatest, !parameter->maximum_excluded);
        const bool is_choice = strcmp(parameter->name, "p") == 0 || strcmp(parameter->name, "swap") == 0;
        expect_parameter(s, parameter, k, nextafter(greatest, -INFINITY), !is_choice); /* of one of two numbers */
        expect_parameter(s, parameter, k, NAN, false);
        if (!isinf(least))
            expect_parameter(s, parameter, k, nextafter(least, -INFINITY), false);
        if (!isinf(greatest))
            expect_parameter(s, parameter, k, nextafter(greatest, INFINITY), false);
    }
}

/* ---------------------------------------------------------------- overlaps -- */

/* A part of the scene, and the operand, as a part, that a gradient may lie over. */
typedef struct named_part {
    const char *name;
    size_t offset, over;
} named_part;

#define PART(name, part)                                                                                               \
    { name, offsetof(scene, part), SIZE_MAX }
#define GRADIENT(name, part, over)                                                                                     \
    { name, offsetof(scene, part), offsetof(scene, over) }

/* Every output over every other tensor, and over every other output. A gradient over its operand is in order; shifted
 * by an element it is not. */
static inline void expect_overlaps(scene *(*make)(void), const named_part *outputs, size_t output_count,
                                   const named_part *inputs, size_t input_count) {
    for (size_t i = 0; i < output_count; i++)
        for (size_t k = 0; k < output_count + input_count; k++) {
            const named_part *other = k < output_count ? &outputs[k] : &inputs[k - output_count];
            if (k == i)
                continue;
            scene *s = make();
            s->call.divisor_tensor = &s->divisor.tensor;
            unsigned char *memory = ((part *)((char *)s + other->offset))->memory;
            ((part *)((char *)s + outputs[i].offset))->tensor.data =
                memory + (other->offset == outputs[i].over ? sizeof(float) : 0);
            memcpy(&before, s, sizeof before);
            expect_refusal(onepass_run(&s->call), ONEPASS_INVALID_MEMORY, "overlaps", outputs[i].name);
            CHECK(sentence_has(onepass_message(), outputs[i].name), "%s over %s: the message does not name it: \"%s\"",
                  outputs[i].name, other->name, onepass_message());
            CHECK(memcmp(&before, s, sizeof before) == 0, "%s over %s: something was written", outputs[i].name,
                  other->name);
        }
}

#endif
