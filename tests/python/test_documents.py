# The Python code of the documents runs: each block on its own, in a namespace of its own, without a warning.
import pathlib
import re
import warnings

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = ["README.md", "docs/pytorch.md"]
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
    for module in ("torch", "numpy"):
        if f"import {module}" in block:
            pytest.importorskip(module)
    file = tmp_path / pathlib.Path(document).name  # a file of the block alone: torch.compile may read it as Python
    file.write_text(block)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", module="block")  # those of others are not the document's
        exec(compile(block, str(file), "exec"), {"__name__": "block"})
