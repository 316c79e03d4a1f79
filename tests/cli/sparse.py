# Large files that take no room: zeros, but for a few numbers; and a watch on the memory of a running tool.
import resource
import signal
import subprocess
import time

import numpy as np

from folder import QUICK, tool

MIB = 1 << 20
#: bytes of a large array
LARGE = (64 if QUICK else 4096) * MIB


def save_sparse(path, shape, spots, fortran=False, dtype=np.float32):
    """An .npy file of zeros in which the elements at these indices (in C order) have these values."""
    size = np.dtype(dtype).itemsize
    header = {"descr": np.dtype(dtype).str, "fortran_order": fortran, "shape": shape}
    strides = np.cumprod((1,) + (shape[:-1] if fortran else shape[:0:-1]), dtype=np.int64)
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        start = file.tell()
        file.truncate(start + size * int(np.prod(shape, dtype=np.int64)))
        for index, value in spots.items():
            place = np.unravel_index(index, shape)
            file.seek(start + size * int(np.dot(place, strides if fortran else strides[::-1])))
            file.write(dtype(value).tobytes())
    return path.name


def as_in_a_shell():
    """For a child: signals as a person's shell leaves them. What runs in the background, or under nohup, has some of them
    ignored, its children inherit that, and the tool respects it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU):
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would stand in the folder


def start(folder, *arguments, **options):
    """Starts the tool in the folder; a test that fails must not leave it behind, so use `with ended(...)`."""
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    options.setdefault("preexec_fn", as_in_a_shell)
    return subprocess.Popen([tool(), *map(str, arguments)], cwd=folder.path, **options)


class ended:
    """The tool while it runs; whatever happens to the test, it is gone afterwards."""

    def __init__(self, process):
        self.process = process

    def __enter__(self):
        return self.process

    def __exit__(self, *problem):
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()


def wait_until(condition, process, seconds=120):
    """True as soon as the condition is; false if the process ends before."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if condition():
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.002)
    raise AssertionError("nothing happened for too long")


def watch_memory(process, seconds=300):
    """The greatest VmHWM and RssAnon + RssShmem, in bytes, until the process ends."""
    peak = own = 0
    limit = time.monotonic() + seconds
    while process.poll() is None:
        assert time.monotonic() < limit, "it takes too long"
        try:
            with open(f"/proc/{process.pid}/status") as file:
                fields = dict(line.split(":", 1) for line in file)
        except (FileNotFoundError, ProcessLookupError):
            break
        kilobytes = {key: int(value.split()[0]) for key, value in fields.items() if key.startswith(("Vm", "Rss"))}
        peak = max(peak, kilobytes.get("VmHWM", 0))
        own = max(own, kilobytes.get("RssAnon", 0) + kilobytes.get("RssShmem", 0))
        time.sleep(0.005)
    return peak * 1024, own * 1024
