#include "utf8.h"

#include <stdbool.h>
#include <stdint.h>

size_t utf8_length(const unsigned char *text, size_t size) {
    const unsigned char lead = text[0];
    if (lead < 0x80)
        return 1;
    const size_t length = lead >= 0xc2 && lead < 0xe0 ? 2 : lead >= 0xe0 && lead < 0xf0 ? 3 : lead >= 0xf0 ? 4 : 0;
    if (length == 0 || length > size)
        return 0;
    uint32_t character = lead & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        character = character << 6 | (text[i] & 0x3f);
    }
    const bool overlong = (length == 3 && character < 0x800) || (length == 4 && character < 0x10000);
    const bool surrogate = character >= 0xd800 && character < 0xe000;
    return overlong || surrogate || lead > 0xf4 || character > 0x10ffff ? 0 : length;
}
