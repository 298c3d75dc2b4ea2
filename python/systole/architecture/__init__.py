"""Networks for a machine: a supernet and a search of it. See docs/architecture-search.md."""

from systole.architecture.search import Candidate, Evaluator, Search, search
from systole.architecture.supernet import Shape
from systole.architecture.training import Space, accuracy, load_digits, train

__all__ = [
    "Candidate",
    "Evaluator",
    "Search",
    "Shape",
    "Space",
    "accuracy",
    "load_digits",
    "search",
    "train",
]
