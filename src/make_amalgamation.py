#!/usr/bin/env python3
"""Writes onepass.c and onepass.h: the library with the CPU's engine alone, in one file that one command compiles.

    src/make_amalgamation.py FOLDER
    cc -O3 -march=native -ffp-contract=off -fopenmp -c FOLDER/onepass.c

The sources are taken as they are, each once, and what they include is pasted where it is first needed. In one file the
names of all of them meet, so the static ones that occur twice are given the file's name too. What depends on the compute
type is there twice, as the build compiles it twice, with the type at the end of its names.
"""
import os
import re
import sys

SOURCES = os.path.dirname(os.path.abspath(__file__))
HEADER = os.path.join(os.path.dirname(SOURCES), "include", "onepass.h")

BANNER = """\
/*
 * onepass %s in one file: loss functions and their gradients in one pass over memory, on the CPU. Made by
 * src/make_amalgamation.py of the onepass sources, which are the place to read it and to change it.
 *
 *     cc -O3 -march=native -ffp-contract=off -fopenmp -c onepass.c
 *
 * The program is linked with -fopenmp and -lm. Without -fopenmp it computes on one thread. -ffp-contract=off is part of
 * the meaning: with it the bits are those of every other build.
 */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* a few loops are not vectors, which is slower, and no more */
#endif
#define _POSIX_C_SOURCE 200809L
#define ONEPASS_STATIC
#define ONEPASS_HAS_BASELINE
#define ONEPASS_UNIT absent /* as are its kernels */
#include "onepass.h"
"""

QUOTED = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
INCLUSION = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"[^\n]*\n', re.M)
TOKEN = re.compile(r"[A-Za-z_]\w*|[{}()\[\];,=]")


def read(path):
    with open(os.path.join(SOURCES, path), encoding="utf-8") as file:
        return file.read()


def local_includes(text):
    return [match[1] for match in INCLUSION.finditer(text) if match[1] and match[1] not in ("onepass.h", "losses.def")]


def depends_on_real(path):
    return path == "math/real.h" or any(map(depends_on_real, local_includes(read(path))))


def names_of(text):
    """The names of the functions, types, variables and constants that a file defines."""
    names, depth, kind, in_enum = set(), 0, None, False
    tokens = TOKEN.findall(DIRECTIVE.sub(" ", QUOTED.sub(" ", text))) + ["", ""]
    for i, token in enumerate(tokens[:-2]):
        after = tokens[i + 1]
        if token in "({[":
            in_enum = in_enum or (token == "{" and depth == 0 and kind == "enum")
            depth += 1
        elif token in ")}]":
            depth -= 1
            in_enum = in_enum and depth > 0
        elif token == ";" and depth == 0:
            kind = None
        elif depth == 0 and token in ("struct", "union", "enum"):
            kind = token
            names |= {after} if tokens[i + 2] == "{" else set()
        elif depth == 0 and after and after in "(=;[" or in_enum and depth == 1 and tokens[i - 1] in "{,":
            names.add(token)
    return {name for name in names if name[0].isalpha()} - set(DEFINITION.findall(text))


def renamed(text, names, suffix):
    """With the suffix at the end of these names, but not in strings and comments."""
    pattern = re.compile(r"\b(?:%s)\b" % "|".join(sorted(names, key=len, reverse=True)) if names else "(?!)")
    parts, at = [], 0
    for match in QUOTED.finditer(text):
        parts += [pattern.sub(lambda found: found[0] + suffix, text[at:match.start()]), match[0]]
        at = match.end()
    return "".join(parts) + pattern.sub(lambda found: found[0] + suffix, text[at:])


def losses():
    """For each header of a loss its functions, and the lines about its losses."""
    for path in re.findall(r'#include "(loss/\w+\.h)"', read("losses.def")):
        functions, guard, lines = read(path).rpartition("\n#endif\n")
        assert guard and re.match(r"\s*LOSS\(", lines), f"{path} does not have its LOSS lines behind its functions"
        macros = [found[0] + "\n" for found in DIRECTIVE.finditer(functions) if re.match(r"#define \w+[ (].", found[0])]
        yield path, functions + guard, "".join(macros) + lines


def with_losses(text):
    """The lines of all losses where they, or those of a unit, are included."""
    lines = "".join(lines for _, _, lines in losses())
    return re.sub(r'^#include (?:"losses.def"|ONEPASS_UNIT_HEADER)\n', lambda _: lines, text, flags=re.M)


class Collection:
    """Sources behind what they include, each once."""

    def __init__(self, pasted=()):
        self.pasted, self.parts = set(pasted), []

    def add(self, path, text):
        for header in local_includes(text):
            if header not in self.pasted:
                self.pasted.add(header)
                self.add(header, read(header))
        self.parts.append((path, text))


def collect_core():
    """What is compiled once. Names that a later file has, too, get its name behind them."""
    listed = re.search(r"set\(sources ([^)]*)\)", read("CMakeLists.txt"))[1].split()
    core = Collection()
    for path in [*(path for path in listed if not path.startswith("cuda/")), "cuda/absent.c", "descriptor.c"]:
        core.add(path, with_losses(read(path)))
    known, parts = set(), []
    for path, text in core.parts:
        names = {name for name in names_of(text) if not name.startswith("onepass_")} if path.endswith(".c") else set()
        parts.append((path, renamed(text, names & known, "_of_" + re.sub(r"\W", "_", path[:-2]))))
        known |= names_of(text)
    return core, parts


def collect_computing(core, real):
    """What is compiled once for each compute type, with names of its own. The name of a loss, of which macros make
    others, stays."""
    shared = {path for path in core.pasted if not depends_on_real(path)}
    computing = Collection(shared)
    computing.add("cpu/run.c", read("cpu/run.c"))
    for path, functions, _ in losses():
        computing.add(path, functions)
    computing.add("cpu/unit.c", with_losses(read("cpu/unit.c")))
    names = names_of("".join(text for path, text in computing.parts))
    names = {name for name in names if not name.startswith("onepass_")}
    return [(path, in_type(path, text, names, real)) for path, text in computing.parts]


def in_type(path, text, names, real):
    """A copy of a part with this compute type behind its names, those included that its macros make."""
    def makes_one(match):
        return match[0] + (f"##_{real}" if any(name.startswith(match[1]) for name in names) else "")

    def in_macro(match):
        return re.sub(r"\b([A-Za-z]\w*_)##\w+\b(?!##)", makes_one, match[0]).replace(", real)", ", REAL_AS_A_WORD)")

    text = re.sub(r"REAL_NAME\((\w+)\)", r"\1", text)
    if path.startswith("loss/"):
        text = re.sub(r"\b(\w+?)_(value|slope_[ptv])(?=\()", rf"\1_{real}_\2", text)
    text = re.sub(r"(?<!##)\bname##_", f"name##_{real}_", DIRECTIVE.sub(in_macro, text))
    return renamed(text, names, "_" + real).replace("REAL_AS_A_WORD", "real")


def pasted(parts):
    """The text of parts, without their inclusions of each other."""
    return INCLUSION.sub("", "".join(f"\n/* {'-' * 60} {path} */\n\n{text}" for path, text in parts))


def amalgamate():
    core, parts = collect_core()
    numbers = dict(re.findall(r"define ONEPASS_VERSION_(\w+) +(\d+)", read(HEADER)))
    text = BANNER % "{MAJOR}.{MINOR}.{PATCH}".format(**numbers) + pasted(parts)
    for real in ("f32", "f64"):
        copy = pasted(collect_computing(core, real))
        text += "\n" + "".join(f"#undef {macro}\n" for macro in sorted(set(DEFINITION.findall(copy)))) + \
            f"#undef ONEPASS_VARIANT\n#define ONEPASS_VARIANT baseline_{real}\n#define ONEPASS_REAL_{real.upper()}\n" + copy
    return text


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, text in (("onepass.c", amalgamate()), ("onepass.h", read(HEADER))):
        with open(os.path.join(sys.argv[1], name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
