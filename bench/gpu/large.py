"""The works on arrays that no cache holds: forward, gradients, types, shapes, memory.

Each prints ours beside the memory's limit for its bytes and beside what a user would
pick instead. The bars are those that the library has set itself for an H200.
"""

import torch

from . import peers, timing
from .bench import LARGEST_ERROR, Beside, compare, gradient_mistakes, reference_mean
from .onepass_c import Call
from .report import AT_LEAST, AT_MOST, BELOW, RATE, SELF, Row

MIB = 1 << 20


def targets(bench, loss):
    """The targets that a loss is measured with, by name; hinge also has a row and a column that are broadcast."""
    yield "", bench.t
    if loss == "hinge":
        yield f", target ({bench.side},)", bench.t[0]
        yield f", target ({bench.side}, 1)", bench.t[:, :1].contiguous()


def size_of(*tensors):
    return float(sum(tensor.numel() * tensor.element_size() for tensor in tensors))


# --------------------------------------------------------------------- memory --


def measure_memory(bench):
    """What our calls take of the device beyond their operands. Must come before any other use of the library."""
    bench.report.begin("memory", "device memory beyond inputs and outputs")
    torch.cuda.synchronize()
    before = free = torch.cuda.mem_get_info()[0]
    bench.library.prepare()
    after_prepare = torch.cuda.mem_get_info()[0]
    for loss in peers.LOSSES:
        for outputs in ({"value": bench.value}, {"value": bench.value, "gradient": bench.g}, {"gradient": bench.g},
                        {"value": bench.g, "reduction": "none"}):
            Call(bench.library, loss, bench.p, bench.t, **outputs).run()
            free = min(free, torch.cuda.mem_get_info()[0])
    torch.cuda.synchronize()
    free = min(free, torch.cuda.mem_get_info()[0])
    elements = bench.p.numel()
    bench.report.add(Row("onepass_prepare alone", "MiB", "", ours=(before - after_prepare) / MIB, of=SELF))
    used = (before - free) / MIB
    for name, run in (("torch eager, mse", lambda: peers.mse(bench.p, bench.t)),
                      ("torch autograd, mse", peers.trained(peers.mse, bench.p, bench.t))):
        row = Row("prepare and twelve calls", "MiB", name, ours=used, ratio=used, of=SELF, elements=elements)
        row.bar = bench.bar(BELOW, 4) if name == "torch eager, mse" else None
        row.beside = eager_peak(run) / MIB
        bench.report.add(row)


def eager_peak(run):
    timing.free_memory()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    timing.free_memory()
    return peak


# --------------------------------------------------------------------- limits --


def measure_limits(bench):
    """The limits beside each other, and the kernels that set them checked."""
    bench.report.begin("limits", "what the memory allows: plain kernels of the best shape found")
    p, t, g = bench.p, bench.t, bench.g
    two = lambda: Beside(bench.limit("plain read of both", lambda limits: limits.reading(p, t)), RATE)
    works = [("read one", lambda limits: limits.reading(p)),
             ("read two, write one", lambda limits: limits.writing(g, p, t)),
             ("read one, write one", lambda limits: limits.writing(g, p)),
             ("copy by cudaMemcpyAsync", lambda limits: limits.copying(g, p))]
    for work, choose in works:
        compare(bench, work, p.numel(), bench.limit(work, choose), [two()])
    if bench.limits and ("read", 2, p.numel() * p.element_size()) in bench.limits.best:
        if not bench.limits.reads_everything(p, t):
            bench.report.fail("limits", "the plain reading of two arrays does not add up to what PyTorch finds")


# -------------------------------------------------------------------- forward --


def measure_forward(bench):
    bench.report.begin("forward", "forward, mean, f32")
    for loss in peers.LOSSES:
        for suffix, target in targets(bench, loss):
            forward_work(bench, f"forward {loss}{suffix}", loss, bench.p, target)


def forward_work(bench, work, loss, p, t):
    dense = t.shape == p.shape
    is_judged = loss != "hinge" or not dense  # hinge has its bars where it is used, with a label a row or a column
    reading = bench.limit("plain read", lambda limits: limits.reading(p, t if dense else None))
    below = bench.bar(BELOW, 1) if is_judged else None
    besides = [Beside(peers.compiled_forward(loss, p, t), bar=below),
               Beside(peers.torch_forward(loss, p, t)),
               Beside(peers.jax_forward(loss, p, t), bar=below if dense else None),
               Beside(reading, RATE, bench.bar(AT_LEAST, 0.98 if dense else 0.95) if is_judged else None)]
    if loss == "mse":
        besides.append(Beside(bench.limit("CUB TransformReduce", lambda limits: limits.cub(p, t)), bar=below))
    ours = bench.ours(loss, p, t, size_of(p, t), value=bench.value)
    compare(bench, work, p.numel(), ours, besides, reference_mean(loss, p, t))


def measure_types(bench):
    bench.report.begin("types", "16-bit types, and the limit of their bytes")
    for name, dtype in (("f16", torch.float16), ("bf16", torch.bfloat16)):
        measure_type(bench, name, bench.p.to(dtype), bench.t.to(dtype))
        timing.free_memory()


def measure_type(bench, name, p, t):
    reading = lambda: bench.limit("plain read of both", lambda limits: limits.reading(p, t))
    for loss in peers.LOSSES:
        ours = bench.ours(loss, p, t, size_of(p, t), value=bench.value)
        besides = [Beside(peers.compiled_forward(loss, p, t), bar=bench.bar(AT_MOST, 1)),
                   Beside(peers.torch_forward(loss, p, t)),
                   Beside(reading(), RATE, bench.bar(AT_LEAST, 0.93))]
        compare(bench, f"forward {loss}, {name}", p.numel(), ours, besides, reference_mean(loss, p, t))
    gradient = torch.empty_like(p)
    for loss in peers.LOSSES:
        gradient_of_16_bits(bench, f"value and gradient {loss}, {name}, sum", loss, p, t, gradient)


def gradient_of_16_bits(bench, work, loss, p, t, gradient):
    """Of a sum: the gradient of a mean over so many elements would be zero in f16."""
    outputs = {"value": bench.value, "gradient": gradient, "reduction": "sum"}
    limit = bench.limit("plain read two, write one", lambda limits: limits.writing(gradient, p, t))
    compare(bench, work, p.numel(), bench.ours(loss, p, t, size_of(p, t, gradient), **outputs), [Beside(limit, RATE)])
    tolerance = 2.0 ** -8 if p.dtype == torch.bfloat16 else 2.0 ** -10
    check_gradient(bench, work, Call(bench.library, loss, p, t, **outputs), gradient, 1.0, tolerance, loss, p, t)


# ------------------------------------------------------------------- gradient --

# At most so much of the time of torch.compile(grad_and_value) and of torch.compile autograd.
GRADIENT_BARS = {"mse": (0.62, 0.45), "smooth_l1": (0.62, 0.55), "hinge": (0.70, 0.60)}


def measure_gradient(bench):
    bench.report.begin("gradient", "value and gradient for the prediction, f32")
    for loss in peers.LOSSES:
        for suffix, target in targets(bench, loss):
            if target.dim() == 1 or target.shape == bench.p.shape:
                gradient_work(bench, f"value and gradient {loss}{suffix}", loss, bench.p, target)
    one_gradient_works(bench)


def gradient_work(bench, work, loss, p, t):
    dense = t.shape == p.shape
    together, autograd = GRADIENT_BARS[loss] if loss != "hinge" or not dense else (None, None)
    bar = lambda value: bench.bar(AT_MOST, value) if value else None
    limit = bench.limit("plain read and write", lambda limits: limits.writing(bench.g, p, t if dense else None))
    besides = [Beside(peers.compiled_grad_and_value(loss, p, t), bar=bar(together)),
               Beside(peers.compiled_autograd(loss, p, t), bar=bar(autograd)),
               Beside(peers.torch_gradient(loss, p, t)),
               Beside(peers.jax_value_and_grad(loss, p, t), bar=bar(0.92)),
               Beside(limit, RATE, bench.bar(AT_LEAST, 0.97))]
    outputs = {"value": bench.value, "gradient": bench.g}
    ours = bench.ours(loss, p, t, size_of(p, t, bench.g), **outputs)
    compare(bench, work, p.numel(), ours, besides, reference_mean(loss, p, t))
    call = Call(bench.library, loss, p, t, **outputs)
    check_gradient(bench, work, call, bench.g, 1 / p.numel(), 1e-6, loss, p, t)


def one_gradient_works(bench):
    """What a training step without the one pass asks for, and the values themselves."""
    p, t, g = bench.p, bench.t, bench.g
    upstream = torch.full((), 0.5, device=timing.DEVICE)
    for loss in peers.LOSSES:
        for work, outputs in ((f"backward {loss}", {"gradient": g, "upstream": upstream}),
                              (f"forward {loss}, no reduction", {"value": g, "reduction": "none"})):
            limit = bench.limit("plain read two, write one", lambda limits: limits.writing(g, p, t))
            compare(bench, work, p.numel(), bench.ours(loss, p, t, size_of(p, t, g), **outputs), [Beside(limit, RATE)])


def check_gradient(bench, work, call, gradient, scale, tolerance, loss, p, t):
    """Every element, after the buffer was poisoned."""
    gradient.fill_(float("nan"))
    try:
        call.run()
        torch.cuda.synchronize()
    except RuntimeError as error:
        bench.report.fail(work, timing.reason_of(error))
        return
    share = gradient_mistakes(loss, p, t, gradient, scale, tolerance)
    if share > 1e-6:
        bench.report.fail(work, f"{100 * share:.4g} % of the gradient is wrong")
    timing.free_memory()


# --------------------------------------------------------------------- shapes --


def measure_shapes(bench):
    """Ours beside ours: what strides, offsets and types cost, in bytes a second."""
    bench.report.begin("shapes", "shapes and strides: ours beside ours on dense f32")
    side, (p, t) = bench.side, bench.flat
    padded = lambda flat, columns, pitch: bench.rows(flat, columns, pitch)
    layouts = [
        ("rows padded by 32", padded(p, side, side + 32), padded(t, side, side + 32)),
        ("rows padded by 1", padded(p, side, side + 1), padded(t, side, side + 1)),
        ("one element fewer a row", padded(p, side - 1, side), padded(t, side - 1, side)),
        ("prediction from element 1 on", bench.rows(p, offset=1), bench.t),
        ("both from element 1 on", bench.rows(p, offset=1), bench.rows(t, offset=1)),
        ("target transposed", bench.p, bench.t.t()),
        ("both transposed", bench.p.t(), bench.t.t()),
        (f"rows of {side - 1}, target a row", bench.rows(p, side - 1), bench.t[0, :side - 1]),
        (f"rows of {side - 1}, target a column", bench.rows(p, side - 1), bench.t[:, :1].contiguous()),
    ]
    for name, prediction, target in layouts:
        shape_work(bench, f"forward mse, {name}", prediction, target)
    for name, prediction, target in layouts[:2] + layouts[-2:]:
        gradient = bench.flat_gradient.as_strided(prediction.shape, prediction.stride())
        shape_work(bench, f"value and gradient mse, {name}", prediction, target, gradient)
    other_type_works(bench)


def shape_work(bench, work, p, t, gradient=None):
    outputs, dense_outputs = {"value": bench.value}, {"value": bench.value}
    bytes, dense_bytes = size_of(p, t), size_of(bench.p, bench.t)
    if gradient is not None:
        outputs["gradient"], dense_outputs["gradient"] = gradient, bench.g
        bytes, dense_bytes = bytes + size_of(gradient), dense_bytes + size_of(bench.g)
    dense = bench.ours("mse", bench.p, bench.t, dense_bytes, **dense_outputs)
    dense.name = "ours, dense f32"
    reference = None if gradient is not None else reference_mean("mse", p, t)
    ours = bench.ours("mse", p, t, bytes, **outputs)
    compare(bench, work, p.numel(), ours, [Beside(dense, RATE)])
    if reference is not None and not ours.missing and not abs(ours.loss / reference - 1) <= LARGEST_ERROR:
        bench.report.fail(work, f"the loss is {ours.loss}, it should be {reference}")


def other_type_works(bench):
    """Half as many rows of f64 have the bytes of f32; a mixed pair is read as it is stored."""
    rows = bench.side // 2
    shape_work(bench, "forward mse, f64, half the rows", bench.p[:rows].double(), bench.t[:rows].double())
    timing.free_memory()
    shape_work(bench, "forward mse, bf16 with target f32", bench.p.bfloat16(), bench.t)
    timing.free_memory()
