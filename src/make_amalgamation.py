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
STRUCT = re.compile(r"\b(?:struct|union)\b[^;{}()]*\{([^{}]*)\}")
MEMBER = re.compile(r"\w+(?=(?:\[[^\]]*\])*[;,])")
TOKEN = re.compile(r"[A-Za-z_]\w*|[{}()\[\];,=]")


def read(path):
    with open(os.path.join(SOURCES, path), encoding="utf-8") as file:
        return file.read()


def local_includes(text):
    return [match[1] for match in INCLUSION.finditer(text) if match[1] != "onepass.h" and not match[1].endswith(".def")]


def depends_on_real(path):
    return path.startswith("math/") or any(map(depends_on_real, local_includes(read(path))))


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
    """With the suffix at the end of these names, but not in strings and comments, nor where they are members."""
    pattern = re.compile(r"(?<![.>\w])(?:%s)\b" % "|".join(sorted(names, key=len, reverse=True)) if names else "(?!)")
    members = [match.start(1) + member.start() for match in STRUCT.finditer(text) for member in MEMBER.finditer(match[1])]
    quoted = [match.span() for match in QUOTED.finditer(text)]
    kept = set(members).union(*(range(*span) for span in quoted))
    return pattern.sub(lambda found: found[0] if found.start() in kept else found[0] + suffix, text)


def losses(listed):
    """For each header of a list of losses its functions, and the lines about its losses."""
    for path in re.findall(r'#include "(loss/\w+\.h)"', read(listed)):
        functions, guard, lines = read(path).rpartition("\n#endif\n")
        assert guard and re.match(r"\s*(ROW_|VECTOR_)?LOSS\(", lines), f"{path} does not have its LOSS lines behind its functions"
        macros = [found[0] + "\n" for found in DIRECTIVE.finditer(functions) if re.match(r"#define \w+[ (].", found[0])]
        yield path, functions + guard, "".join(macros) + lines


def with_losses(text, of_units=("losses.def",)):
    """The lines of all losses where a list of them, or those of a unit, are included."""
    def lines(match):
        return "".join(lines for listed in ([match[1]] if match[1] else of_units) for _, _, lines in losses(listed))

    return re.sub(r'^#include (?:"(\w+\.def)"|ONEPASS_UNIT_HEADER)\n', lines, text, flags=re.M)


def own_names(parts):
    """Sources with names that an earlier one has, too, if they are not the library's own: those get the file's name
    behind them."""
    known = set()
    for path, text in parts:
        names = {name for name in names_of(text) if not name.startswith("onepass_")} if path.endswith(".c") else set()
        yield path, renamed(text, names & known, "_of_" + re.sub(r"\W", "_", path[:-2]))
        known |= names_of(text)


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
    """What is compiled once. The functions of losses over rows and of vectors are part of their descriptors."""
    listed = re.search(r"set\(sources ([^)]*)\)", read("CMakeLists.txt"))[1].split()
    core = Collection()
    for path in [*(path for path in listed if not path.startswith("cuda/")), "cuda/absent.c"]:
        core.add(path, with_losses(read(path)))
    for listed in ("row_losses.def", "vector_losses.def"):
        for path, functions, _ in losses(listed):
            core.add(path, functions)
    core.add("descriptor.c",
             with_losses(read("descriptor.c"), ("losses.def", "row_losses.def", "vector_losses.def")))
    return core, list(own_names(core.parts))


def collect_computing(core, real):
    """What is compiled once for each compute type, with names of its own. The name of a loss, of which macros make
    others, stays."""
    shared = {path for path in core.pasted if not depends_on_real(path)}
    computing = Collection(shared)
    for path in re.findall(r"\bcpu/\w+\.c\b", re.search(r"add_library\(\$\{objects\} ([^)]*)\)", read("CMakeLists.txt"))[1]):
        computing.add(path, with_losses(read(path)))
    for listed, unit in (("losses.def", "cpu/unit.c"), ("vector_losses.def", "cpu/vector_unit.c")):
        for path, functions, _ in losses(listed):
            computing.add(path, functions)
        computing.add(unit, with_losses(read(unit), (listed,)))
    parts = list(own_names(computing.parts))
    names = names_of("".join(text for _, text in parts))
    names = {name for name in names if not name.startswith("onepass_")}
    return [(path, in_type(path, text, names, real)) for path, text in parts]


def in_type(path, text, names, real):
    """A copy of a part with this compute type behind its names, those included that its macros make."""
    def makes_one(match):
        return match[0] + (f"##_{real}" if any(name.startswith(match[1]) for name in names) else "")

    def in_macro(match):
        return re.sub(r"\b([A-Za-z]\w*_)##\w+\b(?!##)", makes_one, match[0]).replace(", real)", ", REAL_AS_A_WORD)")

    text = re.sub(r"REAL_NAME\((\w+)\)", r"\1", text)
    if path.startswith("loss/"):
        kinds = r"value|has_both|both|mended|slope_[ptv]|factors|(?:kept_)?(?:terms|slope)|kept|row|usual"
        text = re.sub(rf"\b(\w+?)_({kinds})(?=\()", rf"\1_{real}_\2", text)
    text = re.sub(r"(?<!##)\bname##_", f"name##_{real}_", DIRECTIVE.sub(in_macro, text))
    return renamed(text, names, "_" + real).replace("REAL_AS_A_WORD", "real")


def pasted(parts):
    """The text of parts, without their inclusions of each other. The macros of a source end with it."""
    def undefined(path, text):
        return "".join(f"#undef {macro}\n" for macro in sorted(set(DEFINITION.findall(text)))) if path.endswith(".c") else ""

    return INCLUSION.sub("", "".join(f"\n/* {'-' * 60} {path} */\n\n{text}{undefined(path, text)}" for path, text in parts))


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
    if sys.argv[1:] in (["-h"], ["--help"]):
        return print(__doc__.strip())
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, text in (("onepass.c", amalgamate()), ("onepass.h", read(HEADER))):
        with open(os.path.join(sys.argv[1], name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
