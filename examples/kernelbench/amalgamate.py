#!/usr/bin/env python3
"""Makes the files for KernelBench from the library's own sources.

    python3 examples/kernelbench/amalgamate.py FOLDER

That benchmark wants all of a kernel inside one Python file. So mean.cu and binding.cpp, or for losses over rows rows.cu
and rows_binding.cpp, for those of vectors vectors.cu and vectors_binding.cpp, are put into one with all that they include, without comments and with the header of one loss.
"""
import argparse
import pathlib
import re
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SEARCHED = (HERE, ROOT / "src", ROOT / "include")

# What the kernels have no use for.
UNUSED = {"mean.cu": ("cuda/pairwise/scale.h", "cuda/pairwise/weighted.h", "cuda/pairwise/mean.h",
                      "cuda/pairwise/small_mean.h", "cuda/pairwise/few_mean.h", "cuda/pairwise/backward.h",
                      "cuda/pairwise/whole.h"),
          "rows.cu": ("cuda/pairwise/scale.h",), "vectors.cu": ("cuda/pairwise/scale.h",)}

# The benchmark's problem, the loss, and what the problem computes.
PROBLEMS = (
    (94, "mse", "The mean of (predictions - targets) ** 2."),
    (95, "cross_entropy", "The mean cross-entropy of rows of predictions and targets, which are class indices."),
    (96, "smooth_l1", "The mean smooth L1 loss of predictions and targets, with beta = 1."),
    (98, "relative_entropy", "The divergence of targets from predictions, both of them probabilities, a row."),
    (99, "triplet_margin", "The mean of margin + d(anchor, positive) - d(anchor, negative), where that is above 0, else of 0."),
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
    functions=["{function}"],
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


{model}"""

# What a sum is divided by: the number of elements, or for some losses that of rows.
DIVISOR = "both[0].numel()"
DIVISORS = {"relative_entropy": "both[0].shape[0] if both[0].dim() else 1"}

# What is asked of an extension, and its sources.
PAIRS = ("mean_loss", "mean.cu", "binding.cpp", """\
class ModelNew(nn.Module):
    \"\"\"{computes}\"\"\"

    def forward(self, predictions, targets):
        # Broadcasting moves no data.
        both = torch.broadcast_tensors(checked(predictions, "predictions"), checked(targets, "targets"))
        return extension.mean_loss(*both, {divisor})
""")
ROWS = ("mean_of_rows", "rows.cu", "rows_binding.cpp", """\
class ModelNew(nn.Module):
    \"\"\"{computes}\"\"\"

    def forward(self, predictions, targets):
        if targets.dtype != torch.int64 or not targets.is_cuda:
            raise TypeError(f"targets is of type {{targets.dtype}} on {{targets.device}}; expected int64 on a GPU")
        if checked(predictions, "predictions").dim() != 2 or targets.shape != predictions.shape[:1]:
            raise ValueError(f"predictions and targets are {{tuple(predictions.shape)}} and {{tuple(targets.shape)}}; "
                             "expected rows of classes, and a class index for each")
        return extension.mean_of_rows(predictions, targets)
""")
VECTORS = ("mean_of_vectors", "vectors.cu", "vectors_binding.cpp", """\
class ModelNew(nn.Module):
    \"\"\"{computes}\"\"\"

    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin

    def forward(self, anchor, positive, negative):
        # Broadcasting moves no data.
        vectors = torch.broadcast_tensors(checked(anchor, "anchor"), checked(positive, "positive"),
                                          checked(negative, "negative"))
        if vectors[0].dim() != 2:
            raise ValueError(f"the vectors have {{vectors[0].dim()}} dimensions; expected rows of elements")
        return extension.mean_of_vectors(*vectors, self.margin)
""")
KINDS = {"cross_entropy": ROWS, "triplet_margin": VECTORS}


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


class Amalgamation:
    """A source with everything that it includes by name. `sources` are the files that went into it."""

    def __init__(self, loss, unused):
        self.loss = loss
        self.unused = unused
        self.guarded = set()
        self.sources = set()

    def read(self, name):
        path = next((folder / name for folder in SEARCHED if (folder / name).exists()), None)
        if not path:
            raise SystemExit(f"amalgamate.py: {name} is included, but is not there")
        self.sources.add(path.relative_to(ROOT).as_posix())
        return path.read_text()

    def of(self, name):
        if name in self.unused:
            return ""
        text = self.read(name).replace("#include ONEPASS_UNIT_HEADER", f'#include "loss/{self.loss}.h"')
        guard = re.search(r"^#ifndef (\w+_(?:H|DEF))\n#define \1\n(.*)^#endif\n", text, flags=re.MULTILINE | re.DOTALL)
        if guard:  # what it guards comes once, what stands behind it each time
            text = ("" if name in self.guarded else guard[2]) + text[guard.end():]
            self.guarded.add(name)
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
    function, cuda, binding, model = KINDS.get(loss, PAIRS)
    amalgamation = Amalgamation(loss, UNUSED[cuda])
    parts = {name: tidy(without_comments(amalgamation.of(source)))
             for name, source in (("cuda", cuda), ("binding", binding))}
    origin = textwrap.fill(
        "Generated by examples/kernelbench/amalgamate.py. The sources, whose comments are left out here: "
        f"{', '.join(sorted(amalgamation.sources))}.",
        width=120, initial_indent="# ", subsequent_indent="# ")
    text = PYTHON.format(problem=problem, loss=loss, function=function, origin=origin,
                         model=model.format(computes=computes, divisor=DIVISORS.get(loss, DIVISOR)), **parts)
    if refusals(text):
        raise SystemExit(f"amalgamate.py: the benchmark would refuse the file for {loss}: {', '.join(refusals(text))}")
    return f"{problem}_{loss}.py", text


def adaptors():
    """All the files: their texts by their names."""
    return dict(adaptor(*problem) for problem in PROBLEMS)


def main():
    parser = argparse.ArgumentParser(description="Makes the files for KernelBench from the library's own sources.")
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER", help="where they go")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in adaptors().items():
        (folder / name).write_text(text)
        print(folder / name)


if __name__ == "__main__":
    main()
