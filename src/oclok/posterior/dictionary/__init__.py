"""The posterior of a dictionary: exact decisions at a bounded cost.

`posterior.py` switches between models; `nystrom.py` and `vecchia.py` are two of them.
"""

from oclok.posterior.dictionary.posterior import DictionaryPosterior

__all__ = ["DictionaryPosterior"]
