"""Every error that oclok raises on purpose. Catch a base to catch all below it."""
# Tested in tests/test_validation.py: errors are tested where they are raised.

from __future__ import annotations


class OclokError(Exception):
    """Base of all errors raised by oclok."""


class InputError(OclokError, ValueError):
    """An argument has a wrong type, shape or value."""


class ContextError(InputError):
    """Contexts are not a finite (M, D) array of the expected dimension."""


class OutcomeError(InputError):
    """Outcomes are not a finite array with one number per chosen base arm."""


class ColumnError(InputError):
    """A value does not fit its feature.

    Attributes:
        position: of the arm with that value; None if the column as a whole is wrong.
    """

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason)
        self.position = position


class FeedbackError(OclokError):
    """Outcomes belong to no pending decision, or were given before."""


class OracleError(OclokError):
    """The oracle does not fit the base arms of this round."""


class InfeasibleError(OracleError):
    """No feasible super arm exists."""


class UnresolvedError(OracleError):
    """The oracle's arguments name columns that have not been resolved yet."""


class NumericalError(OclokError, ArithmeticError):
    """A factorisation failed; the posterior is as it was before the call."""


class StorageError(OclokError):
    """A policy cannot be written to, or read from, a file."""


class DamagedLogError(StorageError):
    """Events of an agent are missing from the log."""


class DataError(OclokError):
    """A data set is missing or not in the expected format."""


class ExperimentError(OclokError):
    """An experiment cannot be run with these settings."""


class MissingExtraError(OclokError, ImportError):
    """A package that comes with an extra of oclok is not installed."""
