/* JSON to a stream; json.h reads it. Errors are the stream's to remember. */
#ifndef ONEPASS_CLI_JSON_WRITE_H
#define ONEPASS_CLI_JSON_WRITE_H

#include <stdio.h>

/* With its quotes. Each byte that is not part of a character in UTF-8, as in the names of files, becomes U+FFFD: JSON
 * has no bytes, and a lone surrogate in their place would be refused by strict readers. */
void json_write_string(FILE *file, const char *text);

enum {
    NUMBER_DIGITS = 40
};

/* As few digits as tell a finite number from its neighbours. */
void write_digits(char digits[NUMBER_DIGITS], double number);

/* As a string where JSON has no number for it. */
void json_write_number(FILE *file, double number);

#endif
