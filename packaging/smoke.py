"""Check an installed leafkernel in a few seconds: exact results, errors and threads.

The last line is a digest of all results. It is the same for every build on one version of NumPy and
scikit-learn.
"""

import hashlib
import sys

import numpy as np
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import leafkernel
from leafkernel import ForestProximity
from leafkernel._native import LeafLists, compiler, simd

SCHEMES = ("gap", "uniform", "kerf", "oob", "oob_separable")


def main() -> None:
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(50, random_state=0).fit(X, y)
    digest = hashlib.sha256()
    for scheme in SCHEMES:
        fast = ForestProximity(forest, weight_scheme=scheme, n_jobs=2).fit(X, y)
        slow = ForestProximity(forest, weight_scheme=scheme, engine="reference").fit(X, y)
        found, expected = fast.proximity(), slow.proximity()
        np.testing.assert_allclose(found.toarray(), expected.toarray(), rtol=1e-5)
        similarity, rows = fast.kneighbors(X[:20], n_neighbors=5)
        for array in (found.data, found.indices, similarity, rows):
            digest.update(np.ascontiguousarray(array).tobytes())
    check_identity(forest, X, y)
    check_error_from_the_core()
    print(f"leafkernel {leafkernel.__version__}, Python {sys.version.split()[0]}", end=", ")
    print(f"NumPy {np.__version__}, {compiler()}, {simd()}: {digest.hexdigest()[:16]}")


def check_identity(forest: RandomForestClassifier, X: np.ndarray, y: np.ndarray) -> None:
    """Check that proximities times targets are the forest's prediction."""
    prox = ForestProximity(forest, dtype=np.float64).fit(X, y)
    shares = prox.weighted_average(np.eye(3)[y], X)
    np.testing.assert_allclose(shares, forest.predict_proba(X), atol=1e-12)


def check_error_from_the_core() -> None:
    """Check that an exception of the compiled module arrives as a Python exception."""
    members = np.zeros(2, dtype=np.int32)
    try:
        LeafLists(np.array([0, 5]), members, None, members)  # five members, of which two exist
    except ValueError:
        return
    raise AssertionError("the compiled module accepted lists that end past their arrays")


if __name__ == "__main__":
    main()
