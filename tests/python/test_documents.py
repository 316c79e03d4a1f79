# The Python code of the documents runs: each block on its own, in a namespace of its own, without a warning. What they
# name exists, and their figures have one source.
import os
import pathlib
import pkgutil
import re
import shutil
import subprocess
import sys
import warnings

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = ["README.md", "docs/pytorch.md", "docs/language-models.md", "docs/scaling.md", "docs/vectors.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks():
    """Every block with the lines before it left empty, so that errors name the document's lines."""
    for document in DOCUMENTS:
        text = (ROOT / document).read_text()
        for found in BLOCK.finditer(text):
            before = text.count("\n", 0, found.start(1))
            yield pytest.param(document, "\n" * before + found[1], id=f"{document}:{before + 1}")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_document_shows_python(document):
    assert BLOCK.search((ROOT / document).read_text()), f"{document} has no Python code; it should show some"


@pytest.mark.parametrize("document, block", list(blocks()))
def test_block(document, block, tmp_path):
    for module in ("torch", "numpy", "dask.array", "mpi4py", "pyspark"):
        if re.search(rf"^(import|from) {re.escape(module)}\b", block, re.MULTILINE):
            pytest.importorskip(module)
    if "pyspark" in block and shutil.which("java") is None:
        pytest.skip("there is no java, which Spark runs in")
    file = tmp_path / pathlib.Path(document).name  # a file of the block alone: torch.compile may read it as Python
    file.write_text(block)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", module="block")  # those of others are not the document's
        exec(compile(block, str(file), "exec"), {"__name__": "block"})


def run_block_of_dask():
    """What it leaves."""
    block, = (one for one in BLOCK.findall((ROOT / "docs/scaling.md").read_text()) if "import dask" in one)
    names = {"__name__": "block"}
    exec(compile(block, "docs/scaling.md", "exec"), names)
    return names


def test_dask_sends_chunks_alone(monkeypatch):
    """A function that knew the arrays would be sent with all of them, to every worker."""
    dask, cloudpickle = pytest.importorskip("dask"), pytest.importorskip("cloudpickle")
    pytest.importorskip("dask.array")
    delayed, sizes = dask.delayed, []
    monkeypatch.setattr(dask, "delayed", lambda one: sizes.append(len(cloudpickle.dumps(one))) or delayed(one))
    run_block_of_dask()
    assert sizes and max(sizes) < 10_000  # an array of the block has 400,000 bytes


def test_dask_on_a_local_cluster(tmp_path):
    """Workers that are processes of their own, and the bits of one call."""
    pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    cluster = dict(n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path))
    with distributed.Client(**cluster) as client:
        names = run_block_of_dask()
        prediction, target = (names["da"].from_array(one, chunks=((30_001,) * 3 + (9_997,),)) for one in names["numbers"])
        assert names["loss_of"](prediction, target) == names["onepass"].mse_loss(*names["numbers"])
        assert len({os.getpid(), *client.run(os.getpid).values()}) == 3


def test_the_picture_of_the_ranks_is_fresh():
    subprocess.run([sys.executable, ROOT / "docs" / "make_scaling.py", "--check"], check=True)


ALL = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"),
              *(ROOT / "examples").rglob("*.py")])
NAMED = re.compile(r"(?<![\w./-])onepass\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
FILES = {"c", "h", "pc", "so", "a"}  # what ends the name of a file


@pytest.mark.parametrize("document", ALL, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_named_exists(document):
    pytest.importorskip("torch")  # which onepass.nn is of
    missing = []
    for name in sorted(set(NAMED.findall(document.read_text()))):
        try:
            if name not in FILES:
                pkgutil.resolve_name(f"onepass.{name}")  # a module of ours, too, whoever has imported it before
        except (AttributeError, ImportError):
            missing.append(f"onepass.{name}")
    assert missing == []


@pytest.mark.parametrize("document", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))],
                         ids=lambda path: path.name)
def test_a_training_steps_figures_stand_in_made_tables_alone(document):
    """bench/tables.py makes them of the records, and tests that they are fresh."""
    prose = re.sub(r"<!-- bench/tables\.py: \w+ -->.*?<!-- end -->", "", document.read_text(), flags=re.DOTALL)
    for paragraph in prose.split("\n\n"):
        if "training step of the loss" in paragraph:
            assert not re.search(r"\b0\.\d", paragraph), paragraph
