"""Models of LightGBM, XGBoost and CatBoost."""

from importlib.util import find_spec

import numpy as np

from zoo.animal import Animal, climb, diabetes, iris, ranking, two_kinds


def lightgbm():
    if not find_spec("lightgbm"):
        return
    import lightgbm as lgb

    small = {"n_estimators": 4, "min_child_samples": 3, "num_leaves": 6, "verbose": -1, "seed": 0}

    def leaves(model, X):
        return np.asarray(model.predict(X, pred_leaf=True)).reshape(len(X), -1)

    def adds(model, X):
        booster = getattr(model, "booster_", model)
        per_round = booster.num_model_per_iteration()
        rounds = leaves(model, X).shape[1] // per_round
        found = [
            np.asarray(
                booster.predict(X, raw_score=True, start_iteration=i, num_iteration=1)
            ).reshape(len(X), -1)
            for i in range(rounds)
        ]
        return np.concatenate(found, axis=1)

    def train(X, y):
        params = {"objective": "regression", "verbose": -1, "min_data_in_leaf": 3, "seed": 0}
        return lgb.train(params, lgb.Dataset(X, y), num_boost_round=4)

    def averaged(model, X):
        return adds(model, X) / leaves(model, X).shape[1]

    def paths(model, X):
        table = getattr(model, "booster_", model).trees_to_dataframe()
        names = table.split_feature.dropna().unique()
        column = {name: int(name.removeprefix("Column_")) for name in names}
        parents = dict(zip(table.node_index, table.parent_index, strict=True))
        features = dict(zip(table.node_index, table.split_feature.map(column), strict=True))
        leaf = leaves(model, X)
        return lambda t, i: climb(parents, features)(f"{t}-L{leaf[i, t]}")

    common = {"leaves": leaves, "adds": adds, "paths": paths, "library": "LightGBM"}
    yield Animal("LGBMClassifier", lambda: lgb.LGBMClassifier(**small), iris, **common)
    yield Animal(
        "LGBMRegressor", lambda: lgb.LGBMRegressor(**small), diabetes, labels=False, **common
    )
    yield Animal(
        "LGBMRegressor, dart",
        lambda: lgb.LGBMRegressor(boosting_type="dart", drop_rate=0.5, **small),
        diabetes,
        labels=False,
        **common,
    )
    yield Animal(
        "LGBMRegressor, rf",
        lambda: lgb.LGBMRegressor(boosting_type="rf", subsample=0.6, subsample_freq=1, **small),
        diabetes,
        labels=False,
        **common | {"adds": averaged},
    )
    yield Animal("LGBMRanker", lambda: lgb.LGBMRanker(**small), ranking, **common)
    yield Animal("lightgbm.Booster", lambda: train, diabetes, **common)


def xgboost():
    if not find_spec("xgboost"):
        return
    import xgboost as xgb

    small = {"n_estimators": 4, "max_depth": 3, "random_state": 0}

    def leaves(model, X):
        if isinstance(model, xgb.Booster):
            return model.predict(xgb.DMatrix(X), pred_leaf=True).reshape(len(X), -1)
        return model.apply(X).reshape(len(X), -1)

    def adds(model, X):
        """The leaf values in the library's own table of trees, at the leaves."""
        booster = model if isinstance(model, xgb.Booster) else model.get_booster()
        leaf = leaves(model, X).astype(int)
        table = booster.trees_to_dataframe()
        table = table[table.Feature == "Leaf"].set_index(["Tree", "Node"])["Gain"]
        return np.array([[table[t, node] for t, node in enumerate(row)] for row in leaf])

    def dropped(model, X):
        """The contribution of each round to the margin. The last base is the same for all rows."""
        booster, data = model.get_booster(), xgb.DMatrix(X)
        rounds = booster.num_boosted_rounds()
        return np.stack(
            [
                booster.predict(data, output_margin=True, iteration_range=(i, i + 1))
                for i in range(rounds)
            ],
            axis=1,
        )

    def train(X, y):
        return xgb.train({"max_depth": 3, "seed": 0}, xgb.DMatrix(X, y), num_boost_round=4)

    def paths(model, X):
        booster = model if isinstance(model, xgb.Booster) else model.get_booster()
        table = booster.trees_to_dataframe()
        inner = table[table.Feature != "Leaf"]
        parents = {
            child: node
            for side in (inner.Yes, inner.No)
            for child, node in zip(side, inner.ID, strict=True)
        }
        features = dict(zip(inner.ID, inner.Feature.str[1:].astype(int), strict=True))
        leaf = leaves(model, X).astype(int)
        return lambda t, i: climb(parents, features)(f"{t}-{leaf[i, t]}")

    common = {"leaves": leaves, "adds": adds, "paths": paths, "library": "XGBoost"}
    yield Animal("XGBClassifier", lambda: xgb.XGBClassifier(**small), iris, **common)
    yield Animal(
        "XGBClassifier, two classes", lambda: xgb.XGBClassifier(**small), two_kinds, **common
    )
    yield Animal(
        "XGBRegressor", lambda: xgb.XGBRegressor(**small), diabetes, labels=False, **common
    )
    yield Animal(
        "XGBRegressor, dart",
        lambda: xgb.XGBRegressor(booster="dart", rate_drop=0.5, **small),
        diabetes,
        labels=False,
        **common | {"adds": dropped},
    )
    yield Animal("XGBRanker", lambda: xgb.XGBRanker(**small), ranking, **common)
    yield Animal(
        "XGBRFClassifier",
        lambda: xgb.XGBRFClassifier(**small),
        iris,
        **common,
    )
    yield Animal("xgboost.Booster", lambda: train, diabetes, **common)


def catboost():
    if not find_spec("catboost"):
        return
    import catboost as cb

    small = {"iterations": 4, "depth": 3, "verbose": 0, "allow_writing_files": False}

    def leaves(model, X):
        return model.calc_leaf_indexes(X)

    def adds(model, X):
        stages = [
            np.asarray(cb.CatBoost.predict(model, X, "RawFormulaVal", ntree_end=k + 1))
            for k in range(model.tree_count_)
        ]
        stages = np.stack([s.reshape(len(X), -1) for s in stages], axis=1)
        return np.diff(stages, axis=1, prepend=0)

    def paths(model, X):
        """A symmetric tree looks at a feature if its leaves change with it."""
        leaf = leaves(model, X)
        used = [set() for _ in range(leaf.shape[1])]
        for f in range(X.shape[1]):
            for value in np.unique(X[:, f]):
                changed = X.copy()
                changed[:, f] = value
                for t in np.flatnonzero((leaves(model, changed) != leaf).any(axis=0)):
                    used[t].add(f)
        return lambda t, i: sorted(used[t])

    common = {"leaves": leaves, "adds": adds, "paths": paths, "library": "CatBoost"}
    yield Animal("CatBoostClassifier", lambda: cb.CatBoostClassifier(**small), iris, **common)
    yield Animal(
        "CatBoostRegressor", lambda: cb.CatBoostRegressor(**small), diabetes, labels=False, **common
    )
    yield Animal(
        "CatBoostRegressor, Lossguide",
        lambda: cb.CatBoostRegressor(grow_policy="Lossguide", **small),
        diabetes,
        labels=False,
        **common,
    )
    yield Animal(
        "CatBoostRanker",
        lambda: cb.CatBoostRanker(**small),
        lambda: (*iris(), {"group_id": np.repeat([0, 1], 30)}),
        **common,
    )
