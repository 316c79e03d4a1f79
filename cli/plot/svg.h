/* SVG as the plot needs it: the frame with its style, and text that may hold anything. */
#ifndef ONEPASS_CLI_SVG_H
#define ONEPASS_CLI_SVG_H

#include <stdio.h>

enum {
    SVG_COLOURS = 8 /* classes c0, c1, ... */
};

/* Opens the picture: size, style for light and dark, title and description for who cannot see it, background. */
void svg_begin(FILE *file, double width, double height, const char *title, const char *description);
void svg_end(FILE *file);

/* Text, with what XML reserves escaped and what it forbids left out. */
void svg_escaped(FILE *file, const char *text);

/* A text element of a class at a place. */
void svg_text(FILE *file, const char *class, double x, double y, const char *text);

#endif
