#include "json_write.h"
#include "utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void json_write_string(FILE *file, const char *text) {
    const unsigned char *at = (const unsigned char *)text, *end = at + strlen(text);
    putc('"', file);
    while (at < end) {
        const size_t length = utf8_length(at, (size_t)(end - at));
        if (length == 0)
            fputs("\\ufffd", file);
        else if (*at == '"' || *at == '\\')
            fprintf(file, "\\%c", *at);
        else if (*at < ' ')
            fprintf(file, "\\u%04x", *at);
        else
            fwrite(at, 1, length, file);
        at += length > 0 ? length : 1;
    }
    putc('"', file);
}

void write_digits(char digits[NUMBER_DIGITS], double number) {
    for (int count = 15; count <= 17; count++) {
        snprintf(digits, NUMBER_DIGITS, "%.*g", count, number);
        if (strtod(digits, NULL) == number)
            break;
    }
}

void json_write_number(FILE *file, double number) {
    char digits[NUMBER_DIGITS];
    if (!isfinite(number)) {
        fprintf(file, "\"%s\"", isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
        return;
    }
    write_digits(digits, number);
    fputs(digits, file);
}
