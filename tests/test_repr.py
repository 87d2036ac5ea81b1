"""The repr of objects: parameters before fit, important numbers after it."""

import pytest
from sklearn import config_context
from sklearn.ensemble import RandomForestClassifier

from leafkernel import ForestProximity
from leafkernel.tasks import (
    LeafPCA,
    PrototypeClassifier,
    ProximityHDBSCAN,
    ProximityKMedoids,
    ProximityOutlierDetector,
    ProximitySpectralClustering,
)


@pytest.fixture(scope="module")
def prox(iris):
    X, y = iris
    return ForestProximity(RandomForestClassifier(40, random_state=0)).fit(X, y)


def test_text(prox):
    first, second = repr(prox).split("\n")
    assert first == repr(ForestProximity(prox.forest))
    assert second == (
        f"fitted, training samples: 150, features: 4, trees: 40, leaves: {prox.n_leaves_} "
        f"({150 * 40 / prox.n_leaves_:.3g} samples per leaf), proximities: gap, not symmetric"
    )


def test_html(prox):
    for shown in (prox._repr_html_(), prox._repr_mimebundle_()["text/html"]):
        assert "<td" in shown
        assert "gap, not symmetric" in shown
    assert "gap, not symmetric" not in ForestProximity(prox.forest)._repr_html_()
    with config_context(display="text"):
        assert list(prox._repr_mimebundle_()) == ["text/plain"]


@pytest.mark.parametrize(
    ("task", "figure"),
    [
        (LeafPCA("kerf", n_components=4), "explained variance: "),
        (ProximityOutlierDetector(contamination=0.1), "outliers: 15 (scores above "),
        (ProximityKMedoids(n_clusters=3), "clusters: 3, "),
        (ProximitySpectralClustering(n_clusters=4), "clusters: 4, "),
        (ProximityHDBSCAN(), " rows in none)"),
        (PrototypeClassifier(), "prototypes: "),
    ],
)
def test_tasks_show_what_they_found(iris, task, figure):
    task.set_params(random_state=0)
    before = repr(task)
    assert figure not in before
    after = repr(task.fit(*iris))
    assert after.startswith(before + "\nfitted, ")
    assert figure in after
    assert "trees: 100" in after
