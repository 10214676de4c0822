"""The weights of the arms and the Laplacian, decomposed together; best responses and estimates are computed from it."""

from spectralbai.spectral.categories import Catalogue, Duels
from spectralbai.spectral.components import Components
from spectralbai.spectral.decomposition import Decomposition, Responses, decompose
from spectralbai.spectral.network import Network
from spectralbai.spectral.secular import Factors

__all__ = ["Catalogue", "Components", "Decomposition", "Duels", "Factors", "Network", "Responses", "decompose"]
