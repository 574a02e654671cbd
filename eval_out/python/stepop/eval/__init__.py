"""Reads the evaluation outputs that stepop writes.

>>> import stepop.eval
>>> e = stepop.eval.open("logs/2026-11-21T10-00-00_digits")
>>> e.outputs["logits"][10:20]
>>> e.labels["loss"].mean()
>>> e[e.worst("loss", 16)]
"""

from .arrays import Array, RaggedArray, TextArray
from .errors import EvalError, UnknownKeyError
from .evaluation import Evaluation, open
from .joined import Joined, Pair
from .series import Evaluations, Series, open_all
from .tables import Labels, Outputs, Scalars

__all__ = [
    "Array",
    "EvalError",
    "Evaluation",
    "Evaluations",
    "Joined",
    "Labels",
    "Outputs",
    "Pair",
    "RaggedArray",
    "Scalars",
    "Series",
    "TextArray",
    "UnknownKeyError",
    "open",
    "open_all",
]
