"""Concurrent fits and queries of one object, and forks during a computation."""

import copy
import os
import pickle
import signal
import sys
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity
from leafkernel._lazy import lazy

pytestmark = pytest.mark.filterwarnings("ignore:.*are in bag in every tree")

SECONDS = 3.0


@pytest.fixture(scope="module")
def cases():
    """Two training sets of different sizes and columns, each with a forest and its results."""
    rng = np.random.default_rng(0)
    found = []
    for n, n_features, n_trees in ((60, 3, 20), (900, 5, 30)):
        X = rng.normal(size=(n, n_features))
        y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
        forest = RandomForestClassifier(n_trees, random_state=0).fit(X, y)
        found.append((forest, X, y))
    return found


def refit(prox, case):
    forest, X, y = case
    prox.forest = forest
    return prox.fit(X, y)


@pytest.mark.parametrize("scheme", ["kerf", "gap", "oob"])
@pytest.mark.parametrize("with_X", [False, True])
def test_blocks_go_on_after_another_fit(cases, scheme, with_X):
    small, big = cases
    prox = ForestProximity(small[0], scheme).fit(*small[1:])
    X = small[1] if with_X else None
    expected = prox.proximity(X).toarray()
    blocks = prox.iter_proximity(X, block_size=7)
    found = [next(blocks)[1].toarray()]
    refit(prox, big)
    found += [block.toarray() for _, block in blocks]
    assert_array_equal(np.vstack(found), expected)


def test_operators_go_on_after_another_fit(cases):
    small, big = cases
    prox = ForestProximity(small[0], "kerf").fit(*small[1:])
    operator, ones = prox.operator(), np.ones(60)
    forward, back = prox.proximity() @ ones, prox.proximity().T @ ones
    refit(prox, big)
    np.testing.assert_allclose(operator @ ones, forward, rtol=1e-6)
    np.testing.assert_allclose(operator.T @ ones, back, rtol=1e-6)


def test_queries_while_other_threads_fit(cases):
    """A result is that of one fit or of the other, or an error that says so; never a mix."""
    prox = ForestProximity(cases[0][0], "gap", n_jobs=2)
    refit(prox, cases[0])
    alone = [refit(ForestProximity(None, "gap"), case) for case in cases]
    expected = [(each.kneighbors(n_neighbors=5)[1], each.proximity().sum(axis=1)) for each in alone]
    queries = [(X, each.kneighbors(X, 5)[1]) for (_, X, _), each in zip(cases, alone, strict=True)]
    stop, answers, wrong = threading.Event(), [], []

    def answer(X, neighbors):
        try:
            _, found = prox.kneighbors(X, 5)
        except ValueError as error:  # the other fit has other columns
            return "refused" if "features" in str(error) else error
        return "right" if np.array_equal(found, neighbors) else found

    def ask():
        while not stop.is_set():
            _, found = prox.kneighbors(n_neighbors=5)
            if not any(np.array_equal(found, neighbors) for neighbors, _ in expected):
                wrong.append(found)
            answers.extend(answer(X, neighbors) for X, neighbors in queries)
            blocks = prox.iter_proximity(block_size=16)
            found = np.concatenate([block.sum(axis=1) for _, block in blocks])
            if not any(np.array_equal(found, sums) for _, sums in expected):
                wrong.append(found)

    def fit():
        while not stop.is_set():
            for case in cases:
                refit(prox, case)

    threads = [threading.Thread(target=work) for work in (ask, ask, fit)]
    for thread in threads:
        thread.start()
    time.sleep(SECONDS)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:1]
    assert set(map(str, answers)) == {"right", "refused"}


def test_copies_while_other_threads_query(cases):
    """Data cached by a query must not change while a copy is made."""
    _, (forest, X, y) = cases
    stop, errors = threading.Event(), []

    def keep_asking(fits):
        try:
            while not stop.is_set():
                fits[-1].kneighbors(X[:2], 3)
                fits[-1].weighted_sums(y.astype(float))
        except Exception as error:
            errors.append(error)

    fits = [ForestProximity(forest, "kerf").fit(X, y)]
    threads = [threading.Thread(target=keep_asking, args=(fits,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(30):
            fits.append(ForestProximity(forest, "kerf").fit(X, y))  # it has computed nothing yet
            copy.deepcopy(fits[-1])
            pickle.loads(pickle.dumps(fits[-1]))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not errors


def test_a_lazy_attribute_is_computed_once_and_holds_no_lock():
    """functools.cached_property of Python 3.11 holds a lock of the class while it computes."""
    begun, go_on = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, *, waits):
            self.waits, self.calls = waits, 0

        @lazy
        def value(self):
            """Return something that takes a while."""
            self.calls += 1
            begun.set()
            if self.waits:
                assert go_on.wait(10)
            return 7

    slow = Slow(waits=True)
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    assert begun.wait(10)
    assert Slow(waits=False).value == 7  # waited here for the other object
    go_on.set()
    thread.join()
    assert slow.value == 7
    assert slow.calls == 1
    assert Slow.value.__doc__.startswith("Return something")


@pytest.mark.skipif(sys.platform != "linux", reason="a fork of threads is safe on Linux alone")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_children_of_a_fork_can_compute(cases):
    """A child that is forked while another thread computes must not wait for a lock forever."""
    _, X, y = cases[1]
    prox = ForestProximity(cases[1][0], "kerf").fit(X, y)
    stop = threading.Event()

    def compute():
        while not stop.is_set():
            prox.kneighbors(n_neighbors=3)

    threads = [threading.Thread(target=compute) for _ in range(2)]
    for thread in threads:
        thread.start()
    hung = 0
    try:
        for _ in range(40):
            child = os.fork()
            if child == 0:
                signal.alarm(20)  # ends a child that waits
                prox.kneighbors(X[:3], 3)
                prox.weighted_sums(np.ones(len(X)))
                os._exit(0)
            hung += os.waitpid(child, 0)[1] != 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert hung == 0
