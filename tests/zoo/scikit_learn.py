"""Ensembles of scikit-learn, and of packages that subclass its forests."""

from importlib.util import find_spec

import numpy as np
import oracles
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeRegressor

from zoo.animal import Animal, climb, diabetes, iris, survival


# The default of AdaBoostClassifier before 1.6 warns; after, the parameter does.
def _samme():
    import sklearn
    from sklearn.utils.fixes import parse_version

    return (
        {"algorithm": "SAMME"} if parse_version(sklearn.__version__) < parse_version("1.6") else {}
    )


SAMME = _samme()


def counts(forest, n):
    if not hasattr(forest, "_n_samples"):  # scikit-survival < 0.24 cannot tell
        draws = [
            np.random.RandomState(tree.random_state).randint(0, n, n, dtype=np.int32)
            for tree in forest.estimators_
        ]
        return np.stack([np.bincount(s, minlength=n) for s in draws], axis=1)
    return np.stack([np.bincount(s, minlength=n) for s in forest.estimators_samples_], axis=1)


def apply(model, X):
    return np.asarray(model.apply(X)).reshape(len(X), -1)


def apply_members(model, X):
    """Each member's own apply, on its own features."""
    features = getattr(model, "estimators_features_", [slice(None)] * len(model.estimators_))
    X = X.astype(np.float32)
    found = [t.apply(X[:, f]) for t, f in zip(model.estimators_, features, strict=True)]
    return np.stack(found, axis=1)


def paths_of_members(model, X):
    """The decision paths of trees of scikit-learn, in features of the whole."""
    members = getattr(model, "estimators_", [model])
    trees = np.asarray(members, dtype=object).ravel()
    features = getattr(model, "estimators_features_", [np.arange(X.shape[1])] * len(trees))

    def path(t, i):
        return sorted(
            {int(features[t][f]) for f in oracles.features_on_path(trees[t], X[i][features[t]])}
        )

    return path


def per_tree(stages):
    """The contribution of each tree, from staged predictions: shape (n, rounds · outputs)."""
    stages = np.stack([np.asarray(s).reshape(len(s), -1) for s in stages], axis=1)
    return np.diff(stages, axis=1, prepend=0).reshape(len(stages), -1)


def adds_of_gradient_boosting(model, X):
    trees = model.estimators_.ravel()
    return np.stack([model.learning_rate * tree.predict(X) for tree in trees], axis=1)


def hist_leaves(model, X):
    """Walk node by node."""
    X = np.asarray(X, dtype=np.float64)
    trees = [tree for of_round in model._predictors for tree in of_round]
    leaf = np.zeros((len(X), len(trees)), dtype=int)
    for t, tree in enumerate(trees):
        for i, x in enumerate(X):
            node = tree.nodes[0]
            while not node["is_leaf"]:
                value = x[node["feature_idx"]]
                left = (
                    node["missing_go_to_left"]
                    if np.isnan(value)
                    else value <= node["num_threshold"]
                )
                leaf[i, t] = node["left"] if left else node["right"]
                node = tree.nodes[leaf[i, t]]
    return leaf


def hist_paths(model, X):
    trees = [tree.nodes for of_round in model._predictors for tree in of_round]
    leaf = hist_leaves(model, X)

    def path(t, i):
        inner = [k for k, node in enumerate(trees[t]) if not node["is_leaf"]]
        parents = {int(trees[t][k][side]): k for k in inner for side in ("left", "right")}
        return climb(parents, {k: int(trees[t][k]["feature_idx"]) for k in inner})(int(leaf[i, t]))

    return path


def adds_of_hist_classifier(model, X):
    return per_tree(list(model.staged_decision_function(X)))


def adds_of_hist_regressor(model, X):
    return per_tree(list(model.staged_predict(X)))


def scikit_learn():
    forest = {"n_estimators": 12, "random_state": 0}
    boosted = {"n_estimators": 4, "random_state": 0}
    hist = {"max_iter": 4, "min_samples_leaf": 3, "max_leaf_nodes": 6}
    yield Animal(
        "RandomForestClassifier", lambda: RandomForestClassifier(**forest), iris, apply, counts
    )
    yield Animal(
        "RandomForestRegressor",
        lambda: RandomForestRegressor(max_samples=0.7, **forest),
        diabetes,
        apply,
        counts,
        labels=False,
    )
    yield Animal("ExtraTrees", lambda: ExtraTreesClassifier(**forest), iris, apply)
    yield Animal(
        "ExtraTrees, bootstrap=True",
        lambda: ExtraTreesClassifier(bootstrap=True, **forest),
        iris,
        apply,
        counts,
    )
    yield Animal("RandomTreesEmbedding", lambda: RandomTreesEmbedding(**forest), iris, apply)
    yield Animal(
        "GradientBoostingClassifier",
        lambda: GradientBoostingClassifier(**boosted),
        iris,
        apply,
        adds=adds_of_gradient_boosting,
    )
    yield Animal(
        "GradientBoostingRegressor",
        lambda: GradientBoostingRegressor(**boosted),
        diabetes,
        apply,
        adds=adds_of_gradient_boosting,
        labels=False,
    )
    yield Animal(
        "HistGradientBoostingClassifier",
        lambda: HistGradientBoostingClassifier(**hist),
        iris,
        hist_leaves,
        adds=adds_of_hist_classifier,
        paths=hist_paths,
    )
    yield Animal(
        "HistGradientBoostingRegressor",
        lambda: HistGradientBoostingRegressor(**hist),
        diabetes,
        hist_leaves,
        adds=adds_of_hist_regressor,
        labels=False,
    )
    yield Animal(
        "IsolationForest",
        lambda: IsolationForest(max_samples=25, max_features=0.7, **forest),
        lambda: (diabetes()[0], None),
        apply_members,
        counts,
        labels=False,
    )
    yield Animal(
        "BaggingClassifier of trees",
        lambda: BaggingClassifier(max_features=0.5, bootstrap_features=True, **forest),
        iris,
        apply_members,
        counts,
    )
    yield Animal(
        "BaggingRegressor of trees",
        lambda: BaggingRegressor(max_samples=0.5, bootstrap=False, **forest),
        diabetes,
        apply_members,
        counts,
        labels=False,
    )
    yield Animal(
        "AdaBoostClassifier of trees",
        lambda: AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), **boosted, **SAMME),
        iris,
        apply_members,
        tree_weights=lambda model: model.estimator_weights_[: len(model.estimators_)],
    )
    yield Animal(
        "AdaBoostRegressor of trees",
        lambda: AdaBoostRegressor(**boosted),
        diabetes,
        apply_members,
        tree_weights=lambda model: model.estimator_weights_[: len(model.estimators_)],
        labels=False,
    )
    yield Animal(
        "DecisionTree", lambda: DecisionTreeClassifier(max_depth=3, random_state=0), iris, apply
    )
    yield Animal(
        "ExtraTree",
        lambda: ExtraTreeRegressor(max_depth=4, random_state=0),
        diabetes,
        apply,
        labels=False,
    )
    yield Animal(
        "Pipeline with RandomForest",
        lambda: make_pipeline(StandardScaler(), RandomForestClassifier(**forest)),
        iris,
        lambda model, X: model[-1].apply(model[:-1].transform(X)),
        lambda model, n: counts(model[-1], n),
        paths=lambda model, X: paths_of_members(model[-1], model[:-1].transform(X)),
        seen=lambda model, X: model[:-1].transform(X),
    )
    yield Animal(
        "GridSearchCV of RandomForest",
        lambda: GridSearchCV(RandomForestClassifier(**forest), {"max_depth": [2, 4]}, cv=2),
        iris,
        lambda model, X: model.best_estimator_.apply(X),
        lambda model, n: counts(model.best_estimator_, n),
        paths=lambda model, X: paths_of_members(model.best_estimator_, X),
    )
    yield Animal(
        "RandomizedSearchCV of GradientBoosting",
        lambda: RandomizedSearchCV(
            GradientBoostingRegressor(**boosted),
            {"max_depth": [2, 3]},
            n_iter=1,
            cv=2,
            random_state=0,
        ),
        diabetes,
        lambda model, X: apply(model.best_estimator_, X),
        adds=lambda model, X: adds_of_gradient_boosting(model.best_estimator_, X),
        labels=False,
    )


def subclasses():
    forest = {"n_estimators": 12, "random_state": 0}
    if find_spec("quantile_forest"):
        from quantile_forest import RandomForestQuantileRegressor

        yield Animal(
            "RandomForestQuantileRegressor",
            lambda: RandomForestQuantileRegressor(**forest),
            diabetes,
            apply,
            counts,
            labels=False,
            library="quantile-forest",
        )
    if find_spec("imblearn"):
        from imblearn.ensemble import BalancedRandomForestClassifier

        def balanced(**more):
            return BalancedRandomForestClassifier(
                sampling_strategy="all", replacement=True, **forest, **more
            )

        def resampled(model, n):
            return np.stack(
                [np.bincount(s.sample_indices_, minlength=n) for s in model.samplers_], axis=1
            )

        yield Animal(
            "BalancedRandomForestClassifier",
            lambda: balanced(bootstrap=False),
            lambda: (iris()[0][5:50], iris()[1][5:50]),
            apply,
            resampled,
            library="imbalanced-learn",
        )
    if find_spec("sksurv"):
        from sksurv.ensemble import RandomSurvivalForest

        yield Animal(
            "RandomSurvivalForest",
            lambda: RandomSurvivalForest(**forest),
            survival,
            lambda model, X: model.apply(X.astype(np.float32)),
            counts,
            labels=False,
            library="scikit-survival",
        )
