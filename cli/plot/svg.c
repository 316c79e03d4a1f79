/* SVG's frame, style and text: see svg.h. */
#include "svg.h"

/*
 * The colours are Okabe and Ito's and Paul Tol's, which remain apart for the colour-blind, darkened for a white ground
 * and lightened for a dark one until text in them can be read. Curves also differ by their markers. The background is
 * not left transparent: a page's theme need not be the system's, which is all that a picture in it can ask for.
 */
static const char style[] = "text{font-family:system-ui,-apple-system,'Segoe "
                            "UI',Roboto,Helvetica,Arial,sans-serif;font-size:13px;fill:#1f2328}\n"
                            ".title{font-size:20px;font-weight:600}\n"
                            ".head{font-weight:600}\n"
                            ".muted,.tick,.foot{fill:#59636e}\n"
                            ".tick{font-size:12px}\n"
                            ".foot{font-size:12px;font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}\n"
                            ".right{text-anchor:end}\n"
                            ".middle{text-anchor:middle}\n"
                            ".ground{fill:#ffffff}\n"
                            ".grid{stroke:#d8dee4;stroke-width:1;fill:none}\n"
                            ".axis{stroke:#8c959f;stroke-width:1;fill:none}\n"
                            ".leader{stroke:#8c959f;stroke-width:0.8;fill:none}\n"
                            ".limit{stroke:#424a53;stroke-width:1.8;stroke-dasharray:6 3;fill:none}\n"
                            ".area{fill:#818b98;fill-opacity:0.1}\n"
                            ".name{fill:#424a53;font-style:italic}\n"
                            ".line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\n"
                            ".ours{stroke-width:3}\n"
                            ".dot{stroke:#ffffff;stroke-width:1}\n"
                            ".c0{stroke:#0063a8}.f0{fill:#0063a8}\n"
                            ".c1{stroke:#c24e00}.f1{fill:#c24e00}\n"
                            ".c2{stroke:#00805c}.f2{fill:#00805c}\n"
                            ".c3{stroke:#a8428a}.f3{fill:#a8428a}\n"
                            ".c4{stroke:#8a6a00}.f4{fill:#8a6a00}\n"
                            ".c5{stroke:#0e7c86}.f5{fill:#0e7c86}\n"
                            ".c6{stroke:#882255}.f6{fill:#882255}\n"
                            ".c7{stroke:#4b4fb0}.f7{fill:#4b4fb0}\n"
                            "@media (prefers-color-scheme:dark){\n"
                            "text{fill:#e6edf3}\n"
                            ".muted,.tick,.foot{fill:#9198a1}\n"
                            ".ground{fill:#0d1117}\n"
                            ".grid{stroke:#262c34}\n"
                            ".axis,.leader{stroke:#6e7681}\n"
                            ".limit{stroke:#c9d1d9}\n"
                            ".area{fill:#9198a1;fill-opacity:0.12}\n"
                            ".name{fill:#c9d1d9}\n"
                            ".dot{stroke:#0d1117}\n"
                            ".c0{stroke:#5cb3f5}.f0{fill:#5cb3f5}\n"
                            ".c1{stroke:#ff9752}.f1{fill:#ff9752}\n"
                            ".c2{stroke:#3ecf9f}.f2{fill:#3ecf9f}\n"
                            ".c3{stroke:#e79bd0}.f3{fill:#e79bd0}\n"
                            ".c4{stroke:#e5c04b}.f4{fill:#e5c04b}\n"
                            ".c5{stroke:#5fd3dc}.f5{fill:#5fd3dc}\n"
                            ".c6{stroke:#e27aa6}.f6{fill:#e27aa6}\n"
                            ".c7{stroke:#a5a8ff}.f7{fill:#a5a8ff}\n"
                            "}\n";

/* U+FFFE and U+FFFF, which are not for interchange. */
static int is_no_character(const unsigned char *c) {
    return c[0] == 0xef && c[1] == 0xbf && (c[2] == 0xbe || c[2] == 0xbf);
}

void svg_escaped(FILE *file, const char *text) {
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c == '&')
            fputs("&amp;", file);
        else if (*c == '<')
            fputs("&lt;", file);
        else if (*c == '>')
            fputs("&gt;", file);
        else if (*c == '"')
            fputs("&quot;", file);
        else if (is_no_character(c))
            c += 2;
        else if (*c >= ' ')
            putc(*c, file);
}

void svg_begin(FILE *file, double width, double height, const char *title, const char *description) {
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
            "role=\"img\" aria-labelledby=\"title description\">\n<title id=\"title\">",
            width, height, width, height);
    svg_escaped(file, title);
    fputs("</title>\n<desc id=\"description\">", file);
    svg_escaped(file, description);
    fprintf(file, "</desc>\n<style>\n%s</style>\n", style);
    fprintf(file, "<rect class=\"ground\" width=\"%.0f\" height=\"%.0f\" rx=\"6\"/>\n", width, height);
}

void svg_end(FILE *file) {
    fputs("</svg>\n", file);
}

void svg_text(FILE *file, const char *class, double x, double y, const char *text) {
    fprintf(file, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    svg_escaped(file, text);
    fputs("</text>\n", file);
}
