# What is written: the gradient and the losses of the elements, complete or not at all.
import os
import stat
import subprocess

import numpy as np
import pytest

from expected import KINDS, REDUCTIONS, TYPES, assert_gradients, assert_losses, cases, exact, expected
from expected import gradient_options, numbers, operand_names, operands, options, save_operands
from folder import bits, tool

SHAPE = (13, 211)


def save_pair(folder, types=("f32", "f32"), shapes=(SHAPE, SHAPE)):
    p, t = numbers(41, shapes[0], types[0]), numbers(42, shapes[1], types[1])
    folder.save("p.npy", p), folder.save("t.npy", t)
    return p, t


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss, given", list(cases()), ids=str)
def test_gradients_and_losses(folder, loss, given, reduction):
    arrays = operands(loss, 41, SHAPE)
    command = [loss, *save_operands(folder, arrays), *options(given), "--reduction", reduction]
    outputs, files = gradient_options(loss)
    result = folder.run(*command, *outputs, "--none", "n.npy")
    assert result.status == 0 and result.err == "", result
    assert_gradients(folder, files, expected(loss, arrays, reduction, given=given), ["f32"] * 3, SHAPE)
    assert_losses(folder, "n.npy", loss, arrays, given=given)
    if reduction == "none":
        assert result.out == ""
    else:
        assert result.out == folder.answer(*command) + "\n"  # the number does not depend on what else is wanted


@pytest.mark.parametrize("of_target", TYPES)
@pytest.mark.parametrize("of_prediction", TYPES)
def test_types(folder, of_prediction, of_target):
    p, t = save_pair(folder, (of_prediction, of_target))
    for reduction in ("mean", "sum"):
        answer = expected("mse", [p, t], reduction)
        outputs, files = gradient_options("mse")
        folder.answer("mse", "p.npy", "t.npy", "--reduction", reduction, *outputs, "--none", "n.npy")
        assert_gradients(folder, files, answer, [of_prediction, of_target], SHAPE)
        assert_losses(folder, "n.npy", "mse", [p, t])


@pytest.mark.parametrize("loss", KINDS)
def test_one_gradient_does_not_depend_on_the_others(folder, loss):
    command = [loss, *save_operands(folder, operands(loss, 43, SHAPE))]
    outputs, files = gradient_options(loss)
    wanted = folder.hex(*command, *outputs)
    for k, name in enumerate(operand_names(loss)):
        option = "--grad" if k == 0 else f"--grad-{name}"
        assert folder.hex(*command, option, "alone.npy") == wanted
        assert (folder / "alone.npy").read_bytes() == (folder / files[k]).read_bytes()
        folder.quiet(*command, option, "alone.npy", "--reduction", "none")


@pytest.mark.parametrize(
    "shapes",
    [
        ((40, 50), (50,)),
        ((50,), (40, 50)),
        ((40, 1), (50,)),
        ((), (3, 4)),
        ((3, 1, 50), (40, 1)),
        ((0, 3), (3,)),
        ((), ()),
    ],
    ids=str,
)
def test_the_common_shape(folder, shapes):
    p, t = save_pair(folder, shapes=shapes)
    common = np.broadcast_shapes(*shapes)
    folder.answer("smooth_l1", "p.npy", "t.npy", "--grad", "g.npy", "--none", "n.npy")
    assert_gradients(folder, ["g.npy"], expected("smooth_l1", [p, t]), ["f32"], common)
    assert_losses(folder, "n.npy", "smooth_l1", [p, t])


def test_c_order_whatever_the_inputs_have(folder):
    p, t = save_pair(folder)
    folder.answer("mse", "p.npy", "t.npy", "--grad", "g.npy", "--none", "n.npy")
    folder.save("p.npy", np.asfortranarray(p)), folder.save("t.npy", t.astype(">f4"))
    folder.answer("mse", "p.npy", "t.npy", "--grad", "fg.npy", "--none", "fn.npy")
    for plain, other in (("g.npy", "fg.npy"), ("n.npy", "fn.npy")):
        assert (folder / plain).read_bytes() == (folder / other).read_bytes()
        assert np.load(folder / plain).flags.c_contiguous


@pytest.mark.parametrize("type_name", TYPES)
def test_the_files_are_numpys_version_1(folder, type_name):
    save_pair(folder, (type_name, type_name))
    folder.answer("mse", "p.npy", "t.npy", "--grad", "g.npy")
    content = (folder / "g.npy").read_bytes()
    assert content[:8] == b"\x93NUMPY\x01\x00"
    length = 10 + int.from_bytes(content[8:10], "little")
    assert length % 64 == 0 and content[length - 1 : length] == b"\n"
    # NumPy writes the same bytes for the same array; only the room in the header differs, if anything.
    folder.save("again.npy", folder.load("g.npy"))
    again = (folder / "again.npy").read_bytes()
    assert content[10:length].rstrip() == again[10 : 10 + int.from_bytes(again[8:10], "little")].rstrip()
    assert content[length:] == folder.load("g.npy").tobytes()


@pytest.mark.parametrize("type_name", TYPES)
def test_a_mapped_output(folder, type_name):
    """NumPy can map it into memory, as people do with large ones."""
    p, t = save_pair(folder, (type_name, "f32"))
    folder.answer("mse", "p.npy", "t.npy", "--grad", "g.npy")
    assert np.load(folder / "g.npy", mmap_mode="r").shape == SHAPE


def test_an_output_is_an_input_of_the_next_run(folder):
    p, t = save_pair(folder, ("bf16", "bf16"))
    folder.answer("mse", "p.npy", "t.npy", "--grad", "g.npy")
    assert folder.json("mse", "g.npy", "t.npy")["type"] == "bf16"


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 100, "99999999999999999999"])
def test_the_same_bytes_with_any_number_of_threads(folder, threads):
    save_pair(folder, shapes=((300, 701), (300, 701)))
    wanted = folder.hex("hinge", "p.npy", "t.npy", "--grad", "g.npy", "--none", "n.npy")
    outputs = ["--grad", "g2.npy", "--none", "n2.npy"]
    assert folder.hex("hinge", "p.npy", "t.npy", *outputs, "--threads", threads) == wanted
    for one, other in (("g.npy", "g2.npy"), ("n.npy", "n2.npy")):
        assert (folder / one).read_bytes() == (folder / other).read_bytes()


def test_nan_has_one_face(folder):
    p, t = save_pair(folder)
    p.view("u4")[3, 5:9] = 0xFFC12345
    folder.save("p.npy", p)
    assert folder.answer("mse", "p.npy", "t.npy", "--grad", "g.npy", "--none", "n.npy") == "nan"
    for name in ("g.npy", "n.npy"):
        array = folder.load(name)
        assert (bits(array)[np.isnan(array)] == 0x7FC00000).all() and np.isnan(array).sum() == 4


def test_infinity(folder):
    p, t = np.array([np.inf, -np.inf, 1, np.inf], np.float32), np.array([0, 0, np.inf, np.inf], np.float32)
    folder.save("p.npy", p), folder.save("t.npy", t)
    for loss, given in cases():
        if len(operand_names(loss)) > 2:
            continue
        command = [loss, "p.npy", "t.npy", *options(given), "--reduction", "sum"]
        folder.answer(*command, "--grad", "g.npy", "--none", "n.npy")
        assert_gradients(folder, ["g.npy"], expected(loss, [p, t], "sum", given=given), ["f32"], (4,))
        assert_losses(folder, "n.npy", loss, [p, t], given=given)


# ------------------------------------------------------------ no reduction --


def test_no_reduction_prints_nothing(folder):
    p, t = save_pair(folder)
    folder.quiet("mse", "p.npy", "t.npy", "--reduction", "none", "--none", "n.npy")
    folder.quiet("mse", "p.npy", "t.npy", "--reduction=none", "--grad", "g.npy")
    assert_gradients(folder, ["g.npy"], expected("mse", [p, t], "none"), ["f32"], SHAPE)


def test_no_reduction_needs_an_output(folder):
    save_pair(folder)
    folder.refuse("mse", "p.npy", "t.npy", "--reduction", "none", says=["--none"])


def test_the_losses_add_up_to_the_sum(folder):
    save_pair(folder, ("f32", "f64"))
    text = folder.answer("mse", "p.npy", "t.npy", "--reduction", "sum", "--none", "n.npy")
    assert np.isclose(float(text), exact(folder.load("n.npy")).sum(), rtol=1e-13)


# ----------------------------------------------------------------- renaming --


def test_an_earlier_file_is_replaced(folder):
    save_pair(folder)
    folder.write("g.npy", b"something else, " * 10_000)
    folder.answer("mse", "p.npy", "t.npy", "--grad", "g.npy")
    assert folder.load("g.npy").shape == SHAPE
    assert sorted(os.listdir(folder.path)) == ["g.npy", "p.npy", "t.npy"]


def test_whoever_had_the_earlier_file_open_keeps_it(folder):
    save_pair(folder)
    folder.write("g.npy", b"earlier")
    with open(folder / "g.npy", "rb") as earlier:
        folder.answer("mse", "p.npy", "t.npy", "--grad", "g.npy")
        assert earlier.read() == b"earlier"


def test_other_folders(folder):
    save_pair(folder)
    os.makedirs(folder / "a/b c")
    folder.answer("mse", "p.npy", "t.npy", "--grad", "a/g.npy", "--none", folder / "a/b c/n.npy")
    assert folder.load("a/g.npy").shape == folder.load("a/b c/n.npy").shape == SHAPE
    assert os.listdir(folder / "a/b c") == ["n.npy"]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_permissions_are_those_of_new_files(folder, mask):
    save_pair(folder)
    folder.answer("mse", "p.npy", "t.npy", "--grad", "g.npy", preexec_fn=lambda: os.umask(mask))
    assert stat.S_IMODE(os.stat(folder / "g.npy").st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o444, 0o777])
def test_a_file_that_is_replaced_keeps_its_permissions(folder, mode):
    save_pair(folder)
    folder.write("g.npy", b"earlier"), os.symlink("n.npy", folder / "link.npy"), folder.write("n.npy", b"earlier")
    os.chmod(folder / "g.npy", mode), os.chmod(folder / "n.npy", mode)
    folder.answer("mse", "p.npy", "t.npy", "--grad", "g.npy", "--none", "link.npy", preexec_fn=lambda: os.umask(0o027))
    for name in ("g.npy", "n.npy"):
        assert folder.load(name).shape == SHAPE
        assert stat.S_IMODE(os.stat(folder / name).st_mode) == mode


def test_a_link_stays_and_its_file_is_replaced(folder):
    save_pair(folder)
    os.mkdir(folder / "sub")
    folder.write("sub/g.npy", b"earlier"), os.symlink("sub/g.npy", folder / "link.npy")
    folder.answer("mse", "p.npy", "t.npy", "--grad", "link.npy")
    assert os.readlink(folder / "link.npy") == "sub/g.npy"
    assert folder.load("sub/g.npy").shape == SHAPE


def test_a_link_to_a_file_that_is_not_there_yet(folder):
    """Relative to the link's folder, absolute, and through a further link."""
    save_pair(folder)
    os.makedirs(folder / "links"), os.makedirs(folder / "data")
    os.symlink("../data/a.npy", folder / "links/a.npy")
    os.symlink(folder / "data/b.npy", folder / "b.npy")
    os.symlink("links/c.npy", folder / "c.npy"), os.symlink("../data/c.npy", folder / "links/c.npy")
    for link in ("links/a.npy", "b.npy", "c.npy"):
        folder.answer("mse", "p.npy", "t.npy", "--grad", link)
        assert os.path.islink(folder / link)
        assert folder.load(f"data/{os.path.basename(link)}").shape == SHAPE
    assert sorted(os.listdir(folder / "data")) == ["a.npy", "b.npy", "c.npy"]
    assert sorted(os.listdir(folder / "links")) == ["a.npy", "c.npy"]


def test_links_that_lead_nowhere(folder):
    save_pair(folder)
    os.symlink("missing/g.npy", folder / "no_folder.npy")
    os.symlink("round.npy", folder / "round.npy")
    os.symlink("there.npy", folder / "here.npy"), os.symlink("here.npy", folder / "there.npy")
    for link in ("no_folder.npy", "round.npy", "here.npy"):
        folder.refuse("mse", "p.npy", "t.npy", "--grad", link, says=f"onepass: {link}: cannot be written: ")
    os.symlink("g.npy", folder / "link.npy")
    folder.refuse("mse", "p.npy", "t.npy", "--grad", "link.npy", "--none", "g.npy", says=["link.npy", "g.npy"])


@pytest.mark.parametrize("character", ["g", "ö", "€"])
def test_names_up_to_the_limit_of_the_file_system(folder, character):
    """The name that the file has meanwhile has to fit as well."""
    save_pair(folder)
    most = os.pathconf(folder.path, "PC_NAME_MAX")
    for length in range(most - 14, most + 1):
        size = len(character.encode())
        name = "g" * ((length - 4) % size) + character * ((length - 4) // size) + ".npy"
        assert len(name.encode()) == length
        folder.answer("mse", "p.npy", "t.npy", "--grad", name)
        assert folder.load(name).shape == SHAPE
        os.remove(folder / name)
    assert sorted(os.listdir(folder.path)) == ["p.npy", "t.npy"]
    folder.refuse("mse", "p.npy", "t.npy", "--grad", "g" * (most + 1), says=["g" * (most + 1), "too long"])


@pytest.mark.parametrize("last", [13, 101, 255])
def test_paths_up_to_the_limit_of_the_system(folder, last):
    """The one that the file has meanwhile has to fit as well, for which a name of some length is needed."""
    save_pair(folder)
    most = os.pathconf(folder.path, "PC_PATH_MAX") - 1
    name = "./" * ((most - last) // 2) + "g" * last
    assert len(name) == most
    folder.answer("mse", "p.npy", "t.npy", "--grad", name)
    assert folder.load("g" * last).shape == SHAPE
    folder.refuse("mse", "p.npy", "t.npy", "--grad", f"./{name}", says=[f"./{name}", "too long"])


@pytest.mark.parametrize("depth", [3850, 4090, 4300])
def test_a_folder_whose_whole_name_is_longer_than_a_path_can_be(folder, depth):
    """Names are relative to it, and need not be written out."""
    p, t = (numbers(seed, SHAPE) for seed in (44, 45))
    names = ["link.npy", "g" * 255]

    def go_there():
        length = len(os.getcwd())
        while length < depth:
            part = "d" * max(1, min(200, depth - length - 1))
            os.makedirs(part, exist_ok=True)
            os.chdir(part)
            length += 1 + len(part)

    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder.path), go_there()
        np.save("p.npy", p), np.save("t.npy", t), os.symlink("target.npy", "link.npy")
        command = [tool(), "mse", "p.npy", "t.npy", "--grad", names[0], "--none", names[1]]
        done = subprocess.run(command, capture_output=True, timeout=300)
        assert done.returncode == 0 and done.stderr == b"", done
        assert np.load("target.npy").shape == np.load(names[1]).shape == SHAPE
        assert sorted(os.listdir()) == sorted(["p.npy", "t.npy", "target.npy", *names])
        done = subprocess.run([*command[:-1], "./target.npy"], capture_output=True, timeout=300)
        assert done.returncode == 2 and b"are one file" in done.stderr, done
    finally:
        os.fchdir(here), os.close(here)


def test_messages_have_the_whole_name_that_was_given(folder):
    """However long it is, and not what it stands for."""
    save_pair(folder)
    os.makedirs(folder / ("d" * 200) / ("e" * 200))
    os.symlink("d" * 200, folder / "link")
    names = (f"link/../{'d' * 200}/{'e' * 200}/{'f' * 200}/g.npy", "./link/missing/g.npy", "g" * 5000)
    for name in names:
        for option in ("--grad", "--none", "--grad-target"):
            result = folder.refuse("mse", "p.npy", "t.npy", option, name)
            assert result.startswith(f"onepass: {name}: cannot be written: ") and len(result) > len(name) + 40
    folder.save("q.npy", np.zeros(3)), os.rename(folder / "q.npy", folder / ("d" * 200) / ("q" * 200))
    for way in ("link", "d" * 200, "./" * 1900 + "link"):
        name = f"{way}/{'q' * 200}"
        words = [f"onepass: p.npy has shape (13, 211) and {name} has shape (3,), which do not broadcast"]
        folder.refuse("mse", "p.npy", name, says=words)
