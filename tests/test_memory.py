"""Forecasts, and errors before memory is allocated."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity
from leafkernel._memory import _cgroup_available, available_bytes, format_bytes, parse_bytes
from leafkernel.engines import TooManyEntriesError, find_engine
from leafkernel.forecast import csr_bytes, most_nonzeros


@pytest.fixture(scope="module")
def leaves():
    return np.random.default_rng(0).integers(0, 40, (5000, 20))


def test_a_forecast_knows_the_bitmaps_of_large_leaves():
    leaves = np.random.default_rng(0).integers(0, 3, (2000, 30))
    prox = ForestProximity.from_leaves(leaves)
    forecast = prox.forecast()
    assert forecast.bitmap_bytes == 90 * 32 * 8  # a bit for each sample, in whole vectors
    assert "22.5 kB for bitmaps" in str(forecast)
    assert not replace(forecast, limit=forecast.bytes).fits  # they must fit together with P
    small = np.random.default_rng(0).integers(0, 40, (2000, 30))  # with weights, lists are faster
    assert "bitmaps" not in str(ForestProximity.from_leaves(small, weight_scheme="kerf").forecast())
    deep = ForestProximity.from_leaves(np.arange(2000)[:, None] // 4)
    assert deep.forecast().bitmap_bytes == 0


def test_forecast_is_exact_in_collisions_and_near_in_nonzeros(leaves):
    prox = ForestProximity.from_leaves(leaves)
    P = prox.proximity()
    forecast = prox.forecast()
    counts = np.stack([np.bincount(column, minlength=40) for column in leaves.T])
    assert forecast.shape == (5000, 5000)
    assert forecast.collisions == (counts.astype(np.int64) ** 2).sum()
    assert forecast.nonzeros_at_most >= P.nnz
    assert abs(forecast.nonzeros - P.nnz) <= 2 * forecast.nonzeros_error
    assert forecast.nonzeros_error < 0.05 * P.nnz
    size = P.data.nbytes + P.indices.nbytes + P.indptr.nbytes
    assert forecast.bytes == pytest.approx(size, rel=0.1)
    assert forecast.bytes >= 8 * (forecast.nonzeros + forecast.nonzeros_error)
    assert 0 < forecast.seconds < 600
    assert forecast.fits
    assert "proximity() fits" in str(forecast)


def test_forecast_of_uneven_rows(rng):
    """Half of the rows share one leaf. The others have one leaf each."""
    leaves = np.where(np.arange(4000) < 2000, 0, np.arange(4000))[:, None].repeat(3, axis=1)
    prox = ForestProximity.from_leaves(leaves)
    forecast = prox.forecast()
    assert abs(forecast.nonzeros - prox.proximity().nnz) <= 2 * forecast.nonzeros_error + 1


def test_forecast_with_a_budget_for_few_rows(leaves, monkeypatch):
    prox = ForestProximity.from_leaves(leaves)
    monkeypatch.setattr("leafkernel.forecast._SAMPLED_COLLISIONS", 1000)
    forecast = prox.forecast()
    assert 0 < forecast.nonzeros <= forecast.nonzeros_at_most
    assert forecast.nonzeros_error > 0


def test_proximity_past_the_limit_is_refused_and_the_rest_works(leaves):
    prox = ForestProximity.from_leaves(leaves, max_memory="1MB")
    with pytest.raises(MemoryError) as error:
        prox.proximity()
    message = str(error.value)
    for word in ("kneighbors()", "operator()", "iter_proximity()", "max_memory", "1.0 MB"):
        assert word in message
    assert not prox.forecast().fits
    assert "kneighbors()" in str(prox.forecast())
    assert prox.proximity(leaves[:5]).shape == (5, 5000)  # this fits
    assert prox.kneighbors(n_neighbors=3)[1].shape == (5000, 3)
    assert (prox.operator() @ np.ones(5000)).shape == (5000,)
    assert sum(block.shape[0] for _, block in prox.iter_proximity()) == 5000


def test_without_max_memory_the_message_does_not_name_it(leaves, monkeypatch):
    monkeypatch.setattr("leafkernel.proximity.available_bytes", lambda: 2**20)
    prox = ForestProximity.from_leaves(leaves)
    with pytest.raises(MemoryError, match=r"more than the available memory \(1.0 MB\)") as error:
        prox.proximity()
    assert "max_memory" not in str(error.value)
    assert "max_memory" not in prox.forecast().advice


def test_refusal_is_by_the_estimate_not_by_the_bound(leaves):
    """Collisions bound the nonzeros far from below: a matrix that fits must not be refused."""
    prox = ForestProximity.from_leaves(leaves)
    P = prox.proximity()
    size = P.data.nbytes + P.indices.nbytes + P.indptr.nbytes
    assert prox.forecast().nonzeros_at_most * 8 > 1.2 * size
    prox.set_params(max_memory=int(1.1 * size))
    assert prox.proximity().nnz == P.nnz
    prox.set_params(max_memory=int(0.9 * size))
    with pytest.raises(MemoryError):
        prox.proximity()


def test_the_limit_holds_where_the_forecast_is_wrong():
    """Rows that the forecast's fixed sample misses have far more nonzeros than those in it."""
    rng = np.random.default_rng(0)
    leaves = rng.integers(1, 61, (6000, 20))
    sampled = np.random.default_rng(0).permutation(6000)[:512]
    leaves[sampled] = 0
    prox = ForestProximity.from_leaves(leaves, max_memory="20MB", n_jobs=2)
    assert prox.forecast().fits
    with pytest.raises(MemoryError, match=r"more than max_memory \(20.0 MB\)\. Use kneighbors\(\)"):
        prox.proximity()
    assert prox.set_params(max_memory="200MB").proximity().data.nbytes > 20 * 2**20


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_an_engine_stops_at_the_entries_that_are_allowed(rng, engine):
    prox = ForestProximity.from_leaves(rng.integers(0, 9, (200, 5)))
    product = prox.kernel_.training_product()
    nnz = prox.proximity().nnz
    for n_threads in (1, 3):
        compute = find_engine(engine, n_threads=n_threads).rows
        assert compute(product, most_entries=nnz).nnz == nnz
        for most in (0, 1, nnz // 2, nnz - 1):
            with pytest.raises(TooManyEntriesError):
                compute(product, most_entries=most)


@given(
    n_rows=st.integers(0, 10**6),
    itemsize=st.sampled_from([4, 8]),
    limit=st.integers(1, 10**12),
)
def test_the_largest_matrix_within_a_limit(n_rows, itemsize, limit):
    most = most_nonzeros(n_rows, itemsize, limit)
    assert csr_bytes(n_rows, most, itemsize) <= limit or most == 0
    assert csr_bytes(n_rows, most + 1, itemsize) > limit


def test_default_limit_is_what_is_free(iris):
    X, y = iris
    prox = ForestProximity(RandomForestClassifier(30, random_state=0)).fit(X, y)
    limit = prox.forecast().limit
    assert limit == pytest.approx(available_bytes(), rel=0.2)
    assert limit > 2**20


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100", 100),
        ("1kB", 1024),
        ("1.5 GB", 3 * 2**29),
        ("2GiB", 2**31),
        ("3t", 3 * 2**40),
        (12345, 12345),
        (1e9, 10**9),
        (np.int64(77), 77),
        (float("inf"), sys.maxsize),
    ],
)
def test_sizes_are_read(text, expected):
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "GB", "1.2.3MB", ".", "1 XB", "-1GB", "0", "0GB"])
def test_bad_sizes_are_refused(text):
    with pytest.raises(ValueError, match="max_memory must be"):
        parse_bytes(text)


def test_the_limits_of_a_container_count(monkeypatch, tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 150\nactive_file 40\n")
    monkeypatch.setattr("leafkernel._memory.Path", lambda path: tmp_path / Path(path).name)
    assert _cgroup_available() == 1000 - 700 + 150
    (tmp_path / "memory.max").write_text("max\n")
    assert _cgroup_available() == sys.maxsize


def test_sizes_are_written():
    assert format_bytes(10) == "10 bytes"
    assert format_bytes(3 * 2**29) == "1.5 GB"
