"""python -m onepass.bench: onepass compared with PyTorch, torch.compile, JAX and NumPy on this machine."""

import argparse
import os
import shlex
import sys

from .._catalog import CATALOG
from . import cases, machine, picture, record, report
from .clock import Absent
from .contenders import PEERS, SIZES

DESCRIPTION = """\
Measures onepass on this machine's CPU and GPU, compared with what a user would pick instead, whoever of them is
installed: NumPy, PyTorch, torch.compile, JAX; and with the limit of the memory, a plain loop or kernel that moves the
same bytes. All take turns in one run, and medians are compared."""

EXAMPLES = f"""\
examples:
  python -m onepass.bench --quick                     a look, in a minute
  python -m onepass.bench --losses mse --sizes 2^20   one loss, one size
  python -m onepass.bench --losses all --sizes 2^24 --peers torch.compile,limit
  python -m onepass.bench --plot speed.svg            a picture: GB/s over the number of elements
  python -m onepass.bench --cases all --json results/ everything, kept as JSON
  python -m onepass.bench --from results/x.json --plot x.png

what --cases names:
{cases.__doc__.split("Sections:", 1)[1].strip(chr(10))}

The first run takes minutes, most of which torch.compile does. To compare with plain C loops, `make bench` in the source
tree."""


class Wrong(Exception):
    """What is wrong with the command."""


def count_of(text):
    digits = text.removeprefix("2^")
    if not digits.isdecimal() or len(digits) > 15 or not 1 <= (
            count := 1 << min(int(digits), 50) if digits != text else int(text)) <= 1 << 40:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of elements, such as 1000 or 2^20")
    return count


def listed(convert):
    return lambda text: [convert(word) for word in text.split(",")]


def among(known):
    def convert(word):
        if word not in known:
            raise argparse.ArgumentTypeError(f"there is no {word!r}; there are {', '.join(known)}")
        return word

    return listed(convert)


def all_or(known):
    return lambda text: list(known) if text == "all" else among(known)(text)


def positive(text):
    if not text.isdecimal() or not 1 <= int(text) <= 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of threads")
    return int(text)


def parse(words):
    parser = argparse.ArgumentParser(prog="python -m onepass.bench", description=DESCRIPTION, epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    add = parser.add_argument
    add("--device", choices=("all", "cpu", "cuda"), default="all",
        help="all, unless said otherwise, is the CPU and, if there is one, the GPU")
    add("--cases", type=all_or(cases.SECTIONS), default=["sizes"], metavar="NAME,...",
        help="what to measure: sizes unless said otherwise; all, or some of those below")
    add("--losses", type=all_or(CATALOG), metavar="NAME,...",
        help=f"{', '.join(cases.USUAL)} unless said otherwise (all where every loss has its case); all, or some")
    add("--sizes", type=listed(count_of), metavar="N,...", help="numbers of elements, such as 2^10,2^20,1000000")
    add("--types", type=among(SIZES), metavar="TYPE,...",
        help="of f16, bf16, f32 and f64; f32 for sizes, and whatever rows, vectors and distributions have, unless said "
        "otherwise")
    add("--modes", type=among(("forward", "step")), default=["forward", "step"], metavar="MODE,...",
        help="forward: the value; step: value and gradient as a training step has them. Both unless said otherwise")
    add("--peers", type=among((*PEERS, "limit")), default=[*PEERS, "limit"], metavar="NAME,...",
        help=f"whom to compare with, of {', '.join((*PEERS, 'limit'))}; all unless said otherwise")
    add("--only", default="", metavar="TEXT", help="the cases whose lines have this, such as 'label smoothing'")
    add("--threads", type=positive, metavar="N",
        help="of the CPU, for onepass and PyTorch; PyTorch's own number unless said otherwise")
    add("--quick", action="store_true", help="small arrays and few turns: to see that it runs, not to quote")
    add("--json", metavar="FILE", help="keep what was measured; in a folder (FILE/) under the hardware's name")
    add("--plot", metavar="FILE.svg|png", help="draw the cases over sizes; needs matplotlib")
    add("--from", dest="read", metavar="FILE.json", help="measure nothing: show or draw what was kept before")
    add("--plain", metavar="LIBRARY", help="the plain C loops; else those of the build that has this package")
    options = parser.parse_args(words)
    options.all_losses = options.losses is not None
    options.all_types = options.types is None
    options.types = options.types or ["f32"]
    options.losses = options.losses or list(CATALOG)
    return options


def check(options):
    """What can be said before anything is measured."""
    if options.plot:
        if not options.plot.endswith((".svg", ".png", ".pdf")):
            raise Wrong(f"--plot: {options.plot} should end in .svg, .png or .pdf")
        picture.check()
    for name, path in (("--json", options.json), ("--plot", options.plot)):
        folder = os.path.dirname(path) if path else ""
        if folder and not os.path.isdir(folder) and not (name == "--json" and path.endswith("/")):
            raise Wrong(f"{name}: there is no folder {folder}")


def devices(options, torch):
    """Those to measure; says of the GPU why not."""
    problem = machine.gpu_problem(torch)
    if options.device == "cuda" and problem:
        raise Wrong(f"--device cuda: there is no GPU to measure: {problem}")
    if options.device == "all" and problem:
        print(f"Without a GPU: {problem}.")
    return {"cpu": ["cpu"], "cuda": ["cuda"], "all": ["cpu"] if problem else ["cpu", "cuda"]}[options.device]


def measure(options, command):
    """The record of a run. What was measured until it was interrupted is kept."""
    torch = machine.installed("torch")
    if not torch and not machine.installed("numpy"):
        raise Wrong("neither PyTorch nor NumPy is installed, so there is nothing to measure with")
    if options.threads and not torch:
        raise Wrong("--threads: PyTorch, which sets it, is not installed")
    if options.threads:
        torch.set_num_threads(options.threads)
    from .stage import Stage  # which needs what was looked for above

    chosen = devices(options, torch)
    found = dict(machine.facts(chosen, torch, command), quick=options.quick, results=[])
    print(report.heading(found), flush=True)
    for device in chosen:
        stage = Stage(device, options)
        listed_cases = cases.Cases(stage, options)
        by_section = {section: [case for case in listed_cases.of(section) if options.only in case.words()]
                      for section in options.cases}
        progress = report.Progress(sum(map(len, by_section.values())))
        try:
            for section, chosen_cases in by_section.items():
                measure_section(stage, section, chosen_cases, progress, len(chosen) > 1, found["results"])
                keep(options, found)  # should the rest take longer than there is time
        except KeyboardInterrupt:
            progress.wipe()
            print("\nInterrupted: what was measured until now is kept.")
            found["interrupted"] = True
        for (name, reason), times in stage.reasons.items():
            said = "" if reason.startswith("timed") else "left out: "
            print(f"{said}{name}: {reason}" + ("" if times > 3 else f" ({times} cases)"))
        if "interrupted" in found:
            break
    if options.only and not found["results"] and "interrupted" not in found:
        raise Wrong(f"--only: no case of {', '.join(options.cases)} has {options.only!r} in its line")
    return found


def measure_section(stage, section, chosen, progress, name_device, results):
    """Each case's row goes to the results, and is shown, when it is there."""
    if not chosen:
        return
    peers = lambda case: (*(name for name in case.peers if name in stage.options.peers), *extra(stage, case))
    table = report.Table(f"{section}{', ' + stage.device if name_device else ''}", chosen, peers,
                         lambda text: print(text, flush=True))
    for case in chosen:
        progress.show(case.words())
        row = stage.measure(case)
        progress.wipe()
        table.add(row)
        results.append(row)


def extra(stage, case):
    """The columns of those who are not named as peers."""
    names = [other(case).name for other in case.others if other]
    names += ["plain loop", "torch eager"] if case.figure and case.section not in ("rows", "linear") else []
    with_limit = case.with_limit and not case.figure and stage.limits and "limit" in stage.options.peers
    return names + (["limit"] if with_limit else [])


def show(kept):
    """The tables of a record."""
    print(report.heading({"threads": "?", "instruction_set": "?", "driver": "", **kept}))
    groups = dict.fromkeys((row["section"], row["device"]) for row in kept["results"])
    for section, device in groups:
        rows = [row for row in kept["results"] if (row["section"], row["device"]) == (section, device)]
        chosen = [cases.Case(row["section"], row["loss"], row["mode"], row["elements"], type=row["type"],
                             variant=row["variant"], others=tuple(row["found"])) for row in rows]
        table = report.Table(f"{section}, {device}", chosen, lambda case: case.others)
        for row in rows:
            table.add(row)


def keep(options, found):
    """Returns the path of what was written, if anything was."""
    path = options.json
    if path and (path.endswith("/") or os.path.isdir(path)):
        whole = options.cases == list(cases.SECTIONS) and not (options.quick or options.all_losses or options.only)
        some = [] if whole else ["quick"] if options.quick else options.cases
        path = os.path.join(path, machine.file_name(found, some))
    if path:
        record.write(path, found)
    return path


def main(words=None):
    words = sys.argv[1:] if words is None else words
    options = parse(words)
    # Before PyTorch and JAX read them: compiling processes would run beside what is measured on the CPU.
    threads = min(8, os.cpu_count() or 1) if options.device == "cuda" else 1
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(threads))
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        check(options)
        if options.read:
            found = record.read(options.read)
            show(found)
        else:
            found = measure(options, shlex.join(["python", "-m", "onepass.bench", *words]))
        path = keep(options, found)
        if path:
            print(f"written to {path}")
        if options.plot:
            picture.draw(options.plot, found)
            print(f"drawn in {options.plot}")
    except (Wrong, Absent, record.Unreadable) as error:
        print(f"onepass.bench: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"onepass.bench: {error.filename}: cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    return 1 if "interrupted" in found else 0


if __name__ == "__main__":
    sys.exit(main())
