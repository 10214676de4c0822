"""A search for scikit-learn in place of GridSearchCV, with only the fits that the answer needs. Only this package needs
scikit-learn: pip install 'spectralbai[sklearn]'."""

try:
    import sklearn as _sklearn  # noqa: F401
except ModuleNotFoundError:
    from spectralbai.errors import SpectralBAIError

    raise SpectralBAIError(
        "RaceSearchCV needs scikit-learn, which is not installed; run: pip install 'spectralbai[sklearn]'"
    ) from None

from spectralbai.sklearn.search import RaceSearchCV

__all__ = ["RaceSearchCV"]
