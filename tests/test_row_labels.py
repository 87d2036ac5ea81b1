"""Training rows are named by their labels in the data frame, in arguments and results."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from leafkernel import ForestProximity
from leafkernel._row_labels import label_text
from leafkernel.plots import plot_neighbors
from leafkernel.tasks import (
    ProximityClassifier,
    ProximityKMedoids,
    ProximityOutlierDetector,
    class_prototypes,
    explain_pair,
    explain_prediction,
    find_label_errors,
    medoids,
    outlier_scores,
    select_prototypes,
    trust_scores,
)


@pytest.fixture(scope="module")
def split():
    data = load_iris(as_frame=True)
    names = data.target.map(dict(enumerate(data.target_names)))
    return train_test_split(data.data, names, random_state=0)


@pytest.fixture(scope="module")
def prox(split):
    X, _, y, _ = split
    return ForestProximity(RandomForestClassifier(30, random_state=0)).fit(X, y)


def test_the_table_of_neighbors_has_the_labels_of_both_frames(prox, split):
    X, X_new, y, _ = split
    similarity, rows = prox.kneighbors(X_new, 4)
    frame = prox.neighbors_frame(X_new, 4)
    assert list(frame) == ["sample", "rank", "neighbor", "position", "proximity", "target"]
    assert_array_equal(frame["sample"], np.repeat(X_new.index, 4))
    assert_array_equal(frame["rank"], np.tile([1, 2, 3, 4], len(X_new)))
    assert_array_equal(frame["position"], rows.ravel())
    assert_array_equal(frame["neighbor"], X.index[rows.ravel()])
    assert_array_equal(frame["proximity"], similarity.ravel())
    assert_array_equal(frame["target"], y.loc[frame["neighbor"]])
    own = prox.neighbors_frame(n_neighbors=2)
    assert_array_equal(own["sample"].unique(), X.index)
    assert not (own["sample"] == own["neighbor"]).any()


def test_neighbors_without_any_proximity_are_left_out():
    leaves = [[0, 0], [0, 1], [2, 2]]
    frame = ForestProximity.from_leaves(leaves).neighbors_frame(n_neighbors=2)
    assert frame[["sample", "neighbor"]].to_numpy().tolist() == [[0, 1], [1, 0]]
    assert "target" not in frame


def test_results_carry_labels_and_positions(prox, split):
    X, X_new, y, _ = split
    told = explain_prediction(prox, X_new.iloc[0], n=3)
    assert_array_equal(told.row_labels, X.index[told.rows])
    assert_array_equal(told.to_frame().index, told.row_labels)
    assert_array_equal(told.to_frame()["position"], told.rows)
    assert str(told).splitlines()[3].split()[0] == str(X.index[told.rows[0]])

    wrong = y.copy()
    flipped = np.flatnonzero(y == "setosa")[:6]
    wrong.iloc[flipped] = "virginica"
    noisy = ForestProximity(RandomForestClassifier(100, random_state=0)).fit(X, wrong)
    errors = find_label_errors(noisy)
    assert len({*wrong.index[flipped]} & {*errors.row_labels}) >= 3
    assert_array_equal(errors.to_frame().index, X.index[errors.rows])
    assert f"row {errors.row_labels[0]}: " in str(errors)

    chosen = select_prototypes(prox, n_prototypes=2)
    assert_array_equal(chosen.row_labels, X.index[chosen.rows])
    assert_array_equal(y.loc[chosen.row_labels], chosen.labels)
    assert_array_equal(chosen.to_frame()["position"], chosen.rows)
    middles = class_prototypes(prox, X)
    assert_array_equal(middles.case_labels, X.index[middles.cases])
    found = medoids(prox)
    assert {label: X.index[row] for label, row in found.items()} == found.row_labels
    assert all(y.loc[row] == label for label, row in found.row_labels.items())
    assert_array_equal(found.to_frame()["position"], list(found.values()))
    detector = ProximityOutlierDetector(prox, contamination=0.05).fit(X)
    frame = detector.to_frame()
    assert_array_equal(frame.index, X.index[frame["position"]])
    assert_array_equal(frame["score"], np.sort(detector.outlier_scores_)[::-1])
    assert_array_equal(frame["is_outlier"], detector.fit_predict(X)[frame["position"]] == -1)
    clusters = ProximityKMedoids("uniform", n_clusters=3, random_state=0).fit(X)
    assert_array_equal(clusters.medoid_labels_, X.index[clusters.medoids_])


def test_rows_are_asked_for_by_label(prox, split):
    X = split[0]
    label, other = X.index[[5, 17]]
    position = explain_prediction(prox, row=label)
    assert position.sample == f"training row {label} (position 5)"
    assert explain_pair(prox, label, other).b == f"training row {other} (position 17)"
    columns = prox.proximity_to([label, other])
    assert_array_equal(columns.toarray(), prox.proximity().toarray()[:, [5, 17]])
    bars = plot_neighbors(prox, X, row=label, n_neighbors=2).child_axes[0]
    assert bars.get_yticklabels()[0].get_text() == f"row {label}"
    assert_array_equal(prox.index_, X.index)


def test_an_unknown_or_ambiguous_label_is_refused(prox, split):
    X, X_new, y, _ = split
    with pytest.raises(ValueError, match=f"row={X_new.index[0]} is not a label of"):
        explain_prediction(prox, row=int(X_new.index[0]))
    with pytest.raises(ValueError, match=rf"rows contains 'no', .* The labels are {X.index[0]}, "):
        prox.proximity_to(["no"])
    unknown = next(k for k in range(len(X)) if k not in X.index)
    with pytest.raises(ValueError, match=f"use its label: {X.index[unknown]}"):
        explain_prediction(prox, row=unknown)
    doubled = X.set_axis(["same"] * 3 + [*X.index[3:]], axis=0)
    twice = ForestProximity(prox.forest_).fit(doubled, y)
    with pytest.raises(ValueError, match=r"row='same' is not a position. .* not unique, so use"):
        explain_prediction(twice, row="same")
    assert explain_prediction(twice, row=3).sample.endswith("(position 3)")
    with pytest.raises(ValueError, match="row must be a single training sample"):
        explain_prediction(twice, row=[3])


@pytest.mark.parametrize(
    "index",
    [
        pd.Index([f"flower {k}" for k in range(112)]),
        pd.date_range("2020-01-01", periods=112),
        pd.MultiIndex.from_product([["a", "b"], range(56)]),
        pd.RangeIndex(100, 212),
        pd.Index(np.arange(112) / 2),
    ],
    ids=["text", "dates", "hierarchical", "range", "floats"],
)
def test_labels_of_every_kind(split, index):
    X, _, y, _ = split
    prox = ForestProximity(RandomForestClassifier(40, random_state=0)).fit(X.set_axis(index), y)
    told = explain_prediction(prox, row=index[7], n=2)
    names = [label_text(label) for label in told.row_labels]
    assert all("00:00" not in name and "(" not in name for name in names)
    assert [line.split("  ")[1].strip() for line in str(told).splitlines()[3:]] == names
    assert list(told.to_frame().index) == [index[k] for k in told.rows]
    name = label_text(index[3])
    assert explain_pair(prox, index[3], index[4]).a == f"training row {name} (position 3)"
    assert repr(medoids(prox)).count("(position") == 3
    frame = pickle.loads(pickle.dumps(prox)).neighbors_frame(n_neighbors=1)
    assert list(frame["neighbor"]) == [index[k] for k in frame["position"]]


def test_without_an_index_labels_are_positions(split):
    X, _, y, _ = split
    for table in (X.to_numpy(), X.reset_index(drop=True)):
        prox = ForestProximity(RandomForestClassifier(40, random_state=0)).fit(table, y)
        assert prox.index_ == range(112)
        told = explain_prediction(prox, row=5)
        assert_array_equal(told.row_labels, told.rows)
        assert told.sample == "training row 5"


def test_the_index_is_a_copy(split):
    X, _, y, _ = split
    labels = np.arange(112) + 1000
    frame = X.set_axis(pd.Index(labels, copy=False))
    prox = ForestProximity(RandomForestClassifier(40, random_state=0)).fit(frame, y)
    labels[:] = 0
    assert prox.index_[3] == 1003


def test_the_proximity_keeps_the_targets(prox, split):
    X, X_new, y, _ = split
    assert_array_equal(prox.y_, y)
    names = y.to_numpy()
    assert_array_equal(trust_scores(prox, X_new), trust_scores(prox, X_new, y=names))
    assert_array_equal(outlier_scores(prox), outlier_scores(prox, names))
    assert_array_equal(find_label_errors(prox).scores, find_label_errors(prox, names).scores)
    told = explain_prediction(prox, X_new.iloc[0])
    assert_array_equal(told.prediction, explain_prediction(prox, X_new.iloc[0], y=names).prediction)
    assert medoids(prox) == medoids(prox, names)
    assert_array_equal(select_prototypes(prox).rows, select_prototypes(prox, names).rows)
    assert_array_equal(class_prototypes(prox, X).median, class_prototypes(prox, X, names).median)
    assert_array_equal(ProximityClassifier(prox).fit(X).predict(X_new), prox.forest_.predict(X_new))
    with pytest.raises(ValueError, match=r"fitted without targets. Pass y"):
        find_label_errors(ForestProximity(prox.forest_, "uniform").fit(X))


def test_kept_targets_do_not_change(split):
    X, _, y, _ = split
    given = y.to_numpy(copy=True)
    prox = ForestProximity(RandomForestClassifier(40, random_state=0)).fit(X, given)
    before = find_label_errors(prox).scores
    given[:] = "setosa"
    assert_array_equal(find_label_errors(prox).scores, before)
    with pytest.raises(ValueError, match="read-only"):
        prox.y_[0] = "setosa"


def test_calls_with_targets_first_still_work(prox, split):
    X, X_new, y, _ = split
    x = X_new.iloc[0]
    expected = explain_prediction(prox, x).prediction
    for old in (
        lambda: explain_prediction(prox, y, x),
        lambda: explain_prediction(prox, y, x=x),
    ):
        with pytest.warns(FutureWarning, match=r"explain_prediction\(prox, x, y=y\)"):
            assert_array_equal(old().prediction, expected)
    with pytest.warns(FutureWarning):
        told = explain_prediction(prox, y, row=X.index[0])
    assert_array_equal(told.prediction, explain_prediction(prox, row=X.index[0]).prediction)
    for old in (
        lambda: trust_scores(prox, y, X_new),
        lambda: trust_scores(prox, list(y), X=X_new),
    ):
        with pytest.warns(FutureWarning, match=r"trust_scores\(prox, X, y=y\)"):
            assert_array_equal(old(), trust_scores(prox, X_new))
    with pytest.warns(FutureWarning):
        assert_array_equal(trust_scores(prox, y), trust_scores(prox))
