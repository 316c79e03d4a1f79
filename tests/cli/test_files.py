# What can be read: every version, order, byte order and container has the same bits.
import json
import os
import resource
import struct
import subprocess

import ml_dtypes
import numpy as np
import pytest
import safetensors

from expected import FEW, KINDS, TYPES, assert_number, expected, numbers, operands, save_operands, type_of
from folder import tool

SHAPE = (7, 11, 31)


def swapped(array):
    return array.astype(array.dtype.newbyteorder())


@pytest.fixture
def plain(folder):
    """The plain way: predictions and targets in C order, and the bits of their loss, which are the oracle's."""
    folder.p, folder.t = numbers(21, SHAPE), numbers(22, SHAPE)
    folder.save("p.npy", folder.p), folder.save("t.npy", folder.t)
    assert_number(folder.answer("mse", "p.npy", "t.npy"), expected("mse", [folder.p, folder.t]))
    folder.bits = folder.hex("mse", "p.npy", "t.npy")
    return folder


# -------------------------------------------------------------------- npy --


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)], ids=str)
def test_versions(plain, version):
    plain.save("a.npy", plain.p, version)
    assert (plain / "a.npy").read_bytes()[6:8] == bytes(version)
    assert plain.hex("mse", "a.npy", "t.npy") == plain.bits


@pytest.mark.parametrize("loss", KINDS)
@pytest.mark.parametrize("type_name", ["f16", "f32", "f64"])
@pytest.mark.parametrize("shape", [(41, 53), (7, 11, 31), (1, 2049), (2049, 1), (2, 3, 4, 5, 6)], ids=str)
def test_orders_and_byte_orders(folder, shape, type_name, loss):
    arrays = operands(loss, 23, shape, type_name)
    p, t = arrays[:2]
    files = {
        "C.npy": p,
        "fortran.npy": np.asfortranarray(p),
        "swapped.npy": swapped(p),
        "both.npy": np.asfortranarray(swapped(p)),
    }
    for name, array in files.items():
        folder.save(name, array)
    third = save_operands(folder, arrays)[2:]
    folder.save("ft.npy", np.asfortranarray(swapped(t)))
    found = {folder.hex(loss, name, target, *third) for name in files for target in ("t.npy", "ft.npy")}
    assert len(found) == 1
    assert_number(folder.answer(loss, "C.npy", "t.npy", *third), expected(loss, arrays))


def test_no_dimensions_in_the_other_byte_order(folder):
    folder.save("p.npy", swapped(np.array(3.0, np.float32))), folder.save("t.npy", np.array(1.0, np.float32))
    assert float(folder.answer("mse", "p.npy", "t.npy")) == 4


def test_any_name_will_do(plain):
    for name in ("predictions", "p.txt", "x:y.npy", "a b.npy", "größe.npy", "p.npy.safetensors", "-p"):
        plain.save(name, plain.p)
        assert plain.hex("mse", f"./{name}", "t.npy") == plain.bits
        assert plain.hex("mse", plain / name, "t.npy") == plain.bits


def test_a_link_will_do(plain):
    os.symlink("p.npy", plain / "link.npy")
    assert plain.hex("mse", "link.npy", "t.npy") == plain.bits


def test_the_same_file_twice(plain):
    assert float(plain.answer("mse", "p.npy", "p.npy")) == 0


def test_a_read_only_file(plain):
    os.chmod(plain / "p.npy", 0o444)
    assert plain.hex("mse", "p.npy", "t.npy") == plain.bits


def test_bfloat16_as_numpy_writes_it(folder):
    p, t = numbers(25, SHAPE, "bf16"), numbers(26, SHAPE, "bf16")
    folder.save("p.npy", p), folder.save("t.npy", t)
    assert b"V2" in (folder / "p.npy").read_bytes()[:128]
    reply = folder.json("mse", "p.npy", "t.npy")
    assert reply["type"] == "bf16"
    assert_number(repr(reply["value"]), expected("mse", [p, t]))
    folder.save("void.npy", p.view("V2"))  # which NumPy writes as |V2
    folder.save("fortran.npy", np.asfortranarray(p))
    for name in ("void.npy", "fortran.npy"):
        assert folder.hex("mse", name, "t.npy") == reply["bits"]


def test_bfloat16_as_integers(folder):
    p, t = numbers(25, SHAPE, "bf16"), numbers(26, SHAPE, "bf16")
    folder.save("p.npy", p), folder.save("t.npy", t)
    wanted = folder.hex("mse", "p.npy", "t.npy")
    for name, array in {"u.npy": p.view("u2"), "swapped.npy": swapped(p.view("u2"))}.items():
        folder.save(name, array)
        assert folder.hex("mse", name, "t.npy", "--bf16") == wanted
        folder.refuse("mse", name, "t.npy", says=[name])
    folder.save("f.npy", numbers(27, SHAPE))  # others stay what they are
    assert folder.json("mse", "u.npy", "f.npy", "--bf16")["type"] == "f32"


def test_sixteen_dimensions(folder):
    shape = (2,) * 13 + (1, 3, 1)
    p, t = numbers(28, shape), numbers(29, shape)
    folder.save("p.npy", np.asfortranarray(p)), folder.save("t.npy", t)
    assert_number(folder.answer("mse", "p.npy", "t.npy"), expected("mse", [p, t]))


# ------------------------------------------------------------ safetensors --

NAMES = [
    "logits",
    "layer.0.weight",
    "a:b",
    ":",
    "with space",
    "größe",
    "日本",
    "😀",
    'quo"te',
    "back\\slash",
    "tab\t",
    "x/y",
]


@pytest.mark.parametrize("type_name", TYPES)
def test_tensors_by_name(folder, type_name):
    tensors = {name: numbers(31 + i, SHAPE, type_name) for i, name in enumerate(NAMES)}
    folder.save_tensors("run.safetensors", **tensors)
    for name, array in tensors.items():
        folder.save("p.npy", array)
        folder.save("t.npy", tensors["logits"])
        wanted = folder.hex("mse", "p.npy", "t.npy")
        assert folder.hex("mse", f"run.safetensors:{name}", "run.safetensors:logits") == wanted
        assert folder.hex("mse", f"{folder / 'run.safetensors'}:{name}", "t.npy") == wanted


def test_a_single_tensor_needs_no_name(plain):
    plain.save_tensors("one.safetensors", metadata={"format": "pt", "notes": "x" * 5000}, only=plain.p)
    assert plain.hex("mse", "one.safetensors", "t.npy") == plain.bits
    assert plain.hex("mse", "one.safetensors:only", "t.npy") == plain.bits
    os.rename(plain / "one.safetensors", plain / "one.bin")
    assert plain.hex("mse", "one.bin", "t.npy") == plain.bits


def test_tensors_of_other_types_do_not_disturb(plain):
    others = {"step": np.arange(3), "mask": np.ones(5, bool), "small": np.ones(4, ml_dtypes.float8_e4m3fn)}
    plain.save_tensors("run.safetensors", logits=plain.p, **others)
    assert plain.hex("mse", "run.safetensors:logits", "t.npy") == plain.bits
    plain.refuse("mse", "run.safetensors:step", "t.npy", says=["run.safetensors", "I64"])


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)], ids=str)
def test_tensors_without_dimensions_or_elements(folder, shape):
    p, t = numbers(32, shape), numbers(33, shape)
    folder.save_tensors("f.safetensors", p=p, t=t)
    text = folder.answer("mse", "f.safetensors:p", "f.safetensors:t", "--reduction", "sum")
    assert_number(text, expected("mse", [p, t], "sum"))


def test_tensors_written_by_torch(plain):
    torch = pytest.importorskip("torch", reason="torch is not here to write files")
    from safetensors.torch import save_file

    tensors = {"p": torch.from_numpy(plain.p), "t": torch.from_numpy(plain.t)}
    save_file({**tensors, "half": tensors["p"].to(torch.bfloat16)}, plain / "t.safetensors", {"format": "pt"})
    assert plain.hex("mse", "t.safetensors:p", "t.safetensors:t") == plain.bits
    plain.save("half.npy", plain.p.astype(ml_dtypes.bfloat16))
    assert plain.hex("mse", "t.safetensors:half", "t.npy") == plain.hex("mse", "half.npy", "t.npy")


def tensors_at(start, **arrays):
    """A file whose tensors lie one after the other from this offset on, whatever their alignment."""
    header, data = {}, b""
    for name, array in arrays.items():
        kind, end = type_of(array).upper(), len(data) + array.nbytes
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [len(data), end]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    assert start >= 8 + len(text)
    text = text.ljust(start - 8)
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("start", [512, 513, 514, 516, 519])
def test_data_at_odd_offsets(folder, start, type_name):
    p, t = numbers(34, SHAPE, type_name), numbers(35, SHAPE, "f32")
    content = tensors_at(start, before=np.zeros(1, np.float16), p=p, t=t)
    assert dict(safetensors.deserialize(content))["p"]["data"] == p.tobytes()  # its own library agrees
    folder.write("odd.safetensors", content)
    folder.save("p.npy", p), folder.save("t.npy", t)
    for loss in FEW:
        assert folder.hex(loss, "odd.safetensors:p", "odd.safetensors:t") == folder.hex(loss, "p.npy", "t.npy")


def test_names_with_escapes(plain):
    """As Python's json writes them, whose ASCII has \\u and surrogates."""
    content = tensors_at(512, **{"größe 😀": plain.p})
    assert b"\\ud83d\\ude00" in content
    plain.write("f.safetensors", content)
    assert plain.hex("mse", "f.safetensors:größe 😀", "t.npy") == plain.bits


def test_colons_in_the_names_of_folders_files_and_tensors(plain):
    """The longest name of a file that is there goes first."""
    places = ("runs.safetensors:old", "a.safetensors:b.safetensors:c", ".safetensors:")
    tensors = {"logits": plain.p, "x.safetensors:y": plain.p, "../z.safetensors:": plain.p}
    for place in places:
        os.mkdir(plain / place)
        plain.save(f"{place}/p.npy", plain.p)
        plain.save_tensors(f"{place}/run.safetensors", **tensors)
        plain.save_tensors(f"{place}/one.safetensors", only=plain.p)
        names = ["p.npy", "one.safetensors", "one.safetensors:only", *(f"run.safetensors:{name}" for name in tensors)]
        for name in names:
            assert plain.hex("mse", f"{place}/{name}", "t.npy") == plain.bits
            assert plain.hex("mse", plain / place / name, "t.npy") == plain.bits
        for name in ("missing.npy", "missing.safetensors:x", "run.safetensors:missing", "run.safetensors:"):
            plain.refuse("mse", f"{place}/{name}", "t.npy", says=f"onepass: {place}/{name}: ")
    plain.save_tensors("runs.safetensors", other=plain.t)
    assert plain.hex("mse", "runs.safetensors:old/run.safetensors:logits", "t.npy") == plain.bits


def test_a_file_that_is_really_called_so(plain):
    plain.save_tensors("run.safetensors", logits=plain.p)
    os.mkdir(plain / "run.safetensors:logits")  # a folder is no file
    assert plain.hex("mse", "run.safetensors:logits", "t.npy") == plain.bits
    os.rename(plain / "run.safetensors", plain / "moved.safetensors")
    plain.refuse("mse", "run.safetensors:logits", "t.npy", says="run.safetensors:logits: is a directory")
    os.rmdir(plain / "run.safetensors:logits")
    plain.save("run.safetensors:logits", plain.t)
    assert float(plain.answer("mse", "run.safetensors:logits", "t.npy")) == 0


# ------------------------------------------------------------------ pipes --


def test_standard_input(plain):
    content = (plain / "p.npy").read_bytes()
    assert plain.hex("mse", "-", "t.npy", input=content) == plain.bits
    assert plain.hex("mse", "/dev/stdin", "t.npy", input=content) == plain.bits
    assert plain.hex("mse", "p.npy", "-", input=(plain / "t.npy").read_bytes()) == plain.bits
    for way in ("-", "/dev/stdin"):  # a file, not a pipe
        with open(plain / "p.npy", "rb") as file:
            assert plain.hex("mse", way, "t.npy", stdin=file) == plain.bits


def test_standard_input_from_where_it_stands(plain):
    """A shell's earlier commands may have read a part of it."""
    plain.write("two.bin", b"x" * 77 + (plain / "p.npy").read_bytes())
    with open(plain / "two.bin", "rb") as file:
        file.seek(77)
        os.lseek(file.fileno(), 77, os.SEEK_SET)
        result = plain.run("mse", "-", "t.npy", "--hex", stdin=file)
    assert result.out.strip() == plain.bits or result.status == 2, result  # never a wrong number


def test_tensors_in_a_pipe(plain):
    plain.save_tensors("one.safetensors", only=plain.p)
    assert plain.hex("mse", "-", "t.npy", input=(plain / "one.safetensors").read_bytes()) == plain.bits


def test_process_substitution(plain):
    script = '"$0" mse <(cat p.npy) <(cat t.npy) --weight <(cat w.npy) --hex'
    plain.save("w.npy", np.ones(SHAPE, np.float32))
    done = subprocess.run(["bash", "-c", script, tool()], cwd=plain.path, capture_output=True, timeout=300)
    assert (done.stdout.decode().strip(), done.stderr) == (plain.bits, b"")


def test_a_named_pipe(plain):
    os.mkfifo(plain / "pipe")
    with subprocess.Popen(["cp", "p.npy", "pipe"], cwd=plain.path) as writer:
        assert plain.hex("mse", "pipe", "t.npy") == plain.bits
        assert writer.wait(60) == 0


def test_a_pipe_larger_than_its_buffer_in_other_orders(folder):
    p, t = numbers(36, (700, 901)), numbers(37, (700, 901))
    folder.save("p.npy", p), folder.save("t.npy", t), folder.save("f.npy", np.asfortranarray(swapped(p)))
    wanted = folder.hex("mse", "p.npy", "t.npy")
    assert folder.hex("mse", "-", "t.npy", input=(folder / "f.npy").read_bytes()) == wanted


def test_nothing_is_left_of_a_pipe(plain):
    os.mkdir(plain / "temporary")
    env = {"TMPDIR": str(plain / "temporary")}
    content = (plain / "p.npy").read_bytes()
    assert plain.hex("mse", "-", "t.npy", input=content, env=env) == plain.bits
    plain.refuse("mse", "-", "t.npy", input=content[:-1], env=env)
    assert os.listdir(plain / "temporary") == []


def limit_files():
    """So that a copy that does not end is noticed before the disk is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 24, 1 << 24))


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_a_device_without_an_end(plain, device):
    """Its first bytes tell that it is no file of numbers; a random one that begins like one by chance is improbable."""
    neither = "is neither a .npy nor a .safetensors file"
    for files in ((device, "t.npy"), ("p.npy", device), ("p.npy", "t.npy", "--mask", device)):
        plain.refuse("mse", *files, says=f"onepass: {device}: {neither}", preexec_fn=limit_files)
    with open(device, "rb") as endless:
        plain.refuse("mse", "-", "t.npy", says=f"onepass: -: {neither}", stdin=endless, preexec_fn=limit_files)
    os.symlink(device, plain / "endless.safetensors")
    plain.refuse("mse", "endless.safetensors:a", "t.npy", says="onepass: endless.safetensors:a: ", preexec_fn=limit_files)


def test_an_archive(plain):
    np.savez(plain / "both.npz", p=np.ones(3), t=np.zeros(3))
    plain.refuse("mse", "both.npz", "t.npy", says="onepass: both.npz: is neither a .npy nor a .safetensors file but an archive")


@pytest.mark.parametrize("content", [{"weight": [1.0]}, [2.0]], ids=["a model", "a tensor"])
def test_an_archive_of_torch_save(plain, content):
    """An archive too, but nothing that unzip would help with."""
    torch = pytest.importorskip("torch")
    for name in ("m.pt", "weights_of_a_model.bin", "m.npy"):
        torch.save(content, plain / name)
        plain.refuse("mse", "p.npy", name, says=(f"onepass: {name}: ", "torch.save", "np.save", "safetensors.torch.save_file"))
    saved = (plain / "m.pt").read_bytes()
    plain.refuse("mse", "-", "t.npy", input=saved, says=("onepass: -: ", "torch.save"))
    for size in range(4, 64):  # cut short, within the name and before
        plain.refuse("mse", plain.write("m.pt", saved[:size]), "t.npy", says="is neither a .npy nor a .safetensors file")


def test_a_pipe_without_an_end_that_brings_its_first_bytes_one_by_one(plain):
    script = 'for byte in n o t " " n u m b e r s; do printf "%s" "$byte"; sleep 0.01; done; exec yes'
    with subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE) as writer:
        words = "onepass: -: is neither a .npy nor a .safetensors file"
        plain.refuse("mse", "-", "t.npy", says=words, stdin=writer.stdout, preexec_fn=limit_files)


def test_a_pipe_that_brings_its_bytes_one_by_one(plain):
    script = 'for i in {0..15}; do dd if=p.npy bs=1 skip=$i count=1 status=none; done; tail -c +17 p.npy'
    with subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE, cwd=plain.path) as writer:
        assert plain.hex("mse", "-", "t.npy", stdin=writer.stdout) == plain.bits


def test_no_place_for_a_pipe(plain):
    env = {"TMPDIR": str(plain / "not_there")}
    result = plain.run("mse", "-", "t.npy", input=(plain / "p.npy").read_bytes(), env=env)
    assert result.status in (1, 2) and result.err.startswith("onepass: ") and "not_there" in result.err


# ---------------------------------------------------------- several windows --


@pytest.fixture(scope="module")
def many_windows(tmp_path_factory):
    """Arrays of 37 MB, so that every way of reading takes several windows."""
    from folder import Folder

    folder = Folder(tmp_path_factory.mktemp("windows"))
    shape = (3041, 3037)
    p, t = (numbers(seed, shape) for seed in (38, 39))
    folder.save("p.npy", p), folder.save("t.npy", t)
    folder.save("fortran.npy", np.asfortranarray(p)), folder.save("swapped.npy", swapped(p))
    folder.save("flat_p.npy", p.ravel()), folder.save("flat_t.npy", t.ravel())
    folder.write("odd.safetensors", tensors_at(515, p=p, t=t))
    folder.bits = folder.hex("mse", "p.npy", "t.npy", "--grad", "g.npy")
    folder.gradient = folder.load("g.npy").tobytes()
    assert_number(folder.answer("mse", "p.npy", "t.npy"), expected("mse", [p, t]))
    return folder


WAYS = {
    "one thread": ["p.npy", "t.npy", "--threads", "1"],
    "two threads": ["p.npy", "t.npy", "--threads", "2"],
    "seven threads": ["p.npy", "t.npy", "--threads", "7"],
    "fortran": ["fortran.npy", "t.npy"],
    "swapped": ["swapped.npy", "t.npy"],
    "flat": ["flat_p.npy", "flat_t.npy"],
    "odd": ["odd.safetensors:p", "odd.safetensors:t"],
    "odd beside fortran, three threads": ["fortran.npy", "odd.safetensors:t", "--threads", "3"],
}


@pytest.mark.parametrize("way", WAYS)
def test_several_windows(many_windows, way, tmp_path):
    gradient = tmp_path / "gradient.npy"
    assert many_windows.hex("mse", *WAYS[way], "--grad", gradient) == many_windows.bits
    assert np.load(gradient).tobytes() == many_windows.gradient


def test_several_windows_of_a_pipe(many_windows):
    with open(many_windows / "p.npy", "rb") as file:
        cat = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
        assert many_windows.hex("mse", "-", "t.npy", stdin=cat.stdout) == many_windows.bits
        cat.stdout.close()
        assert cat.wait(60) == 0


BROADCAST = [((3041, 3037), (3037,)), ((3041, 1), (1, 3037)), ((2, 1500, 3037), (1500, 1)), ((9_000_000,), ())]


@pytest.mark.parametrize("shapes", BROADCAST, ids=str)
def test_several_windows_of_broadcasting(folder, shapes):
    p, t = numbers(40, shapes[0]), numbers(41, shapes[1])
    folder.save("p.npy", p), folder.save("t.npy", t)
    common = np.broadcast_shapes(*shapes)
    folder.save("whole_p.npy", np.ascontiguousarray(np.broadcast_to(p, common)))
    folder.save("whole_t.npy", np.ascontiguousarray(np.broadcast_to(t, common)))
    wanted = folder.hex("hinge", "whole_p.npy", "whole_t.npy", "--grad", "whole_g.npy")
    assert folder.hex("hinge", "p.npy", "t.npy", "--grad", "g.npy") == wanted
    assert (folder / "g.npy").read_bytes() == (folder / "whole_g.npy").read_bytes()
