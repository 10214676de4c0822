"""Kinds of noise: which outcomes are allowed, what variance they have, how they are drawn, written and negated."""

from spectralbai.noise.binary import Binary
from spectralbai.noise.bounded import Bounded
from spectralbai.noise.contract import Divergence, Draw, Drawing, Noise, Pools
from spectralbai.noise.document import noise_from_dict, register_noise
from spectralbai.noise.sub_gaussian import SubGaussian

__all__ = [
    "Binary",
    "Bounded",
    "Divergence",
    "Draw",
    "Drawing",
    "Noise",
    "Pools",
    "SubGaussian",
    "noise_from_dict",
    "register_noise",
]
