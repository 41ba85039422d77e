from __future__ import annotations

import numpy as np
import pytest

from oclok.errors import NumericalError
from oclok.posterior.linalg import add_to_diagonal, factor, gram, std_of

RNG = np.random.default_rng(0)


def test_a_factor_times_its_transpose_is_the_matrix() -> None:
    A = RNG.standard_normal((6, 6))
    S = A @ A.T + 0.1 * np.eye(6)
    C = factor(S, 0.1)
    np.testing.assert_allclose(C, np.linalg.cholesky(S), atol=1e-12)


def test_what_rounding_made_indefinite_gets_the_least_eigenvalue_it_must_have() -> None:
    Q = np.linalg.qr(RNG.standard_normal((4, 4)))[0]
    S = (Q * [3.0, 2.0, 1.0, -1e-3]) @ Q.T
    C = factor(S, 0.01)
    assert (np.triu(C, 1) == 0).all() or np.abs(np.triu(C, 1)).max() < 1e-12
    assert (np.diag(C) > 0).all()
    expected = [0.01, 1.0, 2.0, 3.0]
    np.testing.assert_allclose(np.linalg.eigvalsh(C @ C.T), expected, atol=1e-12)


def test_a_matrix_that_is_not_finite_is_refused() -> None:
    with pytest.raises(NumericalError, match="not finite"):
        factor(np.array([[1.0, np.inf], [np.inf, 1.0]]), 1.0)


@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_a_diagonal_is_added_to_in_place_whatever_the_layout(order: str) -> None:
    whole = RNG.standard_normal((8, 8))
    A = whole[::2, ::2] if order == "strided" else np.array(whole, order=order)  # type: ignore[call-overload]
    before, values = A.copy(), RNG.random(len(A))
    add_to_diagonal(A, values)
    np.testing.assert_array_equal(A, before + np.diag(values))


def test_gram_and_std_are_numpys() -> None:
    V = RNG.standard_normal((5, 3))
    np.testing.assert_allclose(gram(V), V.T @ V, atol=1e-14)
    np.testing.assert_array_equal(std_of(np.array([4.0, -1e-17])), [2.0, 0.0])
