"""Campaigns: many simulated runs of several policies on several instances, stored, resumed and compared."""

from spectralbai.campaign.definition import Campaign
from spectralbai.campaign.results import Results, Row
from spectralbai.campaign.runner import run_campaign
from spectralbai.campaign.summary import Cell, summarise

__all__ = ["Campaign", "Cell", "Results", "Row", "run_campaign", "summarise"]
