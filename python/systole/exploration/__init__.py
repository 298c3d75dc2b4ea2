"""Design-space sweeps: many machines, one file of results. See docs/sweep.md."""

from systole.exploration.space import Space, load_space
from systole.exploration.store import Store
from systole.exploration.sweep import Sweep, sweep

__all__ = ["Space", "Store", "Sweep", "load_space", "sweep"]
