from typing import Any

from . import functional as functional
from . import linear as linear
from . import nn as nn
from .functional import *
from .linear import *
from .patch import patch_torch as patch_torch

__version__: str

def losses() -> list[dict[str, Any]]: ...
def row_losses() -> list[dict[str, Any]]: ...
def machine() -> dict[str, Any]: ...
