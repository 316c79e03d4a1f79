from typing import Any

from . import accumulator as accumulator
from . import distributed as distributed
from . import distributions as distributions
from . import functional as functional
from . import linear as linear
from . import margins as margins
from . import nn as nn
from . import regions as regions
from . import vectors as vectors
from .accumulator import *
from .distributions import *
from .functional import *
from .linear import *
from .margins import *
from .patch import patch_torch as patch_torch
from .regions import *
from .vectors import *

__version__: str

def losses() -> list[dict[str, Any]]: ...
def row_losses() -> list[dict[str, Any]]: ...
def vector_losses() -> list[dict[str, Any]]: ...
def machine() -> dict[str, Any]: ...
