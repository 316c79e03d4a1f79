# Measuring: that it runs, what it writes, and that pictures are pictures. How fast things are is not tested here.
import collections
import datetime
import itertools
import json
import math
import re
import resource
import signal
import time
import xml.etree.ElementTree as xml

import pytest

from expected import INFO, LOSSES, TYPES, operand_names
from folder import assert_sentence, strict_json
from sparse import ended, start

USUAL = ["mse", "smooth_l1", "hinge"]
SMALL = ["--min", "2^10", "--max", "2^11", "--loss", "mse", "--type", "f32"]
TIMEOUT = 120


def read_json(folder, name):
    return strict_json((folder / name).read_text())


def assert_picture(folder, name):
    root = xml.parse(folder / name).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    text = " ".join(root.itertext())
    assert "GB/s" in text
    assert "nan" not in (folder / name).read_text().lower(), "coordinates are numbers"
    return text


def test_everything_small(folder):
    """Few enough losses for a picture."""
    result = folder.run("bench", "--max", "2^14", "--json", "f.json", "--plot", "g.svg", timeout=TIMEOUT)
    assert result.status == 0 and result.err == "", result
    for loss in USUAL:
        assert loss in result.out
    assert "GB/s" in result.out
    check_record(read_json(folder, "f.json"), USUAL, TYPES, (2**10, 2**14))
    assert bytes_of(folder, loss="mse", type="f32", mode="forward", elements=2**14) == 2**14 * 8
    assert bytes_of(folder, loss="mse", type="f64", mode="both", elements=2**14) == 2**14 * 24
    text = assert_picture(folder, "g.svg")
    assert all(loss in text for loss in USUAL)


def test_every_loss_of_two_operands(folder):
    two = [loss for loss in LOSSES if len(operand_names(loss)) == 2]
    command = ["bench", *SMALL[:4], "--type", "f32", "--loss", ",".join(two), "--json", "f.json"]
    result = folder.run(*command, timeout=TIMEOUT)
    assert result.status == 0 and result.err == "", result
    check_record(read_json(folder, "f.json"), two, ["f32"], (2**10, 2**11))
    rows = [line for line in result.out.splitlines() if line.split(" ")[0] in two]
    assert len(rows) == 4 * len(two) and len({len(row) for row in rows}) == 1, "a table that lines up"


@pytest.mark.parametrize("loss", [loss for loss in INFO if len(operand_names(loss)) > 2])
def test_a_loss_of_three_operands(folder, loss):
    folder.refuse("bench", *SMALL[:4], "--loss", loss, says=[loss, "two"])


def check_record(record, losses, types, sizes, modes=("forward", "both")):
    """The machine, the date, and for every loss, type, mode and size two points: ours and the limit."""
    date = datetime.datetime.fromisoformat(record["date"].replace("Z", "+00:00"))
    assert abs(datetime.datetime.now(datetime.timezone.utc) - date) < datetime.timedelta(hours=1)
    assert record["device"] == "cpu" and record["threads"] >= 1 and record["hardware"]
    assert record["command"].startswith("onepass bench") and record["versions"]["onepass"][0].isdigit()
    found = collections.Counter()
    for point in record["points"]:
        found[point["series"], point["loss"], point["type"], point["mode"], point["elements"]] += 1
        assert point["bytes"] > 0 and point["seconds"] > 0
        assert math.isclose(point["gbps"], 1e-9 * point["bytes"] / point["seconds"], rel_tol=0.01)
    measured = sorted({key[-1] for key in found})
    assert measured[0] == sizes[0] and measured[-1] == sizes[-1]
    assert found == collections.Counter(itertools.product(("onepass", "limit"), losses, types, modes, measured))


def bytes_of(folder, **wanted):
    """The bytes that a point had to move."""
    (found,) = [
        point["bytes"]
        for point in read_json(folder, "f.json")["points"]
        if point["series"] == "onepass" and all(point[key] == value for key, value in wanted.items())
    ]
    return found


def test_only_these(folder):
    command = [
        "bench",
        "--loss",
        "hinge,mse",
        "--type",
        "f64,bf16",
        "--mode",
        "forward",
        "--min",
        "1024",
        "--max",
        "2^10",
    ]
    folder.run(*command, "--threads", "1", "--json", "f.json", timeout=TIMEOUT)
    record = read_json(folder, "f.json")
    check_record(record, ["hinge", "mse"], ["f64", "bf16"], (1024, 1024), ["forward"])
    assert record["threads"] == 1


def test_a_size_that_is_no_power(folder):
    folder.run("bench", *SMALL[4:], "--min", "3000", "--max", "3000", "--json", "f.json", timeout=TIMEOUT)
    assert {point["elements"] for point in read_json(folder, "f.json")["points"]} == {3000}


def test_nothing_is_written_unasked(folder):
    assert folder.run("bench", *SMALL, timeout=TIMEOUT).status == 0
    assert folder.state() == {}


@pytest.fixture
def record(folder):
    assert folder.run("bench", *SMALL, "--json", "f.json", "--plot", "g.svg", timeout=TIMEOUT).status == 0
    return folder


def test_the_picture_can_be_drawn_later(record):
    record.quiet("plot", "f.json", "--out", "h.svg")
    assert_picture(record, "h.svg")
    later, at_once = (re.sub(r"[\d.]+", "#", (record / name).read_text()) for name in ("h.svg", "g.svg"))
    assert later == at_once  # but for the digits that the record does not keep


def point(**changed):
    members = {"series": "onepass", "loss": "mse", "mode": "forward", "type": "f32", "elements": 1024, "gbps": 26.5}
    return {**members, **changed}


def test_records_of_others(folder):
    """Only the points must be there; names may have anything in them; one point is a picture too."""
    points = [point(), point(series="limit", gbps=37), point(series='a <b> & "c"', elements=2**30, gbps=1e-3)]
    points += [point(series=f"series {i % 6}", elements=2**i, gbps=i + 1, type="größe") for i in range(30)]
    for some in (points[:1], points):
        folder.write("f.json", json.dumps({"points": some, "unknown": {"deep": [1, None]}}).encode())
        folder.quiet("plot", "f.json", "--out", "g.svg")
        assert_picture(folder, "g.svg")


def test_more_than_a_picture_holds(folder):
    points = [point(series=f"series {i}") for i in range(1000)]
    folder.write("f.json", json.dumps({"points": points}).encode())
    folder.refuse("plot", "f.json", "--out", "g.svg", says="f.json")


@pytest.mark.parametrize(
    "points",
    [
        [],
        [{}],
        [3],
        {},
        [point(elements=0)],
        [point(elements=-5)],
        [point(gbps=-1)],
        [point(gbps="x")],
        [point(loss=3)],
    ],
    ids=str,
)
def test_records_that_cannot_be_drawn(folder, points):
    folder.write("f.json", json.dumps({"points": points}).encode())
    folder.refuse("plot", "f.json", "--out", "g.svg", says="f.json")


def test_interrupted(folder):
    """Nothing is left behind, whenever it comes."""
    command = ["bench", "--max", "2^22", "--json", "f.json", "--plot", "g.svg"]
    with ended(start(folder, *command)) as process:
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT
    assert folder.state() == {}


@pytest.mark.parametrize("option", ["--json", "--plot"])
def test_a_limit_on_the_size_of_files(folder, option):
    """As `ulimit -f` sets it; the signal that comes with it is an error like another."""
    folder.write("f", b"earlier")
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
    before = folder.state()
    result = folder.run("bench", *SMALL, option, "f", preexec_fn=limit, timeout=TIMEOUT)
    assert result.status == 1 and "written" not in result.out and "drawn" not in result.out
    assert_sentence(result.err, "f: cannot be written: File too large")
    assert folder.state() == before


def test_plot_refuses(record):
    record.write("text.json", b"hello\n"), record.write("other.json", b'{"a": 1}'), record.write("empty.json", b"")
    record.write("cut.json", (record / "f.json").read_bytes()[:-20])
    for name in ("missing.json", "text.json", "other.json", "empty.json", "cut.json"):
        record.refuse("plot", name, "--out", "h.svg", says=name)
    record.refuse("plot", ".", "--out", "h.svg", says="onepass: .: cannot be read: Is a directory")
    record.refuse("plot", "f.json", says="--out")
    record.refuse("plot", "--out", "h.svg")
    record.refuse("plot", "f.json", "f.json", "--out", "h.svg")
    record.refuse("plot", "f.json", "--out", "missing/h.svg", says="missing/h.svg")
    record.refuse("plot", "f.json", "--out", "f.json", says="f.json")


@pytest.mark.parametrize(
    "words",
    [
        ["--loss", "nope"],
        ["--loss", "mse,"],
        ["--loss", ""],
        ["--type", "f33"],
        ["--type", "f32,i4"],
        ["--mode", "backward"],
        ["--min", "x"],
        ["--min", "0"],
        ["--min", "-5"],
        ["--max", "2^"],
        ["--max", "2^99"],
        ["--max", "3^5x"],
        ["--threads", "0"],
        ["--threads", "99999999999999999999"],
        ["--device", "tpu"],
        ["--device", "cuda:4294967296"],
        ["--device", "cuda:99999999999999999999"],
        ["--json"],
        ["--plot"],
        ["--grad", "g.npy"],
        ["file.npy"],
        ["--json", "missing/f.json"],
        ["--plot", "missing/g.svg"],
    ],
    ids=" ".join,
)
def test_bench_refuses(folder, words):
    """Before anything is measured."""
    sentence = folder.refuse("bench", *words, timeout=10)
    assert words[0] in sentence or words[-1] in sentence


def test_the_smallest_above_the_largest(folder):
    folder.refuse("bench", "--min", "2^12", "--max", "2^11", says="--min", timeout=10)


def test_one_file_for_two_outputs(folder):
    folder.refuse("bench", *SMALL, "--json", "f", "--plot", "f", timeout=10)


def test_no_gpu(folder):
    if folder.json("info")["gpus"] == 0:
        folder.refuse("bench", *SMALL, "--device", "cuda", status=1, timeout=20)
