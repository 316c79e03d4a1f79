"""What is here: libraries, processors, versions. A record is worth what it says of these."""

import datetime
import importlib
import importlib.metadata
import os
import platform
import re
import subprocess

LIBRARIES = ("torch", "triton", "numpy", "jax", "liger-kernel")


def installed(name):
    """A module, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def versions():
    import onepass

    found = {"onepass": onepass.__version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def output_of(*command):
    """What a program prints, or "" if it cannot run: no fact about a machine is worth a crash."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def processor():
    """Without what is no part of a name: "(R)", "CPU", and the clock rate after an "@"."""
    found = re.search(r"Model name:\s*(.+)", output_of("lscpu"))
    name = found[1] if found else platform.machine()
    return re.sub(r"\((R|TM)\)|\s+(CPU|Processor)\b|\s*@.*", "", name, flags=re.IGNORECASE).strip()


def slug(name):
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def gpu_problem(torch):
    """Why no GPU can be measured; "" if one can."""
    import onepass

    machine = onepass.machine()
    if not torch:
        return "PyTorch, which has its memory and its clock, is not installed"
    if not torch.cuda.is_available():
        return "PyTorch finds none"
    return "" if machine["gpu_count"] else machine["gpu_reason"]


def facts(devices, torch, command):
    """What stands at the head of a record."""
    import onepass

    machine = onepass.machine()
    found = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "command": command,
             "hardware": {}, "versions": versions()}
    if "cpu" in devices:
        found["hardware"]["cpu"] = processor()
        found["threads"] = torch.get_num_threads() if torch else machine["threads"]
        found.update(cores=os.cpu_count(), instruction_set=machine["instruction_set"])
    if "cuda" in devices:
        found["hardware"]["cuda"] = torch.cuda.get_device_name()
        found["driver"] = output_of("nvidia-smi", "--id=0", "--query-gpu=driver_version", "--format=csv,noheader")
        found["clocks"] = output_of("nvidia-smi", "--id=0", "--format=csv,noheader",
                                    "--query-gpu=clocks.sm,clocks.mem,temperature.gpu,power.draw")
    return found


def file_name(record, sections):
    """nvidia-h200.json, intel-xeon-16.json (threads); a run of some sections does not replace the record of all."""
    hardware = record["hardware"]
    name = slug(hardware["cuda"]) if "cuda" in hardware else f"{slug(hardware['cpu'])}-{record['threads']}"
    return "-".join([name, *sections]) + ".json"
