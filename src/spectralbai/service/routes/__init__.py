"""The routes of the API, one file per subject."""

from spectralbai.service.routes import about, planning, studies, trials, views

ROUTERS = (about.router, planning.router, studies.router, trials.router, views.router)

__all__ = ["ROUTERS"]
