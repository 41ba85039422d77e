from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import pickle
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from oclok.errors import StorageError
from oclok.oracles import TopK
from oclok.persistence import OLDEST, VERSION, Persistent, digest_of, dumps, load, loads, save
from oclok.policies import OClokUCB, Policy
from oclok.posterior import DictionaryPosterior, ExactPosterior, SparsePosterior


class Box(Persistent):
    """Holds anything."""

    def __init__(self, content: Any) -> None:
        self.content = content


def there_and_back(content: Any) -> Any:
    box = loads(dumps(Box(content)))
    assert isinstance(box, Box)
    return box.content


def small_policy() -> OClokUCB:
    policy = OClokUCB(RBF(0.5), 0.1, TopK(1))
    policy.update(policy.select([[0.1], [0.9]]), [0.3])
    policy.select([[0.2], [0.8]])
    return policy


def rewritten(content: bytes, **entries: bytes) -> bytes:
    """Return the archive `content` with some entries replaced or added, sealed anew."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in dict.fromkeys([*old.namelist(), *entries]):
            if name != "digest":
                new.writestr(name, entries[name] if name in entries else old.read(name))
        new.writestr("digest", entries.get("digest", digest_of(new)))
    return buffer.getvalue()


def tree_of(content: bytes) -> Any:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return json.loads(archive.read("state.json"))


def with_tree(content: bytes, tree: Any) -> bytes:
    return rewritten(content, **{"state.json": json.dumps(tree).encode()})


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
        | st.just({"$array": "0.npy"})
    ),
    max_leaves=8,
)


@settings(max_examples=50, deadline=None)
@given(plain)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    assert repr(there_and_back(value)) == repr(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12.0)[::3],
        np.empty((0, 4)),
        np.array(3.5),
        np.array([np.nan, np.inf, -0.0]),
        np.arange(3, dtype=np.int8),
        np.array([True, False]),
        np.arange(3, dtype=np.float32),
    ],
    ids=str,
)
def test_arrays_come_back_bit_for_bit(array: np.ndarray) -> None:
    back = there_and_back(array)
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()
    assert back.flags.writeable
    strided = not (array.flags.c_contiguous or array.flags.f_contiguous)
    assert strided or back.flags.f_contiguous == array.flags.f_contiguous


@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"])
def test_generators_go_on_where_they_were(bits: str) -> None:
    generator = np.random.Generator(getattr(np.random, bits)(3))
    generator.integers(10, size=3, dtype=np.int32)
    back = there_and_back(generator)
    np.testing.assert_array_equal(back.random(20), generator.random(20))


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(0.5),
        RBF([0.5, 1.0], length_scale_bounds="fixed"),
        Matern(0.3, (1e-3, 10.0), nu=np.inf),
        Matern(np.array([0.3, 0.4]), nu=1.5),
        DotProduct(0.5) ** 2,
        Exponentiation(RationalQuadratic(0.2, alpha=3.0), 3),
        ConstantKernel(2.0) * RBF(1.0) + WhiteKernel(0.1) * ExpSineSquared(),
    ],
    ids=str,
)
def test_kernels_come_back(kernel: Any) -> None:
    back = there_and_back(kernel)
    assert back == kernel
    assert repr(back.get_params()) == repr(kernel.get_params())
    X = np.random.default_rng(0).random((4, 2))
    np.testing.assert_array_equal(back(X), kernel(X))


def test_ufuncs_come_back() -> None:
    assert there_and_back(np.log1p) is np.log1p


class OwnKernel(RBF):
    """Not one of scikit-learn's."""


@pytest.mark.parametrize(
    "content",
    [
        object(),
        lambda: None,
        {1, 2},
        np.array([object()]),
        np.array(["a"]),
        1j,
        OwnKernel(1.0),
        b"bytes",
        RBF,
    ],
    ids=itertools.count(),
)
def test_what_cannot_be_saved_is_named_before_anything_is_written(
    content: Any, tmp_path: Path
) -> None:
    with pytest.raises(StorageError, match="cannot save"):
        save(Box(content), tmp_path / "box")
    assert list(tmp_path.iterdir()) == []


def test_equal_states_give_equal_bytes() -> None:
    assert dumps(small_policy()) == dumps(small_policy())
    policy = small_policy()
    assert dumps(loads(dumps(policy))) == dumps(policy)


@pytest.mark.parametrize(
    "policy",
    [
        OClokUCB(RBF(0.4), 0.1, TopK(3)),
        OClokUCB(posterior=SparsePosterior(RBF(0.4), 0.1, 8, seed=5), oracle=TopK(3)),
    ],
    ids=["exact", "sparse"],
)
def test_a_loaded_policy_makes_the_same_next_fifty_decisions(
    policy: OClokUCB, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        policy.update(policy.select(rng.random((15, 2))), rng.standard_normal(3))
    waiting = policy.select(rng.random((15, 2)))
    policy.save(tmp_path / "policy")
    loaded = Policy.load(tmp_path / "policy")
    for _ in range(50):
        contexts, outcomes = rng.random((15, 2)), rng.standard_normal(3)
        decision, again = policy.select(contexts), loaded.select(contexts)
        assert decision.to_json() == again.to_json()
        policy.update(decision, outcomes)
        loaded.update(again, outcomes)
    for one in (policy, loaded):
        one.update(waiting, [0.1, 0.2, 0.3])
    assert dumps(policy) == dumps(loaded)


def test_a_posterior_of_several_panels_comes_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y, x = rng.random((700, 2)), rng.standard_normal(700), rng.random((30, 2))
    posterior = ExactPosterior(RBF(0.3), 0.1)
    posterior.update(X[:600], y[:600])
    save(posterior, tmp_path / "posterior")
    loaded = load(tmp_path / "posterior")
    assert isinstance(loaded, ExactPosterior)
    for one in (posterior, loaded):
        one.update(X[600:], y[600:])
    np.testing.assert_array_equal([*posterior.predict(x)], [*loaded.predict(x)])


def test_every_truncated_file_is_refused() -> None:
    content = dumps(small_policy())
    for length in range(len(content)):
        with pytest.raises(StorageError):
            loads(content[:length])


def test_a_flipped_bit_is_refused_or_does_not_matter() -> None:
    content = dumps(small_policy())
    for position in range(0, len(content), 2):
        damaged = bytearray(content)
        damaged[position] ^= 1 << (position // 2 * 5 % 8)
        try:
            loaded = loads(bytes(damaged))
        except StorageError:
            continue
        assert dumps(loaded) == content


def test_a_file_that_was_altered_after_it_was_written_is_refused() -> None:
    content = dumps(small_policy())
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        seal = archive.read("digest")
    tree = tree_of(content)
    for path in filter(None, leaves(tree["content"])):
        altered = json.loads(json.dumps(tree))
        inner = altered["content"]
        for key in path[:-1]:
            inner = inner[key]
        if isinstance(inner, dict):
            del inner[path[-1]]
        else:
            inner[path[-1]] = "other"
        text = json.dumps(altered).encode()
        with pytest.raises(StorageError):
            loads(rewritten(content, **{"state.json": text, "digest": seal}))


@pytest.mark.parametrize("make", [ExactPosterior, DictionaryPosterior])
def test_a_posterior_that_is_not_finite_is_refused(make: Any) -> None:
    posterior = make(RBF(1.0), 0.1)
    posterior.update(np.random.default_rng(0).random((30, 2)), np.ones(30))
    content = dumps(posterior)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        arrays = {n: np.load(archive.open(n)) for n in archive.namelist() if n.endswith(".npy")}
    for name, array in arrays.items():
        if array.dtype.kind == "f" and array.size:
            npy = io.BytesIO()
            np.save(npy, np.full_like(array, np.nan))
            with pytest.raises(StorageError, match="not finite"):
                loads(rewritten(content, **{name: npy.getvalue()}))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(StorageError):
        loads(content)


def zip_of(**entries: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in entries.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def npz() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, state=np.arange(3))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        npz(),
        pickle.dumps({"format": "oclok"}),
        b'{"format": "oclok", "version": 1}',
        zip_of(),
        zip_of(**{"state.json": "{}"}),
        zip_of(**{"state.json": "[]"}),
        zip_of(**{"state.json": "not json"}),
        zip_of(**{"state.json": '{"format": "other", "version": 1, "content": {}}'}),
        zip_of(**{"state.json": '{"format": "oclok", "version": 1}'}),
        zip_of(**{"state.json": '{"format": "oclok", "version": 1, "content": 3}'}),
        zip_of(**{"state.json": '{"format": "oclok", "version": "1", "content": {}}'}),
        zip_of(**{"state.json": '{"format": "oclok", "version": true, "content": {}}'}),
        zip_of(**{"state.json": '{"format": "oclok", "version": 0, "content": {}}'}),
        zip_of(**{"state.json": "[" * 100_000}),
    ],
    ids=itertools.count(),
)
def test_foreign_files_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(StorageError, match="foreign"):
        Policy.load(path)


def test_a_file_of_a_newer_version_asks_for_an_upgrade() -> None:
    content = dumps(small_policy())
    tree = tree_of(content)
    tree["version"] = VERSION + 1
    with pytest.raises(StorageError, match=r"newer oclok.*upgrade"):
        loads(with_tree(content, tree))


def test_a_file_of_a_version_before_the_first_is_refused() -> None:
    content = dumps(small_policy())
    tree = tree_of(content)
    tree["version"] = OLDEST - 1
    with pytest.raises(StorageError, match=r"before oclok was released.*version 2"):
        loads(with_tree(content, tree))


@pytest.mark.parametrize(
    "value",
    [
        {"$object": "NoSuchClass", "state": {}},
        {"$object": "os.system", "state": {}},
        {"$object": "Policy", "state": {}},
        {"$object": "OClokUCB", "state": {}},
        {"$object": "OClokUCB", "state": []},
        {"$object": ["OClokUCB"], "state": {}},
        {"$object": "GrowingCholesky", "state": {"left": [3], "corner": [], "size": 1}},
        {"$kernel": "NoSuchKernel", "params": {}},
        {"$kernel": "clone", "params": {}},
        {"$kernel": "Kernel", "params": {}},
        {"$kernel": "RBF", "params": {"no": 1}},
        {"$estimator": "os.system", "params": {}},
        {"$dict": [[[], 1]]},
        {"$ufunc": "load"},
        {"$ufunc": ["add"]},
        {"$ufunc": "frompyfunc"},
        {"$generator": {"bit_generator": "RandomState"}},
        {"$generator": {"bit_generator": "PCG64"}},
        {"$generator": {"bit_generator": "PCG64", "state": {"state": -1, "inc": 2**200}}},
        {"$generator": []},
        {"$array": "../../etc/passwd"},
        {"$array": "state.json"},
        {"$array": 0},
        {"$float": "one"},
        {"$float": []},
        {"$tuple": 3},
        {"$nonsense": 3},
    ],
    ids=lambda value: json.dumps(value)[:50],
)
def test_a_tree_that_says_nonsense_is_refused(value: Any) -> None:
    content = dumps(Box([1]))
    tree = tree_of(content)
    tree["content"] = {**tree["content"], "state": {"content": value}}
    with pytest.raises(StorageError):
        loads(with_tree(content, tree))


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    return [path, *(leaf for key, child in children for leaf in leaves(child, (*path, key)))]


@pytest.mark.parametrize("wrong", [None, -1, "text", [], {}, 1e300])
def test_no_wrong_value_in_the_tree_escapes_as_another_error(wrong: Any) -> None:
    """A file that was edited by hand may load, or be refused; nothing else may happen."""
    content = dumps(small_policy())
    for path in leaves(tree_of(content))[1:]:
        tree = tree_of(content)
        parent = tree
        for key in path[:-1]:
            parent = parent[key]
        parent[path[-1]] = wrong
        with contextlib.suppress(StorageError):
            loads(with_tree(content, tree))


class Bomb:
    """Unpickling it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (open, (str(self.path), "w"))


def test_a_pickle_in_an_array_is_refused_and_not_executed(tmp_path: Path) -> None:
    fuse = tmp_path / "exploded"
    npy = io.BytesIO()
    np.save(npy, np.array([Bomb(fuse)], dtype=object), allow_pickle=True)
    content = dumps(Box(np.arange(3.0)))
    for bomb in (npy.getvalue(), pickle.dumps(Bomb(fuse))):
        with pytest.raises(StorageError):
            loads(rewritten(content, **{"0.npy": bomb}))
        with pytest.raises(StorageError):
            loads(rewritten(content, **{"state.json": bomb}))
        with pytest.raises(StorageError):
            loads(bomb)
    assert not fuse.exists()


def test_an_array_that_claims_to_be_huge_is_refused() -> None:
    npy = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        npy, {"descr": "<f8", "fortran_order": False, "shape": (2**45,)}
    )
    content = rewritten(dumps(Box(np.arange(3.0))), **{"0.npy": npy.getvalue()})
    with pytest.raises(StorageError):
        loads(content)


def test_a_missing_file_and_a_missing_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot read.*nothing"):
        Policy.load(tmp_path / "nothing")
    with pytest.raises(StorageError, match=r"cannot write.*folder"):
        small_policy().save(tmp_path / "folder" / "policy")
    with pytest.raises(StorageError, match="cannot write"):
        small_policy().save(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("function", ["os.replace", "os.fsync", "builtins.open"])
@pytest.mark.parametrize("reason", [OSError("disk full"), KeyboardInterrupt()])
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: Any, function: str, reason: BaseException
) -> None:
    path = tmp_path / "policy"
    policy = small_policy()
    policy.save(path)
    before = path.read_bytes()
    policy.select([[0.1], [0.2]])

    def fail(*args: Any, **kwargs: Any) -> None:
        raise reason

    monkeypatch.setattr(function, fail)
    with pytest.raises(StorageError if isinstance(reason, OSError) else KeyboardInterrupt):
        policy.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_saved_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"")
    small_policy().save(tmp_path / "policy")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("other", "policy")]
    assert modes[0] == modes[1]


KILLED_WHILE_SAVING = """
import os, signal, sys, time
import numpy as np
from sklearn.gaussian_process.kernels import RBF
from oclok import OClokUCB, Policy
from oclok.oracles import TopK

path = sys.argv[1]
rng = np.random.default_rng(0)
policy = OClokUCB(RBF(0.5), 0.1, TopK(1))
policy.observe(rng.random((150, 2)), np.zeros(150))
for _ in range(25):
    out, into = os.pipe()
    child = os.fork()
    while child == 0:
        policy.discard(policy.select([[0.1, 0.2]]))
        policy.save(path)
        os.write(into, b"%d " % policy.round)
    os.close(into)
    saved = os.read(out, 1)
    time.sleep(rng.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(out, "rb") as pipe:
        last = int((saved + pipe.read()).split()[-1])
    policy = Policy.load(path)
    assert policy.round in (last, last + 1), (policy.round, last)
print(policy.round)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
def test_a_process_killed_while_it_saves_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_SAVING, str(tmp_path / "policy")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) >= 25


def test_users_classes_are_found_by_module_and_name() -> None:
    assert isinstance(loads(dumps(Box(3))), Box)
    content = dumps(Box(3))
    tree = tree_of(content)
    assert tree["content"]["$object"].endswith(".Box")
    tree["content"]["$object"] = "elsewhere.Box"
    with pytest.raises(StorageError, match=r"elsewhere\.Box"):
        loads(with_tree(content, tree))


def test_a_posterior_with_a_users_own_kernel_works_but_cannot_be_saved() -> None:
    with pytest.raises(StorageError, match="OwnKernel"):
        dumps(ExactPosterior(OwnKernel(1.0), 0.1))
