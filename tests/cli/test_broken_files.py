# Files that are not what they say: every one is refused with a sentence that names it, and nothing is written.
import io
import json
import struct

import numpy as np
import pytest

OUTPUTS = ["--grad", "g.npy", "--none", "n.npy"]
FOUR = struct.pack("<4f", 1, 2, 3, 4)


@pytest.fixture
def target(folder):
    folder.save("t.npy", np.zeros(4, np.float32))
    return folder


def npy(header, data=FOUR, version=(1, 0), length=None, magic=b"\x93NUMPY"):
    """An .npy file by hand; the header is a text or parts that replace those of a good one."""
    if isinstance(header, dict):
        parts = {"descr": "'<f4'", "fortran_order": "False", "shape": "(4,)", **header}
        header = "{" + ", ".join(f"'{key}': {value}" for key, value in parts.items() if value is not None) + "}\n"
    text = header if isinstance(header, bytes) else header.encode()
    size = len(text) if length is None else length
    return magic + bytes(version) + size.to_bytes(2 if version[0] == 1 else 4, "little") + text + data


def tensors(header, data=FOUR, length=None):
    """A .safetensors file by hand; the header is a text or one tensor's members that replace those of a good one."""
    if isinstance(header, dict):
        header = json.dumps({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16], **header}})
    text = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def saved(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def test_the_files_made_by_hand_are_good_otherwise(target):
    target.write("good.npy", npy({}))
    assert float(target.answer("mse", "good.npy", "t.npy", "--reduction", "sum")) == 30
    target.write("good.safetensors", tensors({}))
    assert float(target.answer("mse", "good.safetensors:a", "t.npy", "--reduction", "sum")) == 30


NOT_ARRAYS = {
    "empty": b"",
    "one byte": b"\x93",
    "text": b"1.0 2.0 3.0 4.0\n",
    "zeros": bytes(200),
    "wrong magic": npy({}, magic=b"\x93NUMPZ"),
    "without the first byte": npy({})[1:],
    "an archive of arrays": None,
    "JSON": b'{"a": [1, 2, 3]}',
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "a pickle": b"\x80\x04\x95" + bytes(100),
}


@pytest.mark.parametrize("kind", NOT_ARRAYS)
def test_other_files(target, kind):
    content = NOT_ARRAYS[kind]
    if content is None:
        np.savez(target / "bad.npy.npz", a=np.zeros(4))
        content = (target / "bad.npy.npz").read_bytes()
    for name in ("bad.npy", "bad.safetensors", "bad"):
        target.write(name, content)
        target.refuse("mse", name, "t.npy", *OUTPUTS, says=name)
        target.refuse("mse", "t.npy", name, *OUTPUTS, says=name)
        target.refuse("mse", "t.npy", "t.npy", "--weight", name, *OUTPUTS, says=name)


# --------------------------------------------------------------------- npy --

BAD_NPY = {
    "version 0.0": npy({}, version=(0, 0)),
    "version 4.0": npy({}, version=(4, 0)),
    "version 1.1": npy({}, version=(1, 1)),
    "a shape with more than there is": npy({"shape": "(5,)"}),
    "a shape with less than there is": npy({"shape": "(3,)"}),
    "another shape with less": npy({"shape": "()"}),
    "an empty shape and data": npy({"shape": "(0,)"}),
    "a wider type than there is": npy({"descr": "'<f8'"}),
    "a narrower type than there is": npy({"descr": "'<f2'"}),
    "no data": npy({}, b""),
    "a byte too few": npy({}, FOUR[:-1]),
    "a byte too many": npy({}, FOUR + b"\0"),
    "a header longer than the file": npy({}, length=65000),
    "a header of nothing": npy("", length=0),
    "a header that ends early": npy({}, length=20),
    "a header that ends late": npy({}, length=80),
    "a header of 4 GiB": npy({}, version=(2, 0), length=2**32 - 1),
    "a header of spaces": npy(" " * 117 + "\n"),
    "no descr": npy({"descr": None}),
    "no shape": npy({"shape": None}),
    "no fortran_order": npy({"fortran_order": None}),
    "another key": npy({"colour": "'blue'"}),
    "a key twice": npy("{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (4,)}\n"),
    "no dictionary": npy("('<f4', False, (4,))\n"),
    "no end": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4,)\n"),
    "no quotes": npy({"descr": "<f4"}),
    "an open quote": npy({"descr": "'<f4"}),
    "more behind the dictionary": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4,)} and more\n"),
    "a null byte": npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (4,)\0}\n"),
    "no truth": npy({"fortran_order": "Maybe"}),
    "a number for truth": npy({"fortran_order": "0"}),
    "a number for a shape": npy({"shape": "4"}),
    "brackets": npy({"shape": "(4"}),
    "a list": npy({"shape": "[4]"}),
    "a negative shape": npy({"shape": "(-4,)"}),
    "two negative shapes": npy({"shape": "(-2, -2)"}),
    "a real shape": npy({"shape": "(4.0,)"}),
    "a word in the shape": npy({"shape": "(four,)"}),
    "a shape of 2^62": npy({"shape": f"({2**62},)"}),
    "a shape of 2^62 twice": npy({"shape": f"({2**62}, {2**62})"}),
    "a shape of 2^63": npy({"shape": f"({2**63},)"}),
    "a shape of 2^64 + 4": npy({"shape": f"({2**64 + 4},)"}),
    "a shape of 10^40": npy({"shape": f"({10**40},)"}),
    "bytes that wrap to what there is": npy({"shape": f"({2**62 + 4},)"}),
    "17 dimensions": npy({"shape": "(" + "1, " * 16 + "4)"}),
    "5000 dimensions": npy({"shape": "(" + "1, " * 5000 + "4)"}),
    "int32": saved(np.zeros(4, np.int32)),
    "uint16": saved(np.zeros(4, np.uint16)),
    "int8": saved(np.zeros(4, np.int8)),
    "bool": saved(np.zeros(4, bool)),
    "complex64": saved(np.zeros(4, np.complex64)),
    "text": saved(np.array(["a", "b", "c", "d"])),
    "dates": saved(np.zeros(4, "M8[s]")),
    "records": saved(np.zeros(4, [("x", "f4")])),
    "objects": saved(np.array([1, None, "x", 2.0], object)),
    "V4": saved(np.zeros(4, "V4")),
    "f16, which is 128 bits": npy({"descr": "'<f16'"}, bytes(64)),
    "f3": npy({"descr": "'<f3'"}, bytes(12)),
    "f44": npy({"descr": "'<f44'"}, bytes(176)),
    "no byte order": npy({"descr": "'?f4'"}),
    "nothing for a type": npy({"descr": "''"}),
    "a long type": npy({"descr": "'" + "<f4" * 1000 + "'"}),
}


@pytest.mark.parametrize("kind", BAD_NPY)
def test_bad_npy(target, kind):
    target.write("bad.npy", BAD_NPY[kind])
    sentence = target.refuse("mse", "bad.npy", "t.npy", *OUTPUTS, says="bad.npy")
    assert len(sentence) < 1000


@pytest.mark.parametrize("type_name, word", [(np.int32, "i4"), (np.complex128, "c16"), (bool, "b1")])
def test_the_sentence_names_the_type(target, type_name, word):
    target.save("bad.npy", np.zeros(4, type_name))
    target.refuse("mse", "bad.npy", "t.npy", says=["bad.npy", word])


def test_every_cut(target):
    good = npy({"shape": "(2, 2)"})
    for cut in range(len(good)):
        target.write("cut.npy", good[:cut])
        target.refuse("mse", "cut.npy", "t.npy", says="cut.npy")


def test_empty_arrays_of_absurd_shapes(target):
    """Nothing to read, but nothing to multiply without overflow either: an answer or a sentence."""
    for shape in ((0, 2**62, 2**62), (2**62, 2**62, 0), (2**63 - 1, 0)):
        target.write("odd.npy", npy({"shape": str(shape)}, b""))
        result = target.run("mse", "odd.npy", "odd.npy")
        assert result.out == "nan\n" or result.status == 2 and result.err.startswith("onepass: "), result


def test_headers_that_only_look_odd(target):
    """NumPy reads these, so the tool does."""
    good = [
        npy("{'shape': (4,), 'fortran_order': False, 'descr': '<f4'}\n"),
        npy('{"descr": "<f4", "fortran_order": False, "shape": (4,)}\n'),
        npy("{'descr':'<f4','fortran_order':False,'shape':(4,),}\n"),
        npy("  { 'descr' : '<f4' , 'fortran_order' : True , 'shape' : ( 4 , ) , }   \n"),
        npy({"shape": "(4,)"}, version=(3, 0)),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}" + " " * 9000 + "\n"),
        npy("{'descr': '=f4', 'fortran_order': False, 'shape': (4,)}\n"),
    ]
    for content in good:
        assert np.load(io.BytesIO(content)).tolist() == [1, 2, 3, 4]
        target.write("odd.npy", content)
        assert float(target.answer("mse", "odd.npy", "t.npy", "--reduction", "sum")) == 30, content


# ------------------------------------------------------------- safetensors --

TWO = "{%s, %s}" % tuple(f'"{name}": {{"dtype": "F32", "shape": [2], "data_offsets": [%s]}}' for name in ("a", "b"))

BAD_TENSORS = {
    "only a length": struct.pack("<Q", 100),
    "a length that ends early": struct.pack("<Q", 100)[:5],
    "a header longer than the file": tensors({}, length=500),
    "a header of 2^63": tensors({}, length=2**63),
    "a header of 2^64 - 1": tensors({}, length=2**64 - 1),
    "a header of 1 TB": tensors({}, length=10**12),
    "a header that ends early": tensors({}, length=30),
    "a header that ends late": tensors({}, length=90),
    "no data": tensors({}, b""),
    "a byte too few": tensors({}, FOUR[:-1]),
    "a byte too many": tensors({}, FOUR + b"\0"),
    "offsets beyond the file": tensors({"data_offsets": [16, 32]}),
    "offsets far beyond the file": tensors({"data_offsets": [2**62, 2**62 + 16]}),
    "offsets that overflow": tensors({"data_offsets": [2**64 - 8, 8]}),
    "offsets the wrong way round": tensors({"data_offsets": [16, 0]}),
    "negative offsets": tensors({"data_offsets": [-16, 0]}),
    "real offsets": tensors({"data_offsets": [0.0, 16.0]}),
    "offsets as text": tensors({"data_offsets": ["0", "16"]}),
    "one offset": tensors({"data_offsets": [16]}),
    "three offsets": tensors({"data_offsets": [0, 8, 16]}),
    "offsets for fewer": tensors({"shape": [5]}),
    "offsets for more": tensors({"shape": [3]}),
    "offsets that overlap": tensors(TWO % ("0, 8", "4, 12"), FOUR[:12]),
    "offsets that are the same": tensors(TWO % ("0, 8", "0, 8"), FOUR[:8]),
    "a hole at the beginning": tensors({"shape": [2], "data_offsets": [8, 16]}),
    "a hole in the middle": tensors(TWO % ("0, 8", "12, 20"), bytes(20)),
    "another tensor that is bad": tensors(TWO % ("0, 8", "8, 99999"), FOUR),
    "an unknown type": tensors({"dtype": "F31"}),
    "a type in small letters": tensors({"dtype": "f32"}),
    "an integer type": tensors({"dtype": "I32"}),
    "a number for a type": tensors({"dtype": 32}),
    "a negative shape": tensors({"shape": [-4]}),
    "two negative shapes": tensors({"shape": [-2, -2]}),
    "a real shape": tensors({"shape": [4.5]}),
    "a number for a shape": tensors({"shape": 4}),
    "a shape of 2^62 twice": tensors({"shape": [2**62, 2**62]}),
    "bytes that wrap to what there is": tensors({"shape": [2**62 + 4]}),
    "a shape of 10^40": tensors({"shape": [10**40]}),
    "17 dimensions": tensors({"shape": [1] * 16 + [4]}),
    "no type": tensors('{"a": {"shape": [4], "data_offsets": [0, 16]}}'),
    "no shape": tensors('{"a": {"dtype": "F32", "data_offsets": [0, 16]}}'),
    "no offsets": tensors('{"a": {"dtype": "F32", "shape": [4]}}'),
    "no object": tensors("[1, 2, 3]"),
    "no object within": tensors('{"a": 3}'),
    "a name twice": tensors(TWO.replace('"b"', '"a"') % ("0, 8", "8, 16")),
    "not JSON": tensors('{"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}'),
    "more behind the object": tensors('{"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}} x'),
    "not UTF-8": tensors(b'{"\xff\xfe": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}'),
    "very deep": tensors('{"a": ' + "[" * 100_000),
    "NaN": tensors('{"a": {"dtype": "F32", "shape": [NaN], "data_offsets": [0, 16]}}'),
}


@pytest.mark.parametrize("kind", BAD_TENSORS)
def test_bad_safetensors(target, kind):
    target.write("bad.safetensors", BAD_TENSORS[kind])
    for way in ("bad.safetensors:a", "bad.safetensors"):
        sentence = target.refuse("mse", way, "t.npy", *OUTPUTS, says="bad.safetensors")
        assert len(sentence) < 1000


def test_every_cut_of_safetensors(target):
    good = tensors({})
    for cut in range(len(good)):
        target.write("cut.safetensors", good[:cut])
        target.refuse("mse", "cut.safetensors:a", "t.npy", says="cut.safetensors")


# ------------------------------------------------------------- random bytes --


@pytest.mark.parametrize("name", ["bad.npy", "bad.safetensors"])
def test_random_damage(target, name):
    """An answer or a sentence, whatever byte is changed; never a crash."""
    good = npy({}) if name == "bad.npy" else tensors({})
    rng = np.random.default_rng(77)
    for place in rng.permutation(len(good) - len(FOUR))[:100]:
        content = bytearray(good)
        content[place] = rng.choice([0, 32, 39, 45, 57, 255, content[place] ^ 1, content[place] ^ 128])
        target.write(name, bytes(content))
        result = target.run("mse", name, "t.npy")
        assert result.status in (0, 2), (bytes(content), result)
        assert (result.status == 0) == (result.err == ""), (bytes(content), result)
        assert result.err == "" or result.err.startswith("onepass: ") and result.err.count("\n") == 1
