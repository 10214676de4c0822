"""A search for scikit-learn in place of GridSearchCV, with only the fits that the answer needs. Only this package needs
scikit-learn: pip install 'spectralbai[sklearn]'."""

try:
    from sklearn import __version__ as _version
except ModuleNotFoundError:
    _version = "0.0"
if tuple(map(int, _version.split(".")[:2])) < (1, 9):  # before, a search cannot choose the folds of a part of its fits
    from spectralbai.errors import SpectralBAIError

    raise SpectralBAIError(
        "RaceSearchCV needs scikit-learn 1.9 or later, which is not installed; run: pip install 'spectralbai[sklearn]'"
    )

from spectralbai.sklearn.search import RaceSearchCV

__all__ = ["RaceSearchCV"]
