#!/usr/bin/env python3
"""Makes the files for KernelBench from the library's own sources.

    python3 examples/kernelbench/amalgamate.py          writes the files
    python3 examples/kernelbench/amalgamate.py --check  only says whether they are up to date

That benchmark wants all of a kernel inside one Python file. So mean.cu and binding.cpp are put into one with all that
they include, without comments, with one loss instead of the list of them, and with no other kernels than mean.cu names.
"""
import argparse
import pathlib
import re
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SEARCHED = (HERE, ROOT / "src", ROOT / "include")

# The benchmark's problem, the loss, and what the problem computes.
PROBLEMS = (
    (94, "mse", "The mean of (predictions - targets) ** 2."),
    (96, "smooth_l1", "The mean smooth L1 loss of predictions and targets, with beta = 1."),
    (100, "hinge", "The mean of 1 - predictions * targets, where that is above 0, and else of 0."),
)

# What the benchmark's checker refuses anywhere in a file, in comments and in C++ as well.
REFUSED = (
    r"\b(?:try|except|pass)\b",
    r"\bthreading\b|\bmultiprocessing\b|\bconcurrent\b|PoolExecutor",
    r"_make_subclass|\(\s*(?:torch\.)?Tensor\s*\)|Tensor\.__new__",
    r"\btime\.|\bEvent\b|\bsynchronize\b",
    r"\bfunctional\b|\btorch\.nn\.|\bF\.",
)

PYTHON = """\
# onepass for problem {problem} of KernelBench's level 1. Copyright (c) 2026 the onepass authors, MIT License.
#
{origin}
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Kernels, plan and launch.
CUDA = r'''
{cuda}'''

# Tensors, stream and memory of PyTorch.
BINDING = r'''
{binding}'''

# Without fused multiply-adds: the bits depend on it.
extension = load_inline(
    name="onepass_kernelbench_{loss}",
    cpp_sources=BINDING,
    cuda_sources=CUDA,
    functions=["mean_loss"],
    extra_cuda_cflags=["-O3", "--fmad=false"],
    no_implicit_headers=True,
)


def checked(tensor, name):
    \"\"\"The tensor, if the kernels can read it.\"\"\"
    if not tensor.is_cuda:
        raise ValueError(f"{{name}} is on {{tensor.device}}; expected a CUDA tensor")
    if tensor.dtype != torch.float32 or tensor.layout != torch.strided or tensor.is_neg():
        raise TypeError(f"{{name}} is of type {{tensor.dtype}}; expected a plain tensor of float32")
    if tensor.dim() > 16:
        raise ValueError(f"{{name}} has {{tensor.dim()}} dimensions; expected up to 16")
    if torch.is_grad_enabled() and tensor.requires_grad:
        raise NotImplementedError(f"{{name}} requires a gradient, and this file computes none; the package onepass does")
    return tensor


class ModelNew(nn.Module):
    \"\"\"{computes}\"\"\"

    def forward(self, predictions, targets):
        # Broadcasting moves no data.
        both = torch.broadcast_tensors(checked(predictions, "predictions"), checked(targets, "targets"))
        return extension.mean_loss(*both)
"""


def without_comments(text):
    """C without its comments: lines of their own vanish, and all else is a space, as for a compiler."""
    text = re.sub(r"^[ \t]*/\*(?:(?!\*/).)*\*/[ \t]*\n", "", text, flags=re.MULTILINE | re.DOTALL)
    token = r'"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'|/\*.*?\*/|//[^\n]*"
    return re.sub(token, lambda found: " " if found[0].startswith("/") else found[0], text, flags=re.DOTALL)


def tidy(text):
    """No spaces at the ends of lines, no empty lines in a row, none at the beginning."""
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


def definition(text, name):
    """The function or type of that name, from its first line to the brace that closes it at a line's beginning."""
    function = rf"^(?:static )?\w[^\n;]*\b{name}\([^;{{]*\{{\n.*?^\}}\n"
    kind = rf"^typedef struct {name} \{{.*?^\}} {name};\n"
    found = re.search(f"{function}|{kind}", text, flags=re.MULTILINE | re.DOTALL)
    if not found:
        raise SystemExit(f"amalgamate.py: there is no definition of {name} any more")
    return found[0]


def keep_kernels(text, kept):
    """The kernels' source without the entries of all kernels but those, and without the library's first workspace."""
    every = re.MULTILINE | re.DOTALL
    listed = r"^ *(?:DIRECT\(\w+, name, |WEIGHTED\(name, |SMALL\(name, )(\w+)[^\n]*\n"
    text = re.sub(listed, lambda found: found[0] if found[1] in kept else "", text, flags=re.MULTILINE)
    text = re.sub(r"^KERNEL_OF\(.*?^\}\n|^(?:DIRECT|WEIGHTED|GENERAL)\([^\n]*weights[^\n]*\n", "", text, flags=every)
    text = re.sub(r"^#if [^\n]*\n[^\n]*CUDA_FIRST_WORKSPACE\[.*?^#endif\n", "", text, flags=every)
    return re.sub(r" *\\\n(?=#)", "\n", text)  # a macro that has lost its last line


class Amalgamation:
    """A source with everything that it includes by name. `sources` are the files that went into it."""

    def __init__(self, loss):
        self.loss = loss
        self.kernels = re.findall(r"\bname##_(\w+)", (HERE / "mean.cu").read_text())
        self.guarded = set()
        self.sources = set()

    def read(self, name):
        path = next((folder / name for folder in SEARCHED if (folder / name).exists()), None)
        if not path:
            raise SystemExit(f"amalgamate.py: {name} is included, but is not there")
        self.sources.add(path.relative_to(ROOT).as_posix())
        return path.read_text()

    def of(self, name):
        text = f'#include "loss/{self.loss}.h"\n' if name == "losses.def" else self.read(name)
        text = text.replace("#include ONEPASS_UNIT_HEADER", '#include "losses.def"')
        guard = re.search(r"^#ifndef (\w+_H)\n#define \1\n(.*)^#endif\n", text, flags=re.MULTILINE | re.DOTALL)
        if guard:  # what it guards comes once, what stands behind it each time
            text = ("" if name in self.guarded else guard[2]) + text[guard.end():]
            self.guarded.add(name)
        if name == "cuda/pairwise.cu":
            text = keep_kernels(text, self.kernels)
        return re.sub(r'^#include "([^"]+)"(?:[ \t]*/\*(.*?)\*/)?[ \t]*\n', self.include, text, flags=re.MULTILINE)

    def include(self, line):
        name, remark = line[1], (line[2] or "").strip()
        if not remark.startswith("only: "):
            return self.of(name)
        return "\n".join(definition(self.read(name), each) for each in remark[len("only: "):].split(", "))


def refusals(text):
    """What of the text the benchmark would refuse."""
    return [found[0] for pattern in REFUSED for found in re.finditer(pattern, text)]


def adaptor(problem, loss, computes):
    """The name and the text of the file for a problem."""
    amalgamation = Amalgamation(loss)
    parts = {name: tidy(without_comments(amalgamation.of(source)))
             for name, source in (("cuda", "mean.cu"), ("binding", "binding.cpp"))}
    origin = textwrap.fill(
        "Generated; change the sources and run `python3 examples/kernelbench/amalgamate.py`. The sources, whose "
        f"comments are left out here: {', '.join(sorted(amalgamation.sources))}.",
        width=120, initial_indent="# ", subsequent_indent="# ")
    text = PYTHON.format(problem=problem, loss=loss, computes=computes, origin=origin, **parts)
    if refusals(text):
        raise SystemExit(f"amalgamate.py: the benchmark would refuse the file for {loss}: {', '.join(refusals(text))}")
    return f"{problem}_{loss}.py", text


def adaptors():
    """All the files: their texts by their names."""
    return dict(adaptor(*problem) for problem in PROBLEMS)


def main():
    parser = argparse.ArgumentParser(description="Makes the files for KernelBench from the library's own sources.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is not up to date")
    check = parser.parse_args().check
    stale = {name: text for name, text in adaptors().items()
             if not (HERE / name).exists() or (HERE / name).read_text() != text}
    if check and stale:
        sys.exit(f"not up to date: {', '.join(stale)}; run python3 examples/kernelbench/amalgamate.py")
    for name, text in stale.items():
        (HERE / name).write_text(text)
        print(f"wrote {name}")


if __name__ == "__main__":
    main()
