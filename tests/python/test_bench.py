# The benchmark itself: its clocks, its table, its record, its picture and its sentences. How fast things are is not
# tested here.
import contextlib
import io
import json
import math
import re
import types

import numpy as np
import onepass
import pytest
from onepass.bench import __main__ as program
from onepass.bench import cases, clock, contenders, formula, machine, picture, plain, record, report

LOSSES = [loss["name"] for loss in onepass.losses()]
SMALL = ["--quick", "--device", "cpu", "--sizes", "1000", "--peers", "numpy,limit"]


def run(*words):
    """The status, standard output and standard error of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = program.main([str(word) for word in words])
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()


# -------------------------------------------------------------------------- clocks --


class FakeTime:
    """Stands still but for those who take some of it."""

    def __init__(self):
        self.seconds, self.order = 0.0, []

    def __call__(self):
        return self.seconds

    def taking(self, name, seconds):
        """A contender that takes these seconds, one after the other and then again."""
        calls = []

        def work():
            self.order.append(name)
            self.seconds += seconds[len(calls) % len(seconds)]
            calls.append(name)
            return 1.0

        return clock.Contender(name, lambda: [work])


def test_medians_of_turns():
    now = FakeTime()
    pair = [now.taking("a", [0.020, 0.021, 0.5]), now.taking("b", [0.040])]
    clock.Clock(seconds=100, rounds=(5, 9), now=now).measure(pair)
    assert pair[0].seconds() == pytest.approx(0.021) and pair[1].seconds() == pytest.approx(0.040)
    assert [len(contender.times) for contender in pair] == [9, 9]
    assert now.order[-18:] == ["a", "b"] * 9, "they take turns"
    row = {"found": {c.name: c.seconds() for c in pair}, "bytes": 100, "moved": {"b": 50}}
    assert record.time_ratio(row, "b", "a") == pytest.approx(0.525)
    assert record.rate_ratio(row, "b", "a") == pytest.approx(2 / 0.525)


def test_short_calls_are_repeated():
    now = FakeTime()
    contender = now.taking("a", [1e-6])
    clock.Clock(seconds=1e-9, rounds=(3, 5), now=now).measure([contender])
    assert contender.seconds() == pytest.approx(1e-6) and contender.calls >= 512 and len(contender.times) == 3


def test_whoever_fails_is_missing_and_the_others_go_on():
    now = FakeTime()

    def fails():
        raise ValueError("two\nlines")

    def is_absent():
        raise clock.Absent("it is not installed")

    here = now.taking("here", [0.02])
    contenders_here = [clock.Contender("fails", lambda: [fails]), clock.Contender("absent", is_absent), here]
    clock.Clock(seconds=1e-9, rounds=(3, 3), now=now).measure(contenders_here)
    assert [c.missing for c in contenders_here] == ["ValueError: two lines", "it is not installed", ""]
    assert here.seconds() == pytest.approx(0.02) and contenders_here[0].seconds() is None


def fake_gpu(now):
    """As much of PyTorch as the GPU's clock uses; a replay takes as long as the calls that were captured."""
    captured = []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            self.at = now()

        def elapsed_time(self, end):
            return 1e3 * (end.at - self.at)

    class Graph:
        def replay(self):
            now.seconds += self.seconds

    @contextlib.contextmanager
    def graph(made, stream, capture_error_mode):
        before = now()
        yield
        made.seconds = now() - before
        captured.append(made)

    cuda = types.SimpleNamespace(Event=Event, CUDAGraph=Graph, graph=graph, Stream=object, set_stream=lambda stream: None,
                                 current_stream=lambda: None, synchronize=lambda: None, empty_cache=lambda: None,
                                 _sleep=lambda cycles: None)
    nothing = lambda *shape, **options: None
    return types.SimpleNamespace(cuda=cuda, zeros=nothing, sum=nothing), captured


@pytest.mark.parametrize("elements, calls", [(1000, 64), (1 << 22, 16), (1 << 26, 1)])
def test_the_gpus_clock(elements, calls):
    now = FakeTime()
    torch, captured = fake_gpu(now)
    gpu = clock.GpuClock(torch, seconds=1e-9, rounds=(3, 3), now=now)
    gpu.set_size(elements, 12 * elements)
    on_stream, by_wall = now.taking("a", [2e-6]), now.taking("b", [3e-6])
    by_wall.wait = lambda result: None
    gpu.measure([on_stream, by_wall])
    assert on_stream.seconds() == pytest.approx(2e-6) and by_wall.seconds() == pytest.approx(3e-6)
    assert on_stream.calls == calls and len(captured) == (calls > 1)


def test_what_cannot_be_captured_is_timed_without_a_graph():
    now = FakeTime()
    torch, _ = fake_gpu(now)

    @contextlib.contextmanager
    def graph(*words, **options):
        yield
        raise RuntimeError("operation not permitted")

    torch.cuda.graph = graph
    gpu = clock.GpuClock(torch, seconds=1e-9, rounds=(3, 3), now=now)
    gpu.set_size(1000, 12000)
    contender = now.taking("a", [2e-6])
    gpu.measure([contender])
    assert contender.seconds() == pytest.approx(2e-6) and contender.missing == ""
    assert contender.note == "timed without a graph: RuntimeError: operation not permitted"


# ------------------------------------------------------------------------ formulas --


@pytest.mark.parametrize("loss", LOSSES)
def test_a_formula_is_the_loss(loss):
    """NumPy's peer computes what we do: the value, and the gradient."""
    p, t, v = (np.random.default_rng(seed).uniform(0.1, 0.9, 100) for seed in range(3))
    case = types.SimpleNamespace(loss=loss, type="f64")
    terms = contenders.Contenders.by_formula(np, case, with_gradient=True)
    operands = (p, t, v)[:len(next(known for known in onepass.losses() if known["name"] == loss)["operands"])]
    value, slope = terms(*operands)
    ours = onepass.value_and_grad(loss, *operands, **contenders.PARAMETERS.get(loss, {}))
    assert np.mean(value) == pytest.approx(ours[0], rel=1e-12)
    assert slope / slope.size * np.ones(100) == pytest.approx(ours[1], rel=1e-9, abs=1e-15)


def test_what_a_formula_repeats_is_computed_once():
    lines = formula.statements(["(log1p(p) - log1p(t))*(log1p(p) - log1p(t))"])
    assert " ".join(lines).count("log1p") == 2
    assert formula.statements(["a ? (b < 1 ? c : d) : f(e, 1)"]) == ["return where(a, where(b < 1, c, d), f(e, 1))"]


# ----------------------------------------------------------------- the table, the record --


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """What a small run prints and leaves."""
    folder = tmp_path_factory.mktemp("bench")
    command = [*SMALL, "--losses", "mse,gaussian_nll", "--json", folder / "f.json"]
    status, out, err = run(*command)
    assert status == 0 and err == "", (out, err)
    return folder / "f.json", out


def rows_of(out):
    return [line for line in out.splitlines() if re.match(r"(mse|gaussian_nll) ", line)]


def test_the_table_lines_up(measured):
    out = measured[1]
    heading, = (line for line in out.splitlines() if line.startswith("sizes"))
    rows = rows_of(out)
    assert len(rows) == 4 and "numpy" in heading and "of the limit" in heading
    assert {len(row) for row in rows} == {len(heading)}
    assert all(re.search(r"\d (ns|us|ms) ", row) for row in rows)


def test_the_record_has_what_it_says(measured):
    found = record.read(measured[0])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["date"])
    assert found["hardware"]["cpu"] and found["threads"] >= 1 and found["instruction_set"]
    assert found["versions"]["onepass"] == onepass.__version__ and found["versions"]["numpy"] == np.__version__
    assert found["command"].startswith("python -m onepass.bench --quick")
    assert [(row["loss"], row["mode"]) for row in found["results"]] == [
        (loss, mode) for loss in ("mse", "gaussian_nll") for mode in ("forward", "step")]
    for row, bytes in zip(found["results"], (8000, 12000, 12000, 16000)):
        assert {"onepass", "numpy"} <= set(row["found"]) and all(second > 0 for second in row["found"].values())
        assert row["elements"] == 1000 and row["bytes"] == bytes and row["type"] == "f32"


def test_a_record_is_shown_again(measured):
    status, out, err = run("--from", measured[0])
    assert status == 0 and err == ""
    assert [row.split() for row in rows_of(out)] == [row.split() for row in rows_of(measured[1])]


@pytest.mark.parametrize("ending, begins", [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_a_picture(measured, ending, begins):
    pytest.importorskip("matplotlib", reason="matplotlib, which draws, is not installed")
    path = measured[0].parent / f"g.{ending}"
    status, out, err = run("--from", measured[0], "--plot", path)
    assert status == 0 and err == "" and f"drawn in {path}" in out
    assert path.read_bytes().startswith(begins)


def test_without_matplotlib(measured, monkeypatch):
    monkeypatch.setattr(picture, "installed", lambda name: None)
    status, out, err = run(*SMALL, "--plot", measured[0].parent / "h.svg")
    assert status == 2 and out == ""
    assert err == "onepass.bench: --plot needs matplotlib, which is not installed: pip install matplotlib\n"


def test_a_folder_names_the_file_by_the_hardware(tmp_path):
    status, out, _ = run(*SMALL, "--losses", "mse", "--modes", "forward", "--json", f"{tmp_path}/new/")
    path, = (tmp_path / "new").iterdir()
    assert status == 0 and path.name.endswith("-quick.json") and path.name.startswith(machine.slug(machine.processor()))
    assert f"written to {path}" in out


def test_without_pytorch(monkeypatch):
    installed = machine.installed
    for module in (machine, contenders):
        monkeypatch.setattr(module, "installed", lambda name: None if name == "torch" else installed(name))
    status, out, err = run("--quick", "--sizes", "1000", "--peers", "numpy,torch eager", "--losses", "mse,bce")
    assert status == 0 and err == "", err
    assert "Without a GPU: PyTorch" in out and "left out: torch eager: it is not installed" in out
    assert len(re.findall(r"^(mse|bce) (forward|step) ", out, re.MULTILINE)) == 4


def test_every_section_runs():
    """All but those that compile."""
    pytest.importorskip("torch")
    command = ["--quick", "--device", "cpu", "--threads", "1", "--losses", "mse", "--peers", "torch eager"]
    sections = ["losses", "types", "rows", "distributions", "linear", "host", "accuracy"]
    status, out, err = run(*command, "--cases", ",".join(sections))
    assert status == 0 and err == "", err
    assert all(re.search(rf"^{section} ", out, re.MULTILINE) for section in sections)
    left_out = re.findall(r"left out: (.*)", out)
    assert "0 ulp" in out and not [reason for reason in left_out if "PyTorch has it from 2.13 on" not in reason]


def test_rows_of_a_type():
    """Which shapes there are does not change with it."""
    pytest.importorskip("torch")
    found = {}
    for types in ([], ["--types", "bf16"]):
        _, out, _ = run("--quick", "--device", "cpu", "--threads", "1", "--cases", "rows", "--modes", "forward", "--peers",
                        "torch eager", *types)
        found[len(types)] = set(re.findall(r"^(\w+ forward \w+ .*?)  +\d", out, re.MULTILINE))
    assert found[2] and found[2] == {text for text in found[0] if " bf16 " in text} and found[2] < found[0], found


def test_only_some_lines():
    pytest.importorskip("torch")
    options = ["--quick", "--device", "cpu", "--threads", "1", "--cases", "rows", "--peers", "torch eager", "--only"]
    status, out, _ = run(*options, "label smoothing")
    lines = re.findall(r"^(\w+) (forward|step|scaled) .*? 4096( label smoothing)?  +\d", out, re.MULTILINE)
    assert status == 0 and lines == [("cross_entropy", mode, " label smoothing")
                                     for mode in ("forward", "step", "scaled")], out
    status, _, err = run(*options, "no such line")
    assert status == 2 and "--only: no case of rows has 'no such line' in its line" in err


def test_what_was_measured_before_an_interrupt_is_kept(monkeypatch, tmp_path):
    pytest.importorskip("torch")
    from onepass.bench.stage import Stage
    measure, rows = Stage.measure, []

    def measure_twice(stage, case):
        if len(rows) == 2:
            raise KeyboardInterrupt
        rows.append(measure(stage, case))
        return rows[-1]

    monkeypatch.setattr(Stage, "measure", measure_twice)
    path = tmp_path / "some.json"
    status, out, _ = run("--quick", "--device", "cpu", "--threads", "1", "--cases", "rows", "--peers", "torch eager",
                         "--json", str(path))
    assert status == 1 and "what was measured until now is kept" in out
    assert len(json.loads(path.read_text())["results"]) == len(rows) == 2


def test_every_loss_is_compared():
    """PyTorch and NumPy compute what we do, with data that suit each loss."""
    pytest.importorskip("torch")
    _, out, _ = run("--quick", "--device", "cpu", "--threads", "1", "--losses", "all", "--sizes", "1000", "--modes",
                    "step", "--peers", "numpy,torch eager")
    assert len(re.findall(r" step f32 1000 .*\d\.\d+ +\d+\.\d+$", out, re.MULTILINE)) == len(LOSSES)
    assert "left out" not in out, out


def test_the_plain_loops():
    torch = pytest.importorskip("torch")
    try:
        loops = plain.Plain(None, 1)
        p, t = torch.rand(50, 20), torch.rand(20, 50).t()
        nested = loops.looping("plain", "nested", (p, t))
    except clock.Absent as absent:
        pytest.skip(f"the plain loops: {absent}")
    ours = loops.looping("onepass", "forward", (p, t))
    nested(2), ours(2)
    assert nested.work.value == pytest.approx(float(((p - t) ** 2).sum()), rel=1e-5)
    assert ours.work.value == float(onepass.mse_loss(p, t))
    gradient = torch.empty_like(p)
    loops.looping("onepass", "backward", (p, t), gradient)(1)
    assert torch.allclose(gradient, 2 * (p - t) / 1000)
    with pytest.raises(RuntimeError, match="no plain loop for this loss"):
        loops.looping("plain", "forward", (p, t), loss="bce")(1)


def test_the_goals_beside_plain_loops():
    """Value with gradient has one at each size, with all threads and with one."""
    stage = types.SimpleNamespace(torch=True, device="cpu", plain_contenders=lambda mode, threads: [threads])
    listed = cases.Cases(stage, types.SimpleNamespace(quick=False, losses=list(cases.USUAL))).of("plain")
    goals = {(case.loss, case.elements, *case.others): case.goals for case in listed if case.mode == "both"}
    for threads in (None, 1):
        for size, share in ((1 << 26, 0.9), (1 << 20, 0.8), (1 << 16, 0.8)):
            for loss in cases.USUAL:
                assert goals[loss, size, threads] == {"plain loop, gradient alone": pytest.approx(1 / share)}
    assert len({case.words() for case in listed}) == len(listed), "a case for each name"


# ----------------------------------------------------------------------- sentences --


@pytest.mark.parametrize(
    "words, says",
    [
        (["--losses", "nope"], "there is no 'nope'; there are mse,"),
        (["--sizes", "2^"], "'2^' is no number of elements, such as 1000 or 2^20"),
        (["--sizes", "0"], "'0' is no number of elements"),
        (["--sizes", "2^99"], "'2^99' is no number of elements"),
        (["--types", "f33"], "there is no 'f33'; there are f16, bf16, f32, f64"),
        (["--cases", "speed"], "there is no 'speed'; there are"),
        (["--modes", "backward"], "there is no 'backward'; there are forward, step"),
        (["--threads", "0"], "'0' is no number of threads"),
        (["--device", "tpu"], "'tpu'"),
        (["--qui"], "--qui"),
        (["--plot", "f.txt"], "--plot: f.txt should end in .svg, .png or .pdf"),
        (["--json", "missing/f.json"], "--json: there is no folder missing"),
        (["--from", "missing.json"], "missing.json: cannot be read: No such file or directory"),
        (["--plain", "missing.so", *SMALL], "--plain: missing.so cannot be loaded"),
    ],
    ids=str,
)
def test_mistakes(words, says):
    status, _, err = run(*words)
    assert status == 2 and says in err.splitlines()[-1]


@pytest.mark.parametrize(
    "change, says",
    [
        ({"date": None}, '"date" of the record should be of type str'),
        ({"results": [3]}, "a result should be an object, not int"),
        ({"hardware": {}}, "on what hardware"),
        ({"results": [{"section": "sizes"}]}, '"device" of a result should be of type str'),
    ],
    ids=str,
)
def test_records_that_are_none(measured, tmp_path, change, says):
    (tmp_path / "f.json").write_text(json.dumps({**json.loads(measured[0].read_text()), **change}))
    status, _, err = run("--from", tmp_path / "f.json")
    assert status == 2 and says in err


def test_help():
    status, out, _ = run("--help")
    assert status == 0 and all(f"  {section} " in out for section in cases.SECTIONS)
    assert all(len(line) <= 120 for line in out.splitlines()) and "examples:" in out


@pytest.mark.parametrize("watched", [True, False])
def test_a_progress_bar_on_a_terminal_only(watched):
    file = io.StringIO()
    file.isatty = lambda: watched
    progress = report.Progress(4, file)
    progress.show("first"), progress.show("second"), progress.wipe()
    assert ("[#####...............] 1/4 second" in file.getvalue()) == watched and bool(file.getvalue()) == watched


def test_a_missed_goal_is_marked():
    row = {"found": {"onepass": 2.0, "torch.compile": 1.0, "limit": 1.9}, "bytes": 8,
           "goals": {"torch.compile": 1, "limit": 0.95}}
    assert report.Table.cell(row, "torch.compile", "s") == "2.000*" and report.Table.cell(row, "limit", "s") == "0.950"
    assert report.Table.cell(row, "jax", "s") == "-"


def test_figures_are_numbers():
    assert report.quantity(1.2345e-5, "s") == "12.3 us" and report.quantity(5e-10, "s") == "0 ns"
    assert report.quantity(1024, "B") == "1 KiB" and math.isclose(float(report.quantity(3.0, "ulp").split()[0]), 3)
