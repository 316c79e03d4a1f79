# A folder with files in it, and the tool run there as a person would run it.
import collections
import json
import os
import subprocess

import ml_dtypes
import numpy as np
import safetensors.numpy

#: the element types by the names that the tool gives them
DTYPES = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
TYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
QUICK = os.environ.get("ONEPASS_TEST_QUICK", "0") not in ("", "0")
TIMEOUT = 300

Result = collections.namedtuple("Result", "status out err")


def tool():
    return os.environ["ONEPASS_TOOL"]


def bits(array):
    """The numbers' bits as unsigned integers, in this machine's byte order."""
    array = np.asarray(array)
    array = array.astype(array.dtype.newbyteorder("="))
    return array.view(f"u{array.dtype.itemsize}")


def refuse_constant(name):
    raise AssertionError(f"{name} is not JSON")


def strict_json(text):
    """The value of a JSON text, without Python's leniency towards NaN, and with no key twice."""

    def members(pairs):
        keys = [key for key, _ in pairs]
        assert len(keys) == len(set(keys)), f"a key stands twice in {keys}"
        return dict(pairs)

    return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=members)


class Folder:
    def __init__(self, path):
        self.path = path

    def __truediv__(self, name):
        return self.path / name

    # ------------------------------------------------------------- files --

    def save(self, name, array, version=None):
        """An .npy file as NumPy writes it."""
        with open(self.path / name, "wb") as file:
            np.lib.format.write_array(file, np.asanyarray(array), version)
        return name

    def save_tensors(self, name, metadata=None, **tensors):
        """A .safetensors file as its own library writes it."""
        safetensors.numpy.save_file(tensors, self.path / name, metadata)
        return name

    def write(self, name, content):
        (self.path / name).write_bytes(content)
        return name

    def load(self, name):
        """An .npy file as NumPy reads it; NumPy gives bfloat16 back as V2."""
        array = np.load(self.path / name, allow_pickle=False)
        return array.view(DTYPES["bf16"]) if array.dtype.kind == "V" else array

    def state(self):
        """What is in the folder, so that a test can say that nothing has changed."""
        found = {}
        for place, _, names in os.walk(self.path):
            for name in names:
                status = os.lstat(os.path.join(place, name))
                found[os.path.join(place, name)] = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode)
        return found

    # --------------------------------------------------------------- runs --

    def run(self, *arguments, input=None, env=None, timeout=TIMEOUT, **options):
        """Runs the tool here. Standard input is empty unless `input` or `stdin` says otherwise."""
        if input is None:
            options.setdefault("stdin", subprocess.DEVNULL)
        else:
            options["input"] = input
        options.setdefault("stdout", subprocess.PIPE)
        done = subprocess.run(
            [tool(), *map(str, arguments)],
            cwd=self.path,
            env={**os.environ, **(env or {})},
            stderr=subprocess.PIPE,
            timeout=timeout,
            **options,
        )
        return Result(done.returncode, (done.stdout or b"").decode(), done.stderr.decode())

    def answer(self, *arguments, **options):
        """What the tool prints, which must be one line, with nothing on standard error."""
        result = self.run(*arguments, **options)
        assert result.status == 0 and result.err == "", result
        assert result.out.endswith("\n") and result.out.count("\n") == 1, result
        return result.out[:-1]

    def hex(self, *arguments, **options):
        return self.answer(*arguments, "--hex", **options)

    def json(self, *arguments, **options):
        result = self.run(*arguments, "--json", **options)
        assert result.status == 0 and result.err == "", result
        return strict_json(result.out)

    def quiet(self, *arguments, **options):
        """A run that succeeds and prints nothing."""
        result = self.run(*arguments, **options)
        assert result == (0, "", ""), result

    def refuse(self, *arguments, says=(), status=2, **options):
        """A run that fails with one sentence that has these words in it, and leaves the folder as it was."""
        before = self.state()
        result = self.run(*arguments, **options)
        assert result.status == status, result
        assert result.out == "", result
        assert_sentence(result.err, *([says] if isinstance(says, str) else says))
        assert self.state() == before, result
        return result.err


def assert_sentence(text, *words):
    assert text.startswith("onepass: ") and text.endswith("\n"), text
    assert text.count("\n") == 1 and len(text) > len("onepass: \n"), text
    for word in words:
        assert word in text, f"{word!r} is not in {text!r}"
