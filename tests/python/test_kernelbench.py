# The files for KernelBench: made of the sources as they are now, acceptable to that benchmark's checker, compiled here
# where nvcc is, and on a GPU of the same bits as the package.
import ast
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import warnings

import pytest

import onepass

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "examples" / "kernelbench" / "amalgamate.py"
PAIRS = {"94_mse.py": "mse", "96_smooth_l1.py": "smooth_l1", "98_relative_entropy.py": "relative_entropy",
         "100_hinge.py": "hinge"}
ROWS = {"95_cross_entropy.py": "cross_entropy"}
VECTORS = {"99_triplet_margin.py": "triplet_margin"}
FILES = PAIRS | ROWS | VECTORS
ARGUMENTS = {"99_triplet_margin.py": (["self", "margin"], ["self", "anchor", "positive", "negative"])}
REDUCTIONS = {"relative_entropy": "batchmean"}  # of the others it is the mean
KERNELS = {name: [f"onepass_{name}_{kernel}" for kernel in (
    "forward", "small_forward", "few_tiles_forward", "tiny_forward", "general")]
           for name in PAIRS.values()}
KERNELS["cross_entropy"] = [f"onepass_cross_entropy_rows_{kernel}" for kernel in (
    "any", "aside", "aside_wide", "few_forward", "fewer_forward", "forward", "loose_forward", "simple_forward",
    "teams_forward")] + [
    "onepass_rows_row_count", "onepass_rows_total", *(f"onepass_weights_{kernel}" for kernel in ("forward", "general", "weighted_forward"))]
KERNELS["triplet_margin"] = [f"onepass_triplet_margin_vectors_{kernel}" for kernel in (
    "any_sums", "finish", "narrow", "sums")] + [
    "onepass_rows_total", *(f"onepass_weights_{kernel}" for kernel in ("forward", "general", "weighted_forward"))]

# Words and phrases that the benchmark's checker looks for anywhere in a file, by its own description.
REFUSED = {
    "an exception handler": r"\btry\b|\bexcept\b",
    "the empty statement": r"\bpass\b",
    "threads or processes": r"\bthreading\b|\bmultiprocessing\b|\bconcurrent\.|PoolExecutor",
    "a tensor subclass": r"_make_subclass|\bclass\s+\w+.*\((?:torch\.)?Tensor\)|Tensor\.__new__",
    "a patched timer": r"\b(?:Event|record|elapsed_time|synchronize|perf_counter|time)\s*=[^=]",
    "a stream of its own": r"cuda\.[Ss]tream\b|wait_stream|record_stream",
    "PyTorch's own computation": r"\bfunctional\b|torch\.nn\.\w|\bat::(?:mean|sum|mse|smooth|clamp)|"
                                 r"torch(?:\.|::)(?:mean|sum|mse_loss|smooth_l1_loss|clamp|relu|sub|mul|pow)\b",
}


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def generator():
    return load(SCRIPT, "amalgamate")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files, made by the command."""
    folder = tmp_path_factory.mktemp("kernelbench") / "made"
    subprocess.run([sys.executable, os.fspath(SCRIPT), os.fspath(folder)], check=True, capture_output=True)
    return folder


def texts(path):
    """The C++ sources within a file, by the names of their variables."""
    tree = ast.parse(path.read_text())
    return {node.targets[0].id: node.value.value for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)}


# --------------------------------------------------------------------------------- as made --


def test_command_makes_a_file_a_problem(folder):
    assert {path.name for path in folder.iterdir()} == set(FILES)


def test_generator_refuses_words(generator):
    for text in ("in one pass over", "try {", "} except", "import threading", "torch.nn.functional.mse_loss(p, t)"):
        assert generator.refusals(text), text
    assert not generator.refusals("onepass passes __syncthreads threadIdx entry exceptional")


@pytest.mark.parametrize("file", FILES)
def test_holds_nothing_refused(file, folder):
    text = (folder / file).read_text()
    for what, pattern in REFUSED.items():
        assert not re.findall(pattern, text), f"{file} holds {what}"


@pytest.mark.parametrize("file", FILES)
def test_is_what_the_benchmark_expects(file, folder):
    text = (folder / file).read_text()
    compile(text, file, "exec")
    tree = ast.parse(text)
    model = next(node for node in tree.body if isinstance(node, ast.ClassDef))
    methods = {node.name: [argument.arg for argument in node.args.args] for node in model.body
               if isinstance(node, ast.FunctionDef)}
    assert model.name == "ModelNew" and [ast.unparse(base) for base in model.bases] == ["nn.Module"]
    made, called = ARGUMENTS.get(file, (["self"], ["self", "predictions", "targets"]))
    assert methods["forward"] == called
    assert methods.get("__init__", ["self"]) == made
    # The checker wants to see a kernel on a line that it does not take for a comment.
    assert any("__global__ void" in re.split("#|//", line)[0] for line in text.splitlines())
    assert "load_inline(" in text and 'extra_cuda_cflags=["-O3", "--fmad=false"]' in text


@pytest.mark.parametrize("file", FILES)
def test_holds_one_loss_and_all_sources(file, folder):
    source = texts(folder / file)["CUDA"]
    losses = set(re.findall(r"^(?:ROW_|VECTOR_)?LOSS\((\w+)", source, flags=re.MULTILINE))
    assert losses - {"cross_entropy_with_probabilities"} == {FILES[file]}  # which shares its header
    assert not re.search(r'^#include "|^#include [A-Z]|/\*|^\s*//', source, flags=re.MULTILINE)
    assert "scale_tile" not in source
    assert "weighted_lines" not in source or file not in PAIRS  # weights


QUICK = os.environ.get("ONEPASS_TEST_QUICK") == "1"


def spills(told):
    """The functions of which ptxas tells, with the bytes that they store and load for want of registers."""
    found = re.findall(r"Function properties for (\w+)\s+\d+ bytes stack frame, (\d+) bytes spill stores, "
                       r"(\d+) bytes spill loads", told)
    return [(function, int(stores) + int(loads)) for function, stores, loads in found]


def allowed_spills(function, kernels):
    """Of a kernel what tests/kernels_allowed.txt says; of a function that is called, the most of those that may."""
    table = (pathlib.Path(__file__).parents[1] / "kernels_allowed.txt").read_text().splitlines()
    allowed = {line.split()[0]: int(line.split()[2]) for line in table if line and not line.startswith("#")}
    callers = [function] if function in kernels else kernels
    return max(bytes if caller.endswith(variant) else 0 for caller in callers for variant, bytes in allowed.items())


# A program that plans calls of many shapes, and says for which there is a launch without a kernel.
PLANS_MANY = """
#include <stdio.h>
template <typename made> static void look_at(const made &job, const char *what, long long rows, long long length) {
    const cuda_limits limits = {132, 0};
    cuda_launch launch;
    for (int step = 0; onepass_cuda_plan_step(&job, step, &limits, &launch); step++)
        if (!kernel_of(&launch))
            printf("%s %lld x %lld: launch %d has no kernel\\n", what, rows, length, step);
}
int main() {
    const int64_t many[] = {0, 1, 5, 33, 1000, 33000, 5000000, 300000000};
    const int64_t lengths[] = {1, 2, 10, 32, 33, 100, 128, 384, 512, 513, 768, 1000, 1024, 1028, 4096, 5000, 8193, 200000};
    for (int64_t rows : many)
        for (int64_t length : lengths) {
            float *aligned = (float *)4096, *odd = (float *)4100;
            PLAN
        }
    printf("planned\\n");
}
"""
PLANS = {
    "95_cross_entropy.py": """
            for (float *from : {aligned, odd}) {
                const rows_call behind = {rows, length, from, length, 1, (int64_t *)4096, 1, aligned, aligned, NULL};
                const rows_call aside = {rows, length, from, 1, rows, (int64_t *)4096, 1, aligned, aligned, NULL};
                const rows_call apart = {rows, length, from, 2 * length, 2, (int64_t *)4096, 1, aligned, aligned, NULL};
                look_at(job_of(&behind), "rows", rows, length);
                look_at(job_of(&aside), "rows aside", rows, length);
                look_at(job_of(&apart), "rows apart", rows, length);
            }""",
    "99_triplet_margin.py": """
            for (float *from : {aligned, odd})
                for (int64_t apart = 1; apart <= 2; apart++) {
                    vectors_call call = {rows, length, 1, {from, from, from}, {}, {}, aligned, aligned, NULL};
                    for (int k = 0; k < 3; k++)
                        call.row_stride[k] = apart * length, call.element_stride[k] = apart;
                    look_at(job_of(&call), "vectors", rows, length);
                }""",
}


@pytest.mark.parametrize("file", ["98_relative_entropy.py", *ROWS, *VECTORS] if QUICK else FILES)
def test_cuda_source_compiles(file, folder, tmp_path):
    """With no more spills than the library's own kernels may have, to the kernels that it launches, and to a program,
    so that no function of the library is missing; and whatever is planned of rows and vectors has a kernel. A quick run
    leaves out the machine code, of which the step `kernels` sees the library's own, and of the pairs all but the one
    with functions and a divisor of its own."""
    nvcc = shutil.which("nvcc")
    if not nvcc:
        pytest.skip("nvcc is not here")
    plans = PLANS_MANY.replace("PLAN", PLANS[file]) if file in PLANS else 'int main() { return puts("planned") < 0; }'
    (tmp_path / "mean.cu").write_text(texts(folder / file)["CUDA"] + "\n#include <stdio.h>\n" + plans)
    what = ["-gencode=arch=compute_90,code=compute_90", "-Xcicc", "-O0"] if QUICK else ["-arch=sm_90", "-Xptxas",
                                                                                      "-v,-warn-spills"]
    done = subprocess.run([nvcc, "-std=c++17", "--fmad=false", "-allow-unsupported-compiler", *what, "-keep", "-o",
                           "mean", "mean.cu"], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    for function, spilled in spills(told):
        assert file not in PAIRS or spilled <= allowed_spills(function, KERNELS[FILES[file]]), told
    ptx = next(tmp_path.glob("*.ptx")).read_text()
    assert sorted(re.findall(r"\.entry (\w+)", ptx)) == sorted(KERNELS[FILES[file]]), told
    assert not re.search(r"\.extern \.func.*onepass", ptx)
    planned = subprocess.run(["./mean"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert planned.stdout == "planned\n"


# ---------------------------------------------------------------------------------- on a GPU --


@pytest.fixture(scope="module", params=PAIRS)
def adaptor(request, folder, tmp_path_factory):
    return built(request.param, folder, tmp_path_factory)


@pytest.fixture(scope="module")
def rows(folder, tmp_path_factory):
    return built("95_cross_entropy.py", folder, tmp_path_factory)[1]


@pytest.fixture(scope="module")
def vectors(folder, tmp_path_factory):
    return built("99_triplet_margin.py", folder, tmp_path_factory)[1]


def built(file, folder, tmp_path_factory):
    """The loss's name and ModelNew of its file, compiled as the benchmark does it (a minute)."""
    extension = pytest.importorskip("torch.utils.cpp_extension")
    if not shutil.which("nvcc") and not extension.CUDA_HOME:
        pytest.skip("nvcc is not here")
    if not extension.is_ninja_available():
        pytest.skip("ninja is not here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_EXTENSIONS_DIR", os.fspath(tmp_path_factory.mktemp("extensions")))
        return FILES[file], load(folder / file, f"kernelbench_{FILES[file]}").ModelNew()


def packaged(loss, predictions, targets):
    """The same by the package. It warns of shapes that differ, as PyTorch does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(onepass, f"{loss}_loss")(predictions, targets, reduction=REDUCTIONS.get(loss, "mean"))


def expected(loss, predictions, targets):
    """The formula, in double."""
    from torch import xlogy

    p, t = predictions.double(), targets.double()
    x = p - t
    values = {
        "mse": lambda: x * x,
        "smooth_l1": lambda: (x.abs() < 1) * 0.5 * x * x + (x.abs() >= 1) * (x.abs() - 0.5),
        "hinge": lambda: (1 - p * t) * (p * t < 1),
        "relative_entropy": lambda: xlogy(t, t) - xlogy(t, p),
    }
    each = values[loss]()
    return (each.sum() / (each.shape[0] if each.dim() else 1) if loss in REDUCTIONS else each.mean()).item()


def bits(value):
    import torch

    assert value.shape == () and value.dtype == torch.float32 and value.is_cuda and type(value) is torch.Tensor
    return value.view(torch.int32).item()


def operands(loss):
    """Predictions and targets by what is particular about them. Each kernel has some of its own."""
    import torch

    memory = 2 * torch.randn(2, 4100 * 4100, device="cuda")
    if loss == "relative_entropy":
        memory = memory.abs() + 0.01

    def pair(*shape, begin=0):
        count = torch.Size(shape).numel()
        return tuple(of[begin:begin + count].view(shape) for of in memory)

    whole, other = pair(4096, 4096)
    yield "one element", *pair(1)
    yield "no dimension", *pair()
    yield "one tile", *pair(1024)
    yield "a few elements", *pair(7, 5, 3)
    yield "the most that is small", *pair(1 << 20)
    yield "a ragged end", *pair((1 << 21) + 5)
    yield "dense", whole, other
    yield "one row for all", whole, other[0]
    yield "one number a row", whole, other[:, :1]
    yield "one number for all", whole, other[0, 0]
    yield "one row of predictions", whole[0], other
    yield "odd rows, one for all", pair(333, 777)[0], other[0, :777]
    yield "odd rows, another shape of each", pair(333, 1, 7)[0], pair(5, 1)[1]
    yield "unaligned", *pair((1 << 20) + 77, begin=1)
    yield "apart by less than a vector", pair(3000, 1000)[0], pair(3000, 1000, begin=3)[1]
    yield "transposed", whole.t(), other
    yield "both transposed", whole.t(), other.t()
    yield "columns", whole[:, 5:3005], other[:, :3000]
    yield "every other row", whole[::2], other[1::2]
    yield "every third number", whole[:, ::3], other[:, ::3]
    yield "permuted", pair(64, 32, 1000)[0].permute(1, 0, 2), pair(32, 64, 1000)[1]


@pytest.mark.gpu
def test_same_bits_as_the_package(adaptor):
    loss, model = adaptor
    for name, predictions, targets in operands(loss):
        if loss == "hinge":
            targets = targets.sign()
        value = model(predictions, targets)
        assert bits(value) == bits(packaged(loss, predictions, targets)), name
        assert value.item() == pytest.approx(expected(loss, predictions, targets), rel=1e-6), name


@pytest.mark.gpu
def test_no_elements_nan_and_infinity(adaptor):
    import torch

    loss, model = adaptor
    for special in (float("nan"), float("inf"), -float("inf")):
        predictions, targets = torch.randn(2, 3 << 20, device="cuda")
        predictions[1 << 20] = special
        assert bits(model(predictions, targets)) == bits(packaged(loss, predictions, targets))
    assert model(torch.empty(0, 3, device="cuda"), torch.empty(3, device="cuda")).isnan()


@pytest.mark.gpu
def test_streams_and_graphs(adaptor):
    """Launches that run beside each other, and a graph that is replayed with other numbers, on another stream."""
    import torch

    loss, model = adaptor
    inputs = torch.randn(8, 2, 3 << 20, device="cuda")
    alone = [bits(model(*pair)) for pair in inputs]
    streams = [torch.cuda.Stream() for _ in inputs]
    torch.cuda.synchronize()
    values = []
    for _ in range(50):
        for stream, pair in zip(streams, inputs):
            with torch.cuda.stream(stream):
                values.append(model(*pair))
    torch.cuda.synchronize()
    assert [bits(value) for value in values] == 50 * alone

    pair = inputs[0].clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = model(*pair), model(*pair.flip(0))
    for number, stream in zip((3, 5, 3), streams):
        pair.copy_(inputs[number])
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            graph.replay()
        torch.cuda.synchronize()
        assert bits(captured[0]) == alone[number]
        assert bits(captured[1]) == bits(model(*inputs[number].flip(0)))


@pytest.mark.gpu
def test_refusals(adaptor):
    import torch

    _, model = adaptor
    here = torch.randn(6, 5, device="cuda")
    for predictions, targets, error, told in (
        (here.double(), here, TypeError, "predictions.*float32"),
        (here, here.half(), TypeError, "targets.*float32"),
        (here.cpu(), here, ValueError, "predictions is on cpu"),
        (here, here[:, 0], RuntimeError, "must match"),
        (here.clone().requires_grad_(), here, NotImplementedError, "requires a gradient"),
        (here.view(30, *16 * [1]), here, ValueError, "17 dimensions"),
    ):
        with pytest.raises(error, match=told):
            model(predictions, targets)
    with torch.no_grad():
        assert model(here.clone().requires_grad_(), here).shape == ()


@pytest.mark.gpu
@pytest.mark.parametrize("count, classes", [(1, 3), (5, 10), (4096, 10), (100, 777), (2000, 4096), (7, 30001), (64, 128256)])
def test_rows(rows, count, classes):
    import torch

    predictions, targets = 4 * torch.randn(count, classes, device="cuda"), torch.randint(classes, (count,), device="cuda")
    for z in (predictions, predictions.t().contiguous().t(), predictions[:, :]):
        for y in (targets, torch.where(targets % 5 == 1, -100, targets)):
            value = rows(z, y)
            assert bits(value) == bits(onepass.cross_entropy(z, y))
            exact = torch.nn.functional.cross_entropy(z.double(), y).item()
            assert value.item() == pytest.approx(exact, rel=1e-6, nan_ok=True)
    targets[0] = classes
    assert rows(predictions, targets).isnan()


@pytest.mark.gpu
def test_refusals_of_rows(rows):
    import torch

    z, y = torch.randn(6, 5, device="cuda"), torch.zeros(6, dtype=torch.int64, device="cuda")
    for predictions, targets, error, told in (
        (z.double(), y, TypeError, "predictions.*float32"),
        (z, y.int(), TypeError, "targets.*int64"),
        (z, y[:5], ValueError, "a class index for each"),
        (z.view(2, 3, 5), y, ValueError, "rows of classes"),
        (z.clone().requires_grad_(), y, NotImplementedError, "requires a gradient"),
    ):
        with pytest.raises(error, match=told):
            rows(predictions, targets)


@pytest.mark.gpu
@pytest.mark.parametrize("count, length", [(1, 3), (5, 128), (4096, 512), (100, 777), (2000, 4096), (7, 30001), (512, 8192)])
def test_vectors(vectors, count, length):
    import torch

    three = torch.randn(3, count, length, device="cuda")
    for anchor, positive, negative in (
        three, three.transpose(1, 2).contiguous().transpose(1, 2), (three[0], three[1], three[2, :1]),
        (three[0], three[1, :, :1], three[2]),
    ):
        value = vectors(anchor, positive, negative)
        same = [tensor.expand(count, length) for tensor in (anchor, positive, negative)]
        assert bits(value) == bits(onepass.triplet_margin_loss(*same))
        exact = torch.nn.functional.triplet_margin_loss(*(tensor.double() for tensor in same)).item()
        assert value.item() == pytest.approx(exact, rel=1e-6)


@pytest.mark.gpu
def test_margins_and_no_rows(vectors):
    import torch

    three = torch.randn(3, 50, 64, device="cuda")
    for margin in (0.25, 7.0):
        assert bits(type(vectors)(margin)(*three)) == bits(onepass.triplet_margin_loss(*three, margin=margin))
    assert vectors(*three[:, :0]).isnan()


@pytest.mark.gpu
def test_refusals_of_vectors(vectors):
    import torch

    a = torch.randn(6, 5, device="cuda")
    for anchor, positive, negative, error, told in (
        (a.double(), a, a, TypeError, "anchor.*float32"),
        (a, a, a.half(), TypeError, "negative.*float32"),
        (a, a.cpu(), a, ValueError, "positive is on cpu"),
        (a, a, a[:5], RuntimeError, "must match"),
        (a[0], a[0], a[0], ValueError, "rows of elements"),
        (a, a.clone().requires_grad_(), a, NotImplementedError, "requires a gradient"),
    ):
        with pytest.raises(error, match=told):
            vectors(anchor, positive, negative)
