"""The routes of the API, by concept."""

from spectralbai.service.routes import about, planning, studies, trials, views

ROUTERS = (about.router, planning.router, studies.router, trials.router, views.router)

__all__ = ["ROUTERS"]
