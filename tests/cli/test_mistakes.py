# Mistakes: each is refused with a sentence that names it, nothing is printed or written, and the status is 2.
import ctypes
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import pathlib

import numpy as np
import pytest

from expected import INFO, LOSSES, numbers, operand_names, operands, save_operands
from folder import Folder, assert_sentence, tool

OUTPUTS = ["--grad", "g.npy", "--none", "n.npy"]


@pytest.fixture
def pair(folder):
    folder.save("p.npy", numbers(71, (20, 30))), folder.save("t.npy", numbers(72, (20, 30)))
    return folder


# ---------------------------------------------------------------- commands --


def test_no_arguments(folder):
    result = folder.run()
    assert result.status == 2 and result.out == ""
    assert "onepass LOSS" in result.err


@pytest.mark.parametrize(
    "word, near",
    [
        ("mes", "mse"),
        ("mse_loss", "mse"),
        ("MSE", "mse"),
        ("MSELoss", "mse"),
        ("smoothl1", "smooth_l1"),
        ("SmoothL1Loss", "smooth_l1"),
        ("hing", "hinge"),
        ("lst", "list"),
    ],
)
def test_an_unknown_loss(pair, word, near):
    pair.refuse(word, "p.npy", "t.npy", *OUTPUTS, says=[f'"{word}"', f'did you mean "{near}"?'])


@pytest.mark.parametrize("command", ["list", "info"])
def test_more_than_a_command_takes(pair, command):
    for given in (["--hex"], ["--json", "--hex"]):
        pair.refuse(command, *given, says=f"--hex: onepass {command} takes --json and nothing else")


def test_a_loss_like_nothing_else(pair):
    for word in ("xyzzy", "ab", "x" * 1000, "?"):
        assert "did you mean" not in pair.refuse(word, "p.npy", "t.npy", says=[word, "onepass list"])


@pytest.mark.parametrize(
    "loss, option, near",
    [
        ("mse", "--gard", "--grad"),
        ("mse", "--gard=g.npy", "--grad"),
        ("mse", "--reducton", "--reduction"),
        ("mse", "--weigth", "--weight"),
        ("smooth_l1", "--betta", "--beta"),
        ("nll", "--ignore_idx", "--ignore-index"),
        ("cross_entropy", "--class_wieght", "--class-weight"),
        ("cross_entropy", "--les", "--lse"),
    ],
)
def test_an_unknown_option_that_is_like_another(pair, loss, option, near):
    pair.refuse(loss, "p.npy", "t.npy", option, "x", says=[f"{option}: there is no such option", f'did you mean "{near}"?'])


def test_an_option_like_no_other(pair):
    for option in ("--xyzzy", "-x", "--" + "x" * 1000, "--?"):
        words = [option, "onepass mse --help lists them"]
        assert "did you mean" not in pair.refuse("mse", "p.npy", "t.npy", option, says=words)


@pytest.mark.parametrize(
    "loss, options, name",
    [
        ("mse", ["--grad", "g.npy", "--grad", "h.npy"], "--grad"),
        ("mse", ["--none=n.npy", "--none=n.npy"], "--none"),
        ("mse", ["--reduction", "sum", "--redu", "mean"], "--reduction"),
        ("mse", ["--threads", "1", "--grad", "g.npy", "--threads", "1"], "--threads"),
        ("smooth_l1", ["--beta", "1", "--beta", "2"], "--beta"),
        ("nll", ["--ignore-index", "1", "--ignore_index", "2"], "--ignore-index"),
    ],
)
def test_an_option_twice(pair, loss, options, name):
    """None of the two is silently left aside; what has no value may be said again."""
    pair.refuse(loss, "p.npy", "t.npy", *options, says=f"{name} is given twice")
    assert pair.answer("mse", "p.npy", "t.npy", "--hex", "--hex") == pair.hex("mse", "p.npy", "t.npy")


def test_a_file_in_place_of_a_loss(pair):
    pair.refuse("p.npy", "t.npy", says="p.npy")


@pytest.mark.parametrize("files", [[], ["p.npy"], ["p.npy", "t.npy", "p.npy"]], ids=len)
def test_too_few_and_too_many_files(pair, files):
    words = [f"{len(files)} file", "expected two, prediction and target", "onepass mse PREDICTION TARGET"]
    pair.refuse("mse", *files, *OUTPUTS, says=words)


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if len(operand_names(loss)) == 3])
def test_a_third_operand_that_is_missing(folder, loss):
    files = save_operands(folder, operands(loss, 77, (4, 5)))
    names = operand_names(loss)
    usage = f"onepass {loss} {' '.join(names).upper()}"
    for count in (0, 1, 2, 4):
        words = [f"{count} file", "expected three", f"{names[0]}, {names[1]} and {names[2]}", usage]
        folder.refuse(loss, *(files + files)[:count], says=words)
    folder.refuse(loss, *files[:2], "", says=["empty", usage])
    folder.save("odd.npy", np.ones(3, np.float32))
    folder.refuse(loss, *files[:2], "odd.npy", says=["odd.npy has shape (3,)", "p.npy has shape (4, 5)"])


@pytest.mark.parametrize("option", ["--frobnicate", "--gard", "--gard=g.npy", "-x", "--betta=3", "---", "--Grad"])
def test_an_unknown_option(pair, option):
    pair.refuse("mse", "p.npy", "t.npy", option, says=option.split("=")[0])


@pytest.mark.parametrize("option, named", [("-xh", "-x"), ("-hx", "-x"), ("-é", "-é"), ("-x=1", "-x")])
def test_an_unknown_letter(pair, option, named):
    """Also before and behind others, and after files, which an option's reader moves about."""
    for words in (["p.npy", "t.npy", option], [option, "p.npy", "t.npy"], ["p.npy", option, "t.npy"]):
        pair.refuse("mse", *words, says=f"onepass: {named}: there is no such option")


def test_a_value_of_an_option_that_takes_none(pair):
    for word in ("--json=1", "--hex=yes", "--bf16=", "--help=x"):
        name = word.partition("=")[0]
        pair.refuse("mse", "p.npy", "t.npy", word, says=f"onepass: {word}: {name} takes no value")


VALUED = ["--reduction", "--beta", "--weight", "--mask", "--grad", "--grad-target", "--none", "--device", "--threads"]


@pytest.mark.parametrize("option", VALUED)
def test_an_option_without_its_value(pair, option):
    pair.refuse("smooth_l1", "p.npy", "t.npy", option, says=option)


@pytest.mark.parametrize("option", VALUED)
def test_an_option_with_an_empty_value(pair, option):
    pair.refuse("smooth_l1", "p.npy", "t.npy", f"{option}=", says=option)


@pytest.mark.parametrize("option", ["--json", "--hex", "--bf16"])
def test_a_value_for_an_option_that_has_none(pair, option):
    pair.refuse("mse", "p.npy", "t.npy", f"{option}=1", says=option)


@pytest.mark.parametrize("value", ["", "x", "1x", "1 2", "0.5,", "1,5", "nan", "-1", "-1e-300", "--json", "0.5.5", "١"])
def test_a_bad_number(pair, value):
    pair.refuse("smooth_l1", "p.npy", "t.npy", "--beta", value, *OUTPUTS, says="beta")
    pair.refuse("smooth_l1", "p.npy", "t.npy", f"--beta={value}", *OUTPUTS, says="beta")


@pytest.mark.parametrize("value", ["9" * 5000, "-" + "9" * 400, "1e309", "1e-400", "0." + "0" * 5000 + "1", "0x1p99999"])
def test_a_number_that_no_double_holds(pair, value):
    """Neither infinity nor 0 is what was asked for. The sentence shows where the number begins, and not all of it."""
    words = [f"beta is {value[:20]}", "large" if "0." not in value and "e-" not in value else "near to 0"]
    assert len(pair.refuse("smooth_l1", "p.npy", "t.npy", f"--beta={value}", *OUTPUTS, says=words)) < 200


def test_a_long_number_that_a_double_holds(pair):
    wanted = pair.hex("smooth_l1", "p.npy", "t.npy", "--beta", "0.5")
    assert pair.hex("smooth_l1", "p.npy", "t.npy", "--beta", "0.5" + "0" * 5000) == wanted
    assert pair.hex("smooth_l1", "p.npy", "t.npy", "--beta", "5" + "0" * 5000 + "e-5001") == wanted
    assert pair.json("smooth_l1", "p.npy", "t.npy", "--beta", "4e-320")["parameters"] == {"beta": 4e-320}


@pytest.mark.parametrize(
    "loss, option", [("mse", "--beta"), ("mse", "--margin"), ("hinge", "--beta"), ("smooth_l1", "--margin")]
)
def test_a_parameter_of_another_loss(pair, loss, option):
    pair.refuse(loss, "p.npy", "t.npy", option, "0.5", *OUTPUTS, says=[option, loss])


@pytest.mark.parametrize("name", ["prediction", "variance", "nothing"])
def test_the_gradient_of_an_operand_that_is_not_there(pair, name):
    """The first one's is --grad."""
    words = "mse has gradients for prediction (--grad) and target (--grad-target)"
    pair.refuse("mse", "p.npy", "t.npy", f"--grad-{name}", "g.npy", says=[f"--grad-{name}: there is no such option", words])


@pytest.mark.parametrize("value", ["0", "-1", "x", "1.5", "", "2x", "1e3"])
def test_a_bad_number_of_threads(pair, value):
    pair.refuse("mse", "p.npy", "t.npy", "--threads", value, *OUTPUTS, says="--threads")


@pytest.mark.parametrize("value", ["Mean", "avg", "me", "mean,sum"])
def test_a_bad_reduction(pair, value):
    sentence = pair.refuse("mse", "p.npy", "t.npy", "--reduction", value, *OUTPUTS, says=["--reduction", value])
    assert all(word in sentence for word in ("mean", "sum", "none", "batchmean"))


@pytest.mark.parametrize("value", ["tpu", "cuda:", "cuda:x", "cuda:-1", "cuda0", "cuda:99999999999999999999", "cuda: 0", "cpu:0"])
def test_a_bad_device(pair, value):
    pair.refuse("mse", "p.npy", "t.npy", "--device", value, *OUTPUTS, says=["--device", value])


# ------------------------------------------------------------------- files --


@pytest.mark.parametrize(
    "place",
    [
        ["mse", "X", "t.npy"],
        ["mse", "p.npy", "X"],
        ["mse", "p.npy", "t.npy", "--weight", "X"],
        ["mse", "p.npy", "t.npy", "--mask", "X"],
    ],
    ids=" ".join,
)
def test_files_that_cannot_be_read(pair, place):
    os.mkdir(pair / "folder.npy")
    os.symlink("nowhere", pair / "dangling.npy")
    for name in ("missing.npy", "folder.npy", "dangling.npy", "p.npy/x", "missing.safetensors:name", "/dev/null", ""):
        command = [name if word == "X" else word for word in place]
        pair.refuse(*command, *OUTPUTS, says=name.removesuffix(":name"))


@pytest.fixture
def as_nobody():
    """A folder that all may write to, and the tool run there by somebody to whom permissions matter: root may do
    everything, so then it is run as nobody, from a copy."""
    with tempfile.TemporaryDirectory() as place:
        folder = Folder(pathlib.Path(place))
        os.chmod(place, 0o777)
        folder.save("p.npy", numbers(1, 5)), folder.save("secret.npy", numbers(2, 5))
        shutil.copy(tool(), folder / "tool")
        other = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}

        def run(*arguments):
            command = [folder / "tool", *arguments]
            return subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=300, **other)

        folder.run = run
        yield folder


def test_a_file_without_permission(as_nobody):
    os.chmod(as_nobody / "secret.npy", 0)
    os.mkdir(as_nobody / "closed", 0o555)
    assert as_nobody.run("mse", "p.npy", "p.npy").returncode == 0
    for files in (("secret.npy", "p.npy"), ("p.npy", "secret.npy")):
        result = as_nobody.run("mse", *files, "--grad", "g.npy")
        assert (result.returncode, result.stdout) == (2, "")
        assert_sentence(result.stderr, "secret.npy", "ermission")
    result = as_nobody.run("mse", "p.npy", "p.npy", "--grad", "closed/g.npy")
    assert (result.returncode, result.stdout, os.listdir(as_nobody / "closed")) == (2, "", [])
    assert_sentence(result.stderr, "closed/g.npy", "ermission")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of somebody else")
def test_a_file_of_somebody_else_in_a_folder_like_tmp(as_nobody):
    """Whoever may write there may not replace it: found out before the other output has its name."""
    os.mkdir(as_nobody / "shared")
    os.chmod(as_nobody / "shared", 0o1777)
    as_nobody.write("shared/n.npy", b"earlier")
    os.chmod(as_nobody / "shared/n.npy", 0o666)
    result = as_nobody.run("mse", "p.npy", "p.npy", "--grad", "shared/g.npy", "--none", "shared/n.npy")
    assert (result.returncode, result.stdout, os.listdir(as_nobody / "shared")) == (2, "", ["n.npy"])
    assert_sentence(result.stderr, "onepass: shared/n.npy: cannot be written: Operation not permitted")
    for _ in range(2):  # one's own may be replaced
        assert as_nobody.run("mse", "p.npy", "p.npy", "--grad", "shared/g.npy").returncode == 0


@pytest.mark.parametrize(
    "shapes",
    [((3, 4), (5,)), ((4, 3), (4,)), ((2, 3), (3, 2)), ((2, 0), (3,)), ((7,), (8,)), ((2, 1, 4), (3, 5))],
    ids=str,
)
def test_shapes_that_do_not_broadcast(folder, shapes):
    folder.save("p.npy", np.zeros(shapes[0])), folder.save("t.npy", np.zeros(shapes[1]))
    folder.refuse("mse", "p.npy", "t.npy", *OUTPUTS, says=[str(shape) for shape in shapes])


def test_standard_input_twice(pair):
    pair.refuse("mse", "-", "-", input=(pair / "p.npy").read_bytes())
    pair.refuse("mse", "-", "t.npy", "--weight", "-", input=(pair / "p.npy").read_bytes())
    pair.refuse("mse", "p.npy", "-", "--mask", "-", input=(pair / "p.npy").read_bytes())


def test_standard_input_that_is_empty_or_cut_short(pair):
    content = (pair / "p.npy").read_bytes()
    for cut in (0, 1, 60, len(content) - 1):
        pair.refuse("mse", "-", "t.npy", *OUTPUTS, input=content[:cut], says="-: ")


def test_names_that_are_long_or_odd(pair):
    for name in ("x" * 5000, "a/" * 3000, "no\nsuch\nfile.npy", "%s%n%d.npy", "\x1b[31mred.npy"):
        result = pair.run("mse", name, "t.npy")
        assert result.status == 2 and result.out == "" and result.err.startswith("onepass: "), result
        assert result.err[:-1].isprintable() and result.err[-1] == "\n", result
    pair.refuse("mse", "\x1b[31m\n.npy", "t.npy", says="onepass: \\x1b[31m\\x0a.npy: ")


def test_a_version_takes_nothing_else(pair):
    for option in ("--version", "-V"):
        assert pair.run(option).status == 0
        pair.refuse(option, "x", says=f"onepass: x: onepass {option} takes nothing else")


def test_whose_options_they_are(pair):
    for option, whose in (("--class-weight", ", and of vectors with labels"), ("--axis", ", and of vectors"),
                          ("--lse", "")):
        pair.refuse("mse", "p.npy", "t.npy", option, "1",
                    says=f"onepass: {option}: is for losses over rows, such as cross_entropy{whose}; mse is none of them")


def test_help_takes_one_word(pair):
    for word in ("help", "--help", "-h"):
        assert pair.run(word, "mse").status == 0
        pair.refuse(word, "mse", "x", says=f"onepass: x: onepass {word} takes a loss or a command, and nothing else")


# ------------------------------------------------------------ safetensors --


def test_a_tensor_that_is_not_there(pair):
    pair.save_tensors("f.safetensors", logits=numbers(1, 5), target=numbers(2, 5))
    for command in (["mse", "f.safetensors:nope", "t.npy"], ["mse", "f.safetensors", "t.npy"]):
        pair.refuse(*command, *OUTPUTS, says=["f.safetensors", "logits", "target"])
    pair.refuse("mse", "f.safetensors:logit", "t.npy", says=["logit", "logits"])
    pair.refuse("mse", "f.safetensors:", "t.npy", says="f.safetensors")


def test_one_tensor_and_another_name(pair):
    pair.save_tensors("f.safetensors", logits=numbers(1, 5))
    pair.refuse("mse", "f.safetensors:nope", "t.npy", says=["nope", "logits"])


def test_a_file_without_tensors(pair):
    pair.save_tensors("f.safetensors")
    pair.refuse("mse", "f.safetensors", "t.npy", says="f.safetensors")
    pair.refuse("mse", "f.safetensors:a", "t.npy", says="f.safetensors")


def test_very_many_tensors(pair):
    """The sentence stays one of a readable length."""
    pair.save_tensors("f.safetensors", **{f"layer.{i}.weight": numbers(1, 1) for i in range(3000)})
    assert len(pair.refuse("mse", "f.safetensors:nope", "t.npy", says=["f.safetensors", "layer."])) < 2000
    assert float(pair.answer("mse", "f.safetensors:layer.2999.weight", "f.safetensors:layer.0.weight")) == 0


def test_a_name_in_a_file_that_has_none(pair):
    pair.refuse("mse", "p.npy:logits", "t.npy", says="p.npy")
    pair.save("really.npy.safetensors", numbers(71, (20, 30)))
    pair.refuse("mse", "really.npy.safetensors:logits", "t.npy", says="really.npy.safetensors")


# ---------------------------------------------------------------- outputs --


@pytest.mark.parametrize("option", ["--grad", "--grad-target", "--none"])
def test_an_output_that_is_an_input(pair, option):
    os.symlink("t.npy", pair / "link.npy")
    os.link(pair / "t.npy", pair / "hard.npy")
    os.mkdir(pair / "sub")
    pair.save("w.npy", numbers(73, (20, 30)) ** 2), pair.save("m.npy", np.ones((20, 30), bool))
    pair.save_tensors("f.safetensors", a=numbers(74, (20, 30)))
    for name in ("p.npy", "t.npy", "./p.npy", pair / "p.npy", "sub/../t.npy", "w.npy", "m.npy", "link.npy", "hard.npy"):
        pair.refuse("mse", "p.npy", "t.npy", "--weight", "w.npy", "--mask", "m.npy", option, name, says=str(name))
    pair.refuse("mse", "f.safetensors:a", "t.npy", option, "f.safetensors", says="f.safetensors")


def test_an_output_that_is_standard_input(pair):
    with open(pair / "p.npy", "rb") as file:
        result = pair.run("mse", "-", "t.npy", "--grad", "p.npy", stdin=file)
    assert result.status == 2, result
    assert pair.load("p.npy").tobytes() == numbers(71, (20, 30)).tobytes()


@pytest.mark.parametrize("option", ["--grad", "--grad-target", "--none"])
def test_an_output_that_is_no_plain_file(pair, option):
    os.mkdir(pair / "folder")
    os.mkfifo(pair / "pipe")
    os.symlink("/dev/null", pair / "null.npy")
    for name in ("folder", "folder/", ".", "pipe", "/dev/null", "/dev/full", "/dev/stdout", "null.npy", "-"):
        pair.refuse("mse", "p.npy", "t.npy", option, name, says=name.rstrip("/"))


@pytest.mark.parametrize("option", ["--grad", "--grad-target", "--none"])
def test_an_output_in_a_folder_that_is_not_there(pair, option):
    for name in ("missing/g.npy", "p.npy/g.npy"):
        pair.refuse("mse", "p.npy", "t.npy", option, name, says=name)


def test_one_file_for_two_outputs(pair):
    os.mkdir(pair / "sub")
    os.symlink(".", pair / "here")
    for other in ("g.npy", "./g.npy", "sub/../g.npy", pair / "g.npy", "here/g.npy"):
        pair.refuse("mse", "p.npy", "t.npy", "--grad", "g.npy", "--none", other, says="g.npy")
    pair.write("g.npy", b"earlier")
    for other in ("g.npy", "here/g.npy"):
        pair.refuse("mse", "p.npy", "t.npy", "--grad", "g.npy", "--none", other, says="g.npy")
        pair.refuse("mse", "p.npy", "t.npy", "--grad", "g.npy", "--grad-target", other, says="g.npy")
        pair.refuse("mse", "p.npy", "t.npy", "--none", "g.npy", "--grad-target", other, says="g.npy")


def test_a_wrong_command_is_found_before_anything_is_written(pair):
    pair.write("g.npy", b"earlier")
    pair.refuse("mse", "p.npy", "t.npy", "--grad", "g.npy", "--none", "missing/n.npy", says="missing/n.npy")
    pair.refuse("mse", "p.npy", "missing.npy", "--grad", "g.npy", says="missing.npy")
    assert (pair / "g.npy").read_bytes() == b"earlier"


# -------------------------------------------------------------- full disks --


@pytest.fixture
def larger(folder):
    folder.save("p.npy", numbers(75, 100_000)), folder.save("t.npy", numbers(76, 100_000))
    return folder


def failed(folder, *arguments, says, **options):
    """Refused: the status is not 0, and it is not a crash either."""
    before = folder.state()
    result = folder.run(*arguments, **options)
    assert result.status in (1, 2) and result.out == "", result
    assert_sentence(result.err, says)
    assert folder.state() == before


@pytest.mark.parametrize("option", ["--grad", "--grad-target", "--none"])
@pytest.mark.parametrize("ignored", [True, False], ids=["signal ignored", "signal as it is"])
def test_a_limit_on_the_size_of_files(larger, option, ignored):
    """As `ulimit -f` sets it. The signal that comes with it may end the tool, but nothing is left behind."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN if ignored else signal.SIG_DFL)

    before = larger.state()
    result = larger.run("mse", "p.npy", "t.npy", option, "g.npy", preexec_fn=limit)
    assert result.status in ((1, 2) if ignored else (1, 2, -signal.SIGXFSZ)) and result.out == "", result
    if result.status > 0:
        assert_sentence(result.err, "g.npy")
    assert larger.state() == before


def test_nobody_reads_the_message(larger):
    """The signal that comes of it may end the tool, but nothing is left behind."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)

    before = larger.state()
    reader, writer = os.pipe()
    os.close(reader)
    command = [tool(), "mse", "p.npy", "t.npy", "--grad", "g.npy"]
    done = subprocess.run(command, cwd=larger.path, stderr=writer, stdout=subprocess.PIPE, preexec_fn=limit)
    os.close(writer)
    assert (done.returncode, done.stdout) == (-signal.SIGPIPE, b"")
    assert larger.state() == before


def test_threads_that_cannot_be_made(larger):
    """OpenMP's library ends the program then. With one core it makes none."""
    larger.save("p.npy", np.asfortranarray(numbers(75, (1000, 1000)))), larger.save("t.npy", numbers(76, (1000, 1000)))
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    result = larger.run("mse", "p.npy", "t.npy", "--grad", "g.npy", env={"OMP_STACKSIZE": "100G"}, preexec_fn=limit)
    assert sorted(os.listdir(larger.path)) == (["g.npy"] if result.status == 0 else []) + ["p.npy", "t.npy"], result


def test_a_limit_on_the_size_of_files_and_a_pipe(larger):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    content = (larger / "p.npy").read_bytes()
    result = larger.run("mse", "-", "t.npy", input=content, preexec_fn=limit, env={"TMPDIR": str(larger.path)})
    assert result.status in (1, 2) and result.out == "", result
    assert sorted(os.listdir(larger.path)) == ["p.npy", "t.npy"]


def mount(where, kilobytes):
    """A small file system in memory, or why there is none."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "only root on Linux can mount a small file system"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", str(where).encode(), b"tmpfs", 0, f"size={kilobytes}k".encode()) != 0:
        return f"mounting a small file system: {os.strerror(ctypes.get_errno())}"
    return ""


@pytest.fixture
def full(larger):
    os.mkdir(larger / "small")
    problem = mount(larger / "small", 64)
    if problem:
        pytest.skip(problem)
    yield larger
    ctypes.CDLL(None).umount2(str(larger / "small").encode(), 2)


@pytest.mark.parametrize("option", ["--grad", "--grad-target", "--none"])
def test_a_full_disk(full, option):
    (full / "small/g.npy").write_bytes(b"earlier")
    failed(full, "mse", "p.npy", "t.npy", option, "small/g.npy", says="small/g.npy")
    assert os.listdir(full / "small") == ["g.npy"]


def test_a_full_disk_for_one_of_two_outputs(full):
    for command in (["--grad", "g.npy", "--none", "small/n.npy"], ["--none", "n.npy", "--grad", "small/g.npy"]):
        failed(full, "mse", "p.npy", "t.npy", *command, says=command[-1])


def test_a_full_disk_for_a_pipe(full):
    content = (full / "p.npy").read_bytes()
    failed(full, "mse", "-", "t.npy", input=content, env={"TMPDIR": str(full / "small")}, says="-: ")
