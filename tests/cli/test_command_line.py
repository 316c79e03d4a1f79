# The command line itself: options anywhere, both ways of writing them, `--`, and where the answer goes.
import itertools
import os
import signal
import subprocess

import pytest

from expected import numbers
from folder import assert_sentence, tool


@pytest.fixture
def pair(folder):
    folder.p, folder.t = numbers(61, (20, 30)), numbers(62, (20, 30))
    folder.save("p.npy", folder.p), folder.save("t.npy", folder.t)
    return folder


def test_options_anywhere(pair):
    wanted = pair.hex("smooth_l1", "p.npy", "t.npy", "--beta", "0.5", "--reduction", "sum")
    parts = [["--beta", "0.5"], ["--reduction=sum"], ["p.npy"], ["t.npy"], ["--hex"]]
    for order in itertools.permutations(range(5)):
        if order.index(2) < order.index(3):
            words = [word for part in order for word in parts[part]]
            assert pair.answer("smooth_l1", *words) == wanted


def test_options_before_the_loss(pair):
    """`onepass --json mse p t`: as if they stood behind it, or refused; never something else."""
    result = pair.run("--hex", "mse", "p.npy", "t.npy")
    assert result.out.strip() == pair.hex("mse", "p.npy", "t.npy") or result.status == 2, result


@pytest.mark.parametrize("value", ["0.5", ".5", "5e-1", "0.50000", "+0.5"])
def test_numbers_may_be_written_in_many_ways(pair, value):
    wanted = pair.hex("smooth_l1", "p.npy", "t.npy", "--beta", "0.5")
    assert pair.hex("smooth_l1", "p.npy", "t.npy", "--beta", value) == wanted
    assert pair.hex("smooth_l1", "p.npy", "t.npy", f"--beta={value}") == wanted


def test_a_negative_value_is_a_value(pair):
    wanted = pair.json("hinge", "p.npy", "t.npy", "--margin=-0.25")
    assert pair.json("hinge", "--margin", "-0.25", "p.npy", "t.npy")["bits"] == wanted["bits"]


def test_every_option_with_an_equals_sign(pair):
    pair.save("w.npy", numbers(63, (20, 30)) ** 2)
    command = "--reduction=mean --weight=w.npy --grad=g.npy --none=n.npy --device=cpu --threads=2 --beta=1".split()
    reply = pair.json("smooth_l1", *command, "p.npy", "t.npy")
    assert reply["grad"] == "g.npy" and reply["none"] == "n.npy" and reply["device"] == "cpu"
    assert pair.load("g.npy").shape == (20, 30)


def test_a_name_with_an_equals_sign(pair):
    pair.answer("mse", "p.npy", "t.npy", "--grad=a=b.npy")
    assert pair.load("a=b.npy").shape == (20, 30)


def test_after_two_dashes_all_are_files(pair):
    os.rename(pair / "p.npy", pair / "--json")
    os.rename(pair / "t.npy", pair / "-t.npy")
    wanted = pair.hex("mse", "./--json", "./-t.npy")
    assert pair.answer("mse", "--hex", "--", "--json", "-t.npy") == wanted
    assert pair.answer("mse", "./--json", "--hex", "--", "-t.npy") == wanted


def test_devices(pair):
    assert pair.json("mse", "p.npy", "t.npy")["device"] == "cpu"
    for device in ("auto", "cpu"):
        assert pair.json("mse", "p.npy", "t.npy", "--device", device)["device"] == "cpu"


def test_cuda(pair):
    wanted = pair.hex("mse", "p.npy", "t.npy", "--grad", "g.npy")
    gradient = (pair / "g.npy").read_bytes()
    os.remove(pair / "g.npy")
    command = ["mse", "p.npy", "t.npy", "--grad", "g.npy", "--device"]
    if pair.json("info")["gpus"] > 0:
        reply = pair.json(*command, "cuda:0")
        assert reply["bits"] == wanted and reply["device"] == "cuda:0"
        assert (pair / "g.npy").read_bytes() == gradient
    else:
        for device in ("cuda", "cuda:0", "cuda:1"):
            sentence = pair.refuse(*command, device, status=1)
            assert any(word in sentence for word in ("GPU", "CUDA", "driver")), sentence


@pytest.mark.parametrize("threads", [1, 2, 5, 1000])
def test_threads(pair, threads):
    reply = pair.json("mse", "p.npy", "t.npy", "--threads", threads)
    assert 1 <= reply["threads"] <= min(threads, len(os.sched_getaffinity(0)))
    assert reply["bits"] == pair.hex("mse", "p.npy", "t.npy")


@pytest.mark.parametrize("threads", ["1", "3000"])
def test_threads_of_the_environment(pair, threads):
    """Never more than there are cores: they would make nothing faster, and may be more than can be made."""
    reply = pair.json("mse", "p.npy", "t.npy", env={"OMP_NUM_THREADS": threads})
    assert 1 <= reply["threads"] <= min(int(threads), len(os.sched_getaffinity(0)))


def test_an_instruction_set_by_name(pair):
    """The variable is the library's; one that is not there is an error, as everywhere."""
    available = pair.json("info")["instruction_set"]
    assert pair.hex("mse", "p.npy", "t.npy", env={"ONEPASS_ISA": available}) == pair.hex("mse", "p.npy", "t.npy")
    pair.refuse("mse", "p.npy", "t.npy", env={"ONEPASS_ISA": "abacus"}, says="abacus")


# --------------------------------------------------- names that are not UTF-8 --

#: bytes of a file's name, and what JSON has in their place: U+FFFD for each byte that is not part of a character
ODD_NAMES = {
    b"\xff.npy": "\ufffd.npy",
    b"a\xffb\xfe\xfd.npy": "a\ufffdb\ufffd\ufffd.npy",
    b"cut \xe2\x82": "cut \ufffd\ufffd",
    b"\xe2\x82\xac \xc3\xb6 \xf0\x9f\x98\x80": "\u20ac \xf6 \U0001f600",
    b"latin-1 gr\xf6\xdfe": "latin-1 gr\ufffd\ufffde",
    b"surrogate \xed\xa0\x80": "surrogate \ufffd\ufffd\ufffd",
    b"overlong \xc0\xaf": "overlong \ufffd\ufffd",
    b"beyond \xf4\x90\x80\x80": "beyond \ufffd\ufffd\ufffd\ufffd",
    b'\x01\t\n"\\\x7f': '\x01\t\n"\\\x7f',
}


@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
def test_json_is_utf8_whatever_the_names_are(pair, name):
    path, shown = os.fsdecode(name), ODD_NAMES[name]
    reply = pair.json("mse", "p.npy", "t.npy", "--grad", path, "--grad-target", "g.npy", "--none", f"{path}.losses")
    assert (reply["grad"], reply["none"]) == (shown, f"{shown}.losses")
    assert reply["gradients"] == {"prediction": shown, "target": "g.npy"}
    assert {name, name + b".losses"} <= set(os.listdir(os.fsencode(pair.path)))


# ------------------------------------------------ standard input and output --


def run_script(folder, words):
    """The tool with redirections, as a shell does them."""
    script = f'exec "$0" {words}'
    return subprocess.run(["bash", "-c", script, tool()], cwd=folder.path, capture_output=True, timeout=300)


@pytest.mark.parametrize("closed", ["<&-", "0>written", "<&- >&-"])
@pytest.mark.parametrize("files", ["p.npy -", "- t.npy", "p.npy t.npy --weight -", "p.npy t.npy --mask -"])
def test_a_closed_standard_input(pair, files, closed):
    """The first file that is opened would get its number, and be taken for it."""
    done = run_script(pair, f"mse {files} --none n.npy {closed}")
    assert (done.returncode, done.stdout) == (2, b"")
    assert_sentence(done.stderr.decode(), "-: ", "standard input is not open for reading")
    assert not os.path.exists(pair / "n.npy")


def test_a_closed_standard_input_by_its_other_name(pair):
    done = run_script(pair, "mse p.npy /dev/stdin <&-")
    assert (done.returncode, done.stdout) == (2, b"")
    assert_sentence(done.stderr.decode(), "/dev/stdin: ")


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_a_closed_descriptor_that_is_not_needed(pair, closed):
    done = run_script(pair, f"mse p.npy t.npy --hex --grad g.npy {closed}")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == pair.hex("mse", "p.npy", "t.npy", "--grad", "wanted.npy") + "\n"
    assert (pair / "g.npy").read_bytes() == (pair / "wanted.npy").read_bytes()


def test_a_full_disk_behind_standard_output(pair):
    for arguments in (
        ["mse", "p.npy", "t.npy"],
        ["mse", "p.npy", "t.npy", "--json"],
        ["mse", "p.npy", "t.npy", "--grad", "g.npy", "--none", "n.npy"],
        ["mse", "p.npy", "t.npy", "--reduction", "none", "--none", "n.npy", "--json"],
        ["list"],
        ["--help"],
        ["--version"],
    ):
        with open("/dev/full", "w") as full:
            result = pair.run(*arguments, stdout=full)
        assert result.status not in (0, -6, -11), arguments
        assert result.err.startswith("onepass: ") and result.err.count("\n") == 1, result
        assert set(os.listdir(pair.path)) == {"p.npy", "t.npy"}, arguments


@pytest.mark.parametrize("closed", [">&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_closed_standard_output(pair, closed):
    """The first file that is opened would get its number: nothing is printed into it, and the run fails."""
    before = [(pair / name).read_bytes() for name in ("p.npy", "t.npy")]
    done = run_script(pair, f"mse p.npy t.npy --grad g.npy {closed}")
    assert done.returncode in (1, 2)
    assert before == [(pair / name).read_bytes() for name in ("p.npy", "t.npy")]
    assert set(os.listdir(pair.path)) == {"p.npy", "t.npy"}


def test_nobody_reads_the_answer(pair):
    reader, writer = os.pipe()
    os.close(reader)
    result = pair.run("mse", "p.npy", "t.npy", "--grad", "g.npy", stdout=writer)
    os.close(writer)
    assert (result.status, result.err) == (-signal.SIGPIPE, "")
    assert set(os.listdir(pair.path)) == {"p.npy", "t.npy"}


def test_nothing_on_standard_error_that_is_no_terminal(pair):
    assert pair.run("mse", "p.npy", "t.npy", "--grad", "g.npy").err == ""
