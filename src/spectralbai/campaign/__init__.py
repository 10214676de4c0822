"""Campaigns: many simulated runs of several policies on several instances, stored, resumed and compared."""

from spectralbai.campaign.definition import Campaign
from spectralbai.campaign.results import Results, RunRow
from spectralbai.campaign.runner import run_campaign
from spectralbai.campaign.summary import Cell, summarise

__all__ = ["Campaign", "Cell", "Results", "RunRow", "run_campaign", "summarise"]
