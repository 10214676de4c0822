"""The best of some options on some items, by running a command or a function on pairs of the two."""

from spectralbai.picking.call import pick
from spectralbai.picking.result import Pick
from spectralbai.picking.trials import Progress

__all__ = ["Pick", "Progress", "pick"]
