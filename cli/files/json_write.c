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

void json_write_number(FILE *file, double number) {
    char digits[40];
    if (!isfinite(number)) {
        fprintf(file, "\"%s\"", isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
        return;
    }
    for (int count = 15; count <= 17; count++) { /* as few as tell it from its neighbours */
        snprintf(digits, sizeof digits, "%.*g", count, number);
        if (strtod(digits, NULL) == number)
            break;
    }
    fputs(digits, file);
}
