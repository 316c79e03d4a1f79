"""What was found: a table for people, and the JSON that `onepass plot` draws."""

import datetime
import json
import os
import platform
import re
import subprocess
import tempfile

from .contenders import version_of

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def count_text(count):
    """2^20, or the digits."""
    power = count.bit_length() - 1
    return f"2^{power}" if count == 1 << power else str(count)


def time_text(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def processor():
    try:
        told = subprocess.run(["lscpu"], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        told = ""
    found = re.search(r"Model name:\s*(.+)", told)
    return found.group(1).strip() if found else platform.machine()


def source_hash(engine):
    """Of the engine's sources, by which a test tells that they have changed since."""
    script = os.path.join(ROOT, "cmake", "source_hash.cmake")
    told = subprocess.run(["cmake", "-D", f"ROOT={ROOT}", "-D", f"ENGINE={engine}", "-P", script], capture_output=True,
                          text=True, check=True)
    return told.stdout.strip()


class Report:
    def __init__(self, contenders, command):
        import onepass

        machine = onepass.machine()
        torch = contenders.torch
        self.names = contenders.names
        self.contenders = contenders
        self.points = []
        self.reasons = {}
        on_gpu = contenders.device == "cuda"
        self.record = {"command": command,
                       "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                       "hardware": torch.cuda.get_device_name() if on_gpu else processor(),
                       "device": f"cuda:{torch.cuda.current_device()}" if on_gpu else "cpu",
                       "engine": "speed-cuda" if on_gpu else "speed-cpu",
                       "sources": source_hash("cuda" if on_gpu else "cpu")}
        if not on_gpu:
            self.record["threads"] = torch.get_num_threads() if torch else machine["threads"]
            self.record["instruction_set"] = machine["instruction_set"]
        self.record["versions"] = {"onepass": onepass.__version__}
        for name in ("numpy", "torch", "jax"):
            wanted = {"numpy": {"numpy"}, "torch": {"pytorch", "torch.compile"}, "jax": {"jax"}}[name]
            version = version_of(name)
            if wanted & set(self.names) and version != "unknown":
                self.record["versions"][name] = version
        self.record["versions"]["python"] = platform.python_version()

    def heading(self):
        facts = self.record
        threads = f", {facts['threads']} threads, {facts['instruction_set']}" if "threads" in facts else ""
        versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
        print(f"{facts['hardware']}{threads}\n{versions}\n"
              "Ratios are onepass's time over the peer's: below 1 onepass is faster. All take turns; medians.",
              flush=True)

    def columns(self):
        peers = "".join(f" {name:>{max(8, len(name))}}" for name in self.names[1:] if name != "limit")
        share = " of the limit" if "limit" in self.names else ""
        print(f"\n{'loss':<10} {'mode':<8} {'type':<5} {'elements':>9} {'onepass':>9}{peers}{share}", flush=True)

    def add(self, work, contenders):
        """One line of the table, and a point for each that took part."""
        ours = contenders[0].seconds()
        limit = next((c.seconds() for c in contenders if c.name == "limit"), None)
        cells = ""
        for contender in contenders:
            if contender.missing:
                self.reasons.setdefault((contender.name, contender.missing), []).append(work)
            seconds = contender.seconds()
            if contender.name not in ("onepass", "limit"):
                ratio = f"{ours / seconds:.3f}" if ours and seconds else "-"
                cells += f" {ratio:>{max(8, len(contender.name))}}"
            if seconds:
                self.points.append(self.point(work, contender.name, seconds))
        if "limit" in self.names:
            cells += f" {100 * limit / ours:>10.0f} %" if limit and ours else f" {'-':>12}"
        print(f"{work.loss:<10} {work.mode:<8} {work.type:<5} {count_text(work.elements):>9} "
              f"{time_text(ours) if ours else '-':>9}{cells}", flush=True)

    @staticmethod
    def point(work, series, seconds):
        return {"series": series, "loss": work.loss, "mode": work.mode, "type": work.type, "elements": work.elements,
                "bytes": work.bytes, "seconds": float(f"{seconds:.6g}"),
                "gbps": float(f"{1e-9 * work.bytes / seconds:.6g}")}

    def summary(self):
        print()
        if "limit" in self.names:
            print(f"the limit: {self.contenders.limit_words}")
        for (name, reason), works in self.reasons.items():
            places = sorted({f"{work.loss} {work.mode} {work.type}" for work in works})
            where = "" if len(works) > 3 else f" ({', '.join(places)})"
            print(f"left out: {name}: {reason}{where}")

    def write(self, path):
        """Whole or not at all."""
        head = dict(self.record, limit=self.contenders.limit_words)
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
        points = ",\n".join("    " + json.dumps(point) for point in self.points)
        part = path + ".part"
        with open(part, "w", encoding="utf-8") as file:
            file.write("{\n" + ",\n".join(lines) + ',\n  "points": [\n' + points + "\n  ]\n}\n")
        os.replace(part, path)

    def plot(self, tool, path, record):
        """Draws with the tool what was written to `record`, or to a file that is gone afterwards."""
        with tempfile.TemporaryDirectory() as folder:
            if not record:
                record = os.path.join(folder, "compare.json")
                self.write(record)
            subprocess.run([tool, "plot", record, "--out", path], check=True)
