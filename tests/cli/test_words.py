# What the tool says of itself: help, the losses, the machine, the version; and that help, manual page, completion and
# docs/tool.md know the same options.
import os
import re
import shutil
import subprocess

import numpy as np
import oracle
import pytest

from expected import INFO, LOSSES, ROW_LOSSES, VECTOR_LOSSES, file_names, numbers, operand_names, own_options
from test_completion import complete

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), os.pardir, os.pardir))
COMMANDS = ["list", "info", "merge"]
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9_-]*")
FILES = "A loss of files"


def text_of(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def section(title):
    """A section of docs/tool.md."""
    return text_of("docs", "tool.md").split(f"## {title}\n")[1].split("\n## ")[0]


def table_options(title):
    """The options that the table of a section of docs/tool.md lists, in the first cells of its rows."""
    rows = [line for line in section(title).splitlines() if line.startswith("| `--")]
    cells = [row if "--grad-" in row else row.split("|")[1] for row in rows]  # whose other names are in the second cell
    return {option for cell in cells for option in OPTION.findall(cell)}


def shared_options():
    return table_options(FILES) - {option for loss in INFO for option in own_options(loss)}


def documented(command):
    """All options of a command, by docs/tool.md."""
    if command in INFO:
        return shared_options() | own_options(command)
    return {"--json", "--help"} | ({"--hex"} if command == "merge" else set())


def help_of(folder, *command):
    result = folder.run(*command, "--help")
    assert result.status == 0 and result.err == "", result
    assert result.out.endswith("\n") and "\t" not in result.out
    assert all(len(line) <= 120 for line in result.out.splitlines()), "lines that fit a terminal"
    return result.out


# ------------------------------------------------------------------- help --


def test_help(folder):
    text = help_of(folder)
    assert "onepass LOSS PREDICTION TARGET" in text
    for word in [*COMMANDS, *INFO, "--help", "--version"]:
        assert word in text, word


@pytest.mark.parametrize("loss", INFO)
def test_the_help_of_a_loss(folder, loss):
    text, info = help_of(folder, loss), INFO[loss]
    assert f"usage: onepass {loss} {' '.join(file_names(loss)).upper()} [OPTION...]\n" in text
    unwrapped = re.sub(r"\s+", " ", text)
    assert info["value"] in unwrapped and info["slope"] in unwrapped and info["meaning"] in unwrapped
    for symbol, name in zip("ptv", operand_names(loss) if loss in LOSSES else ""):
        assert f"{symbol} the {name}" in text
    for parameter in info["parameters"]:
        assert f"--{parameter['name'].replace('_', '-')} X" in text and parameter["meaning"] in unwrapped
        assert f"({parameter['default']:g} unless said otherwise" in unwrapped
    for of_elements, of_rows in (("multiplies each element's loss", "multiplies each row's value"),
                                 ("elements where it is 0", "rows where it is 0"),
                                 ("writes the loss of each element", "writes the value of each row")):
        assert (of_elements in unwrapped, of_rows in unwrapped) == (loss in LOSSES, loss not in LOSSES)


@pytest.mark.parametrize("command", INFO)
def test_the_help_has_every_documented_option_and_no_other(folder, command):
    found = set(OPTION.findall(help_of(folder, command)))
    assert found - {"--version"} == documented(command)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_other_commands(folder, command):
    found = set(OPTION.findall(help_of(folder, command))) - {"--part", "--state"}  # of the losses that are merged
    assert found <= documented(command) and found >= documented(command) - {"--help"}


def test_help_wins_over_everything_else(folder):
    assert folder.run("mse", "missing.npy", "--help").out == help_of(folder, "mse")
    for word in ("help", "--help", "-h"):
        for command in ("mse", "list", "info", "merge"):
            assert folder.run(word, command) == folder.run(command, "--help")
        assert folder.run(word) == folder.run("--help")
        folder.refuse(word, "mes", says='did you mean "mse"?')


@pytest.mark.parametrize("loss, name, range", [("multi_margin", "p", "1 or 2"), ("pairwise_distance", "p", "1 or 2"),
                                               ("triplet_margin", "p", "1 or 2"), ("triplet_margin", "swap", "0 or 1"),
                                               ("generalized_cross_entropy", "q", "from 0 to 1")])
def test_the_range_of_a_parameter(folder, loss, name, range):
    """Of one that is either of two numbers those, and once."""
    text = help_of(folder, loss).split(f"\n  --{name} X")[1].split("\n  --")[0]
    assert re.findall(r"\S+ or \d|from \S+ to \d", re.sub(r"\s+", " ", text)) == [range]


#: What some parameters may be, of which the limits do not say all.
OF_SOME_NUMBERS = {"ignore_index": "a whole number from -2^53 to 2^53", "softcap": "0, or 1e-30 to 1e+30"}


@pytest.mark.parametrize("loss", [loss for loss in INFO if INFO[loss]["parameters"]])
def test_the_limits_of_parameters(folder, loss):
    text = help_of(folder, loss)
    for parameter in INFO[loss]["parameters"]:
        about = re.sub(r"\s+", " ", text.split(f"\n  --{parameter['name'].replace('_', '-')} X")[1].split("\n  --")[0])
        if parameter["name"] in OF_SOME_NUMBERS:
            assert f"; {OF_SOME_NUMBERS[parameter['name']]})" in about, about
            continue
        for limit in (parameter["minimum"], parameter["maximum"]):
            assert limit is None or re.search(rf"(?<![\d.]){re.escape(f'{limit:g}')}(?![\d.])", about), about


def test_usage(folder):
    result = folder.run()
    assert result.status == 2 and result.out == ""
    assert "onepass LOSS PREDICTION TARGET" in result.err and "--help" in result.err


def test_version(folder):
    header = text_of("include", "onepass.h")
    version = ".".join(re.search(rf"VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))
    assert folder.answer("--version") == f"onepass {version}"


# ------------------------------------------------------------ list and info --


def test_list(folder):
    found = {info["name"]: info for info in folder.json("list")}
    assert set(found) == set(oracle.LOSSES) | set(oracle.ROW_LOSSES) | set(oracle.VECTOR_LOSSES)
    assert found["mse"]["value"] == "x*x" and found["mse"]["slope"] == "2*x" and found["mse"]["parameters"] == []
    assert found["mse"]["operands"] == ["prediction", "target"]
    for name in LOSSES:
        info = found[name]
        assert len(info["operands"]) == len(oracle.LOSSES[name].domains)
        assert tuple(parameter["default"] for parameter in info["parameters"]) == oracle.LOSSES[name].defaults
        assert info["over_rows"] is False and info["log_sum_exp"] is False and info["target"] == "numbers"
    for name in ROW_LOSSES:
        info = found[name]
        assert info["operands"] == ["input", "target", "class_weight"] and info["over_rows"] is True
        assert {parameter["name"]: parameter["default"] for parameter in info["parameters"]} == oracle.ROW_LOSSES[name]
        probabilities = name == "cross_entropy_with_probabilities"
        assert info["target"] == ("class probabilities" if probabilities else "class indices")
    for name in VECTOR_LOSSES:
        info, (operands, defaults) = found[name], oracle.VECTOR_LOSSES[name]
        assert info["operands"] == operands and info["over_rows"] is False
        assert {parameter["name"]: parameter["default"] for parameter in info["parameters"]} == defaults
        assert info["target"] == {"cosine_embedding": "a number a vector", "multi_margin": "class indices",
                                  "multilabel_margin": "lists of class indices"}.get(name, "vectors")
    assert found["poly"]["log_sum_exp"] is True and found["nll"]["log_sum_exp"] is False
    (beta,) = found["smooth_l1"]["parameters"]
    assert beta["default"] == 1 and beta["minimum"] == 0 and beta["minimum_excluded"] is False
    assert beta["maximum"] is None and beta["maximum_excluded"] is False


def test_list_as_text(folder):
    """By operands; every loss has a row with its parameters and its meaning, and the columns line up."""
    result = folder.run("list")
    assert result.status == 0 and result.err == ""
    assert all(len(line) <= 120 for line in result.out.splitlines())
    columns, row_columns = set(), set()
    for name in LOSSES:
        info = INFO[name]
        head, after = result.out.split(f"\n  {name} ")
        assert head.rsplit("onepass LOSS ")[-1].split("\n")[0] == " ".join(info["operands"]).upper()
        row = f"  {name} {after}"
        parameters = ", ".join(f"{parameter['name']}={parameter['default']:g}" for parameter in info["parameters"])
        columns.add(re.match(rf"  {name} +{re.escape(parameters)} +", row).end())
        assert info["meaning"] in re.sub(r"\s+", " ", row)
    vector_columns = set()
    for name in [*ROW_LOSSES, *VECTOR_LOSSES]:
        head, after = result.out.split(f"\n  {name} ")
        kind = "over rows" if name in ROW_LOSSES else "of vectors"
        assert head.rsplit("onepass LOSS ")[-1].split("\n")[0] == f"{' '.join(file_names(name)).upper()}, {kind}"
        meaning, parameters = after.split("\n")[:2]
        assert meaning.strip() == INFO[name]["meaning"]
        of_kind = row_columns if name in ROW_LOSSES else vector_columns
        of_kind.add(len(f"  {name} {meaning}") - len(meaning.strip()))
        if INFO[name]["parameters"]:
            assert parameters.strip() == ", ".join(f"{p['name']}={p['default']:g}" for p in INFO[name]["parameters"])
            of_kind.add(len(parameters) - len(parameters.lstrip()))
    assert not any(line.isspace() for line in result.out.splitlines())
    assert len(columns) == len(row_columns) == len(vector_columns) == 1


def test_info(folder):
    reply = folder.json("info")
    assert reply["version"] == folder.answer("--version").split()[1]
    assert reply["cores"] >= 1 and reply["cpu"] and (reply["gpus"] > 0) != bool(reply["gpu_reason"])
    assert reply["threads"] >= 1 and reply["instruction_set"] in reply["instruction_sets"]
    text = folder.run("info")
    assert text.status == 0 and text.err == ""
    assert reply["instruction_set"] in text.out and str(reply["threads"]) in text.out
    assert "GPU" in text.out and " - " not in text.out
    of_cuda = re.search(r"^CUDA +(.*), (.*)$", text.out, re.MULTILINE)
    for words, key, name in ((of_cuda[1], "driver_cuda", "driver"), (of_cuda[2], "kernels_cuda", "kernels")):
        assert words.startswith(f"no {name}") if reply[key] == "-" else words == f"{reply[key]} (the {name})"


def test_info_of_another_instruction_set(folder):
    result = folder.run("info", env={"ONEPASS_ISA": "abacus"})
    assert result.status in (1, 2) and "abacus" in result.err and result.err.startswith("onepass: ")


@pytest.mark.parametrize("command", ["list", "info"])
def test_what_list_and_info_do_not_take(folder, command):
    folder.refuse(command, "extra.npy", says="extra.npy")
    folder.refuse(command, "--grad", "g.npy", says="--grad")
    folder.refuse(command, "--jsn", says="--jsn")


# -------------------------------------------------- manual page, completion --


def manual():
    """The manual page without its fonts, and with plain dashes."""
    return re.sub(r"\\f[BIRP]", " ", text_of("cli", "onepass.1")).replace("\\-", "-")


def test_the_manual_page_has_every_option_and_no_other():
    wanted = table_options(FILES) | {"--version", "--help"}
    assert set(OPTION.findall(manual())) == wanted


def test_the_manual_page_has_every_command_and_key():
    text = manual()
    for word in [*COMMANDS, "mse", "huber"]:
        assert re.search(rf"^\.BR? (onepass )?{word}\b", text, re.MULTILINE), word
    for key in re.findall(r"`(\w+)`", section(FILES).split("**JSON**")[1].split("\n\n")[0]):
        assert re.search(rf"\b{key}\b", text), key


def test_the_manual_page_is_well_formed():
    page = os.path.join(ROOT, "cli", "onepass.1")
    if shutil.which("mandoc"):
        command = ["mandoc", "-T", "lint", page]
    elif shutil.which("groff"):
        command = ["groff", "-man", "-ww", "-Tutf8", "-z", page]
    else:
        pytest.skip("neither mandoc nor groff is here")
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout == done.stderr == ""


@pytest.mark.parametrize("command", [*INFO, *COMMANDS])
def test_the_completion_has_every_option_and_no_other(folder, command):
    assert set(complete(folder, command, "--")) == documented(command)


def test_the_document_has_the_options_of_every_loss():
    assert {option for loss in INFO for option in own_options(loss)} <= table_options(FILES)


# --------------------------------------------------------------- the document --


def test_the_examples_of_the_document(folder):
    """The commands at the top of docs/tool.md, with files of those names."""
    folder.save("pred.npy", numbers(1, (4, 5))), folder.save("target.npy", numbers(2, (4, 5)))
    folder.save("mask.npy", np.eye(4, 5) > 0), folder.save("variance.npy", np.ones(5))
    for name in ("anchor", "positive", "negative"):
        folder.save(f"{name}.npy", numbers(5, (4, 5)))
    folder.save("logits.npy", numbers(4, (4, 5))), folder.save("labels.npy", np.arange(4))
    folder.save_tensors("run.safetensors", logits=numbers(3, (4, 5)), other=np.zeros(3))
    block = re.search(r"```sh\n(.*?)```", text_of("docs", "tool.md"), re.DOTALL)[1]
    commands = [line.split("#")[0].split() for line in block.splitlines()]
    assert len(commands) == 8
    for name, *arguments in commands:
        if arguments[0] not in INFO:
            continue
        assert name == "onepass"
        result = folder.run(*arguments)
        assert result.status == 0 and result.err == "", result
    assert folder.load("gradient.npy").shape == (4, 5)
