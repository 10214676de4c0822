"""Sampling rules: they say which arms to pull next. Each file holds one kind of rule."""

from spectralbai.sampling.contract import Rng, SamplingRule, View
from spectralbai.sampling.fixed import FixedAllocation, UniformSampling
from spectralbai.sampling.graph_elimination import GraphEliminationSampling
from spectralbai.sampling.item_race import ItemRacing
from spectralbai.sampling.lucb import LUCBSampling
from spectralbai.sampling.optimal import TIED, OptimalTracking
from spectralbai.sampling.race import Racing
from spectralbai.sampling.top_two import TopTwoSampling
from spectralbai.sampling.tracking import Tracked, Tracker

__all__ = [
    "TIED",
    "FixedAllocation",
    "GraphEliminationSampling",
    "ItemRacing",
    "LUCBSampling",
    "OptimalTracking",
    "Racing",
    "Rng",
    "SamplingRule",
    "TopTwoSampling",
    "Tracked",
    "Tracker",
    "UniformSampling",
    "View",
]
