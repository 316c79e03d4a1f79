# On a terminal: the bar, and Ctrl-C.
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
import time

import pytest

from sparse import as_in_a_shell, ended, save_sparse, start, wait_until

#: elements of a file that takes longer than a moment, but no room
LONG = 1 << 28


@pytest.fixture
def large(folder):
    save_sparse(folder / "p.npy", (LONG,), {3: 2}), save_sparse(folder / "t.npy", (LONG,), {LONG - 1: 5})
    return folder


class Terminal:
    """A pseudo-terminal and everything that was written to it."""

    def __init__(self, columns=80):
        self.master, self.slave = pty.openpty()
        if columns:
            fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
        self.written = b""
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        while True:
            try:
                piece = os.read(self.master, 4096)
            except OSError:  # the last program has let go of it
                return
            if not piece:
                return
            self.written += piece

    def close(self):
        os.close(self.slave)
        self.reader.join(20)
        os.close(self.master)
        return self.written.decode()


def screen(written):
    """What a terminal shows after these characters: its lines, without blanks at their ends."""
    lines, row, column = [[]], 0, 0
    for match in re.finditer(r"\x1b\[([0-9;?]*)([A-Za-z])|(.)", written, re.DOTALL):
        argument, command, character = match.groups()
        line = lines[row]
        if command == "K":
            begin, end = {"": (column, None), "0": (column, None), "1": (0, column + 1), "2": (0, None)}[argument]
            line[begin:end] = [" "] * len(line[begin:end])
        elif character == "\r":
            column = 0
        elif character == "\n":
            lines.append([])
            row, column = row + 1, 0
        elif character == "\b":
            column = max(column - 1, 0)
        elif character:
            line.extend(" " * (column + 1 - len(line)))
            line[column] = character
            column += 1
    return [text for text in ("".join(line).rstrip() for line in lines) if text]


def run_slowly(folder, terminal, *arguments, pauses=2, tries=5):
    """Runs the tool with the terminal as standard error, and holds it now and then so that the work takes a while; again,
    if the machine is so busy that the work is over before it is held."""
    with ended(start(folder, *arguments, stderr=terminal.slave)) as process:
        for _ in range(pauses):
            time.sleep(0.05)
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.7)
            if process.poll() is not None and tries > 1:
                return run_slowly(folder, terminal, *arguments, pauses=pauses, tries=tries - 1)
            assert process.poll() is None, "it was over before it could be held"
            process.send_signal(signal.SIGCONT)
        out = process.communicate(timeout=300)[0]
    return process.returncode, out.decode()


def test_the_screen_of_these_tests():
    assert screen("abc\rx") == ["xbc"]
    assert screen("abc\r\x1b[K") == [] == screen("abc\r   \r") == screen("abc\x1b[2K\r")
    assert screen("abc\r\n12\b3") == ["abc", "13"]


@pytest.mark.parametrize("columns", [80, 0, 30])
def test_the_bar(large, columns):
    terminal = Terminal(columns)
    status, out = run_slowly(large, terminal, "mse", "p.npy", "t.npy", "--threads", "1", "--reduction", "sum")
    written = terminal.close()
    assert (status, float(out)) == (0, 29)
    if columns != 30:
        assert re.search(r"\d ?%", written), written
        assert re.search(r"\d ?[kMGT]B/s", written), written
        assert re.search(r"left|\d:\d\d", written), written
    assert written.count("\n") == 0, "the bar stays on its line"
    assert screen(written) == [], "the bar is wiped when the work is done"
    frames = [frame for frame in re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written))]
    assert all(len(frame) <= (columns or 80) for frame in frames), "the bar fits the terminal"


def test_no_bar_for_quick_work(folder):
    save_sparse(folder / "p.npy", (1000,), {1: 1})
    terminal = Terminal()
    with ended(start(folder, "mse", "p.npy", "p.npy", stderr=terminal.slave)) as process:
        assert process.communicate(timeout=300)[0] == b"0\n"
    assert terminal.close() == ""


def test_no_bar_in_a_pipe(large):
    reader, writer = os.pipe()

    class Pipe:
        slave = writer

    status, out = run_slowly(large, Pipe, "mse", "p.npy", "t.npy", "--threads", "1", pauses=1)
    os.close(writer)
    with open(reader, "rb") as file:
        assert file.read() == b""
    assert status == 0


def test_a_sentence_behind_a_bar_begins_a_line(large):
    """The file shrinks while the bar is shown: the bar goes, the sentence stays."""
    terminal = Terminal()
    with ended(start(large, "mse", "p.npy", "t.npy", "--threads", "1", stderr=terminal.slave)) as process:
        time.sleep(0.05)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.7)
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: b"%" in terminal.written, process)
        os.truncate(large / "p.npy", 4096)
        process.communicate(timeout=300)
    shown = screen(terminal.close())
    assert process.returncode in (1, 2)
    assert len(shown) == 1 and shown[0].startswith("onepass: ") and "%" not in shown[0], shown


# ------------------------------------------------------------------- Ctrl-C --


def parts(folder):
    return [name for name in os.listdir(folder.path) if name.endswith(".part")]


ENDS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU]


@pytest.mark.parametrize("stop", ENDS, ids=lambda stop: stop.name)
def test_interrupted(large, stop):
    large.write("g.npy", b"earlier")
    with ended(start(large, "mse", "p.npy", "t.npy", "--grad", "g.npy", "--none", "n.npy")) as process:
        assert wait_until(lambda: len(parts(large)) == 2, process), "it was over before it could be interrupted"
        assert all(re.fullmatch(r"[gn]\.npy\.\w{6}\.part", name) for name in parts(large))
        process.send_signal(stop)
        out, err = process.communicate(timeout=300)
    assert process.returncode == -stop, (process.returncode, err)
    assert (out, err) == (b"", b"")
    assert sorted(os.listdir(large.path)) == ["g.npy", "p.npy", "t.npy"]
    assert (large / "g.npy").read_bytes() == b"earlier"


def test_interrupted_without_outputs(large):
    with ended(start(large, "mse", "p.npy", "t.npy", "--threads", "1")) as process:
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (-signal.SIGINT, b"", b"")


def test_interrupted_under_a_bar(large):
    """The line is blank again for the shell's prompt."""
    terminal = Terminal()
    with ended(
        start(large, "mse", "p.npy", "t.npy", "--threads", "1", "--grad", "g.npy", stderr=terminal.slave)
    ) as process:
        wait_until(lambda: parts(large), process)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.7)
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: b"%" in terminal.written, process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
    assert process.returncode == -signal.SIGINT
    written = terminal.close()
    assert written.endswith("\n") or screen(written) == [], written


def test_interrupted_while_reading_a_pipe(large):
    """Nobody will ever write to it; the temporary file goes too."""
    os.mkfifo(large / "pipe")
    os.mkdir(large / "temporary")
    env = {**os.environ, "TMPDIR": str(large / "temporary")}
    with ended(start(large, "mse", "pipe", "t.npy", env=env)) as process:
        with open(large / "pipe", "wb") as pipe:
            pipe.write((b"\x93NUMPY" + bytes(60_000)))
            pipe.flush()
            time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            assert process.wait(300) == -signal.SIGINT
    assert os.listdir(large / "temporary") == []


def test_interrupted_while_waiting_for_a_pipe(large):
    """Nobody opens its other end."""
    os.mkfifo(large / "pipe")
    with ended(start(large, "mse", "p.npy", "pipe")) as process:
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (-signal.SIGINT, b"", b"")


def test_interrupted_as_a_shell_sees_it(large):
    """A script that is interrupted with its command ends too: the shell sees a command killed by the signal."""
    script = '"$0" mse p.npy t.npy --grad g.npy; echo "went on"'
    shell = subprocess.Popen(
        ["bash", "-c", script, os.environ["ONEPASS_TOOL"]],
        cwd=large.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=as_in_a_shell,
        start_new_session=True,
    )
    with ended(shell):
        assert wait_until(lambda: parts(large), shell)
        os.killpg(shell.pid, signal.SIGINT)
        out, _ = shell.communicate(timeout=300)
        assert out == b"" and shell.returncode == -signal.SIGINT
    assert sorted(os.listdir(large.path)) == ["p.npy", "t.npy"]


def test_a_signal_that_was_ignored_stays_ignored(folder):
    """As of `nohup`, or of a command that a script put into the background."""
    count = 1 << 24
    save_sparse(folder / "p.npy", (count,), {3: 2})

    def ignore():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with ended(start(folder, "mse", "p.npy", "p.npy", "--grad", "g.npy", preexec_fn=ignore)) as process:
        assert wait_until(lambda: parts(folder), process), "it was over before it could be interrupted"
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGHUP)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (0, b"0\n", b"")
    assert folder.load("g.npy").shape == (count,)
