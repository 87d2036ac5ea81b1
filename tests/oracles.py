"""Proximities computed directly from the paper's formulas, with loops over pairs and trees.

Nothing here uses leafkernel. Leaves are node ids within a tree, as ``forest.apply`` gives them.
"""

from dataclasses import dataclass

import numpy as np


@dataclass
class Side:
    """Samples on one side of a pair: leaves (n, T), in-bag weights (n, T), out-of-bag (n, T)."""

    leaf: np.ndarray
    in_bag: np.ndarray
    oob: np.ndarray
    easiness: np.ndarray | None = None  # 1 - kDN, for instance hardness
    targets: np.ndarray | None = None  # classes are integers

    @classmethod
    def unseen(cls, leaf):
        return cls(leaf, np.zeros(leaf.shape), np.ones(leaf.shape, dtype=bool), np.ones(leaf.shape))


def proximity(scheme, query, reference, training, tree_weights=None):
    """P(x, x') for every query x and reference x'; `training` defines the masses of leaves."""
    n_trees = query.leaf.shape[1]
    P = np.zeros((len(query.leaf), len(reference.leaf)))
    for i in range(P.shape[0]):
        for j in range(P.shape[1]):
            shared = [t for t in range(n_trees) if query.leaf[i, t] == reference.leaf[j, t]]
            P[i, j] = _pair(scheme, i, j, shared, query, reference, training, tree_weights)
    return P


def _pair(scheme, i, j, shared, query, reference, training, tree_weights):
    n_trees = query.leaf.shape[1]

    def members(t):
        return training.leaf[:, t] == query.leaf[i, t]

    if scheme == "uniform":
        return len(shared) / n_trees
    if scheme == "kerf":
        return sum(1 / members(t).sum() for t in shared) / n_trees
    if scheme in ("boosted", "learned"):
        total = sum(tree_weights)
        return sum(tree_weights[t] for t in shared) / total if total else 0.0
    if scheme == "ih":
        return sum(reference.easiness[j, t] for t in shared) / n_trees
    if scheme == "purity":
        return sum(quality_of(training, members(t), training.oob[:, t]) for t in shared) / n_trees
    n_oob_i, n_oob_j = query.oob[i].sum(), reference.oob[j].sum()
    if scheme == "gap":
        if n_oob_i == 0:
            return 0.0
        terms = [
            reference.in_bag[j, t] / training.in_bag[members(t), t].sum()
            for t in shared
            if query.oob[i, t] and reference.in_bag[j, t] > 0
        ]
        return sum(terms) / n_oob_i
    both = [t for t in shared if query.oob[i, t] and reference.oob[j, t]]
    if scheme == "oob":
        n_shared_oob = (query.oob[i] & reference.oob[j]).sum()
        return len(both) / n_shared_oob if n_shared_oob else 0.0
    if scheme == "oob_separable":
        return n_trees * len(both) / (n_oob_i * n_oob_j) if n_oob_i * n_oob_j else 0.0
    raise AssertionError(scheme)


def quality_of(training, members, weights, prior=1.0, kind="auto"):
    """The quality of one leaf, from its members and `prior` samples of the training set."""
    y = training.targets.tolist()
    weight = [float(m) * float(w) for m, w in zip(members, weights, strict=True)]
    if sum(weight) == 0:
        prior = 1.0
    drawn = [w + prior / len(y) for w in weight]

    def gini(weights):
        total = sum(weights)
        of_class = {c: sum(w for w, label in zip(weights, y, strict=True) if label == c) for c in y}
        return 1 - sum((w / total) ** 2 for w in of_class.values())

    def squares(weights):
        total = sum(weights)
        mean = sum(w * v for w, v in zip(weights, y, strict=True)) / total if total else 0.0
        return sum(w * (v - mean) ** 2 for w, v in zip(weights, y, strict=True))

    is_classes = training.targets.dtype.kind in "iu"
    if is_classes and kind in ("auto", "purity"):
        return 1 - gini(drawn)
    if len(set(y)) == 1:
        return 1.0
    if is_classes:
        return max(0.0, 1 - gini(drawn) / gini([1.0] * len(y)))
    variance = squares([1.0] * len(y)) / len(y)
    return max(0.0, 1 - (squares(weight) + prior * variance) / (sum(weight) + prior) / variance)


def shares(leaf):
    """The share of trees in which two samples are in the same leaf, for all pairs."""
    return (leaf[:, None] == leaf[None]).mean(axis=2)


def bootstrap_counts(forest, n_samples):
    """How often each tree drew each sample, shape (n, T)."""
    return np.stack([np.bincount(s, minlength=n_samples) for s in forest.estimators_samples_], 1)


def variance_of_contribution(booster, X):
    """The contribution of each tree to a gradient-boosting model: its variance over X."""
    trees = booster.estimators_.ravel()
    return np.array([np.var(booster.learning_rate * tree.predict(X)) for tree in trees])


def features_on_path(tree, x):
    """The features on the path of x in a tree of scikit-learn."""
    path = tree.decision_path(np.asarray(x, dtype=np.float32).reshape(1, -1)).indices
    return sorted({int(f) for f in tree.tree_.feature[path] if f >= 0})


def disagreeing_neighbors(X, y, leaf, path, k, scope):
    """kDN_t(x) by comparing every pair of samples. Ties at the k-th neighbor share its weight.

    `path(t, i)` gives the features on the path of sample i in tree t.
    """
    n_samples, n_trees = leaf.shape
    kdn = np.zeros((n_samples, n_trees))
    for t in range(n_trees):
        for i in range(n_samples):
            features = path(t, i)
            others = [
                j
                for j in range(n_samples)
                if j != i and (scope == "all" or leaf[j, t] == leaf[i, t])
            ]
            distance = {j: sum((X[i, f] - X[j, f]) ** 2 for f in features) for j in others}
            k_here = min(k, len(others))
            if k_here == 0:
                continue
            radius = sorted(distance.values())[k_here - 1]
            nearer = [j for j in others if distance[j] < radius]
            tied = [j for j in others if distance[j] == radius]
            disagreeing = sum(y[j] != y[i] for j in nearer)
            disagreeing += (k_here - len(nearer)) * sum(y[j] != y[i] for j in tied) / len(tied)
            kdn[i, t] = disagreeing / k_here
    return kdn


def gradient_proximity(query_leaf, leaf, scores_before, derivatives, factor):
    """P(x, x') of a boosted model with one output, from the scores before each of its trees.

    `derivatives(scores)` gives the weighted first and second derivatives of the training samples,
    `factor(H)` gives the factor of a leaf's sum of gradients.
    """
    P = np.zeros((len(query_leaf), len(leaf)))
    for t, scores in enumerate(scores_before):
        g, h = derivatives(scores)
        for i in range(P.shape[0]):
            members = [j for j in range(P.shape[1]) if leaf[j, t] == query_leaf[i, t]]
            H = sum(h[j] for j in members)
            for j in members:
                P[i, j] += factor(H) * g[j]
    return P


def axil_recursion(leaf, query_leaf, weights, rate, l2):
    """G for training samples and queries by the dense recursion of Geertsema and Lu."""
    share = weights / weights.sum()
    G, of_queries = np.tile(share, (len(leaf), 1)), np.tile(share, (len(query_leaf), 1))

    def averages(rows, t):
        same = rows[:, t, None] == leaf[None, :, t]
        return rate * same * weights / ((same * weights).sum(axis=1) + l2)[:, None]

    for t in range(leaf.shape[1]):
        rest = np.eye(len(leaf)) - G
        of_queries = of_queries + averages(query_leaf, t) @ rest
        G = G + averages(leaf, t) @ rest
    return G, of_queries


def alignment(leaf, counts_in, targets):
    """M, a and the norm of YYᵀ, from the explicit centered kernels of all trees.

    `counts_in` tells which samples count in which trees, shape (n, T).
    """
    n = len(targets)
    H = np.eye(n) - 1 / n
    kernels = []
    for t in range(leaf.shape[1]):
        K = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                both = counts_in[i, t] and counts_in[j, t]
                K[i, j] = 1.0 if both and leaf[i, t] == leaf[j, t] else 0.0
        kernels.append(H @ K @ H)
    if targets.dtype.kind in "iu":
        Y = np.array([[float(y == c) for c in np.unique(targets)] for y in targets])
    else:
        spread = targets.std() if len(set(targets)) > 1 else 1.0
        Y = ((targets - targets.mean()) / spread)[:, None]
    target = H @ Y @ Y.T @ H
    M = np.array([[np.sum(one * other) for other in kernels] for one in kernels])
    return M, np.array([np.sum(K * target) for K in kernels]), np.linalg.norm(target)


def best_weights(M, a):
    """The nonnegative weights of the best alignment, found by trying every set of trees.

    They sum to one. All weights are equal if no tree is aligned with the targets.
    """
    n_trees, best, least = len(a), np.zeros(len(a)), 0.0
    for number in range(1, 2**n_trees):
        some = [t for t in range(n_trees) if number >> t & 1]
        if min(M[t, t] for t in some) < 1e-9:  # a tree of one leaf
            continue
        x = np.zeros(n_trees)
        x[some] = np.linalg.lstsq(M[np.ix_(some, some)], a[some], rcond=1e-12)[0]
        loss = x @ M @ x - 2 * a @ x
        if x.min() >= 0 and loss < least - 1e-12 * abs(least):
            best, least = x, loss
    return best / best.sum() if best.sum() > 0 else np.full(n_trees, 1 / n_trees)


def cross_validated_weights(leaf, counts_in, targets, folds):
    """Mix the best weights with equal ones as is best on average for samples that are held out."""
    n_trees = leaf.shape[1]
    shares = [0, 0.25, 0.5, 0.75, 1]

    def mixed(weights, share):
        return share * weights + (1 - share) / n_trees

    def learn(rows):
        M, a, _ = alignment(leaf[rows], counts_in[rows], targets[rows])
        return best_weights(M, a)

    scores = np.zeros(len(shares))
    for held in folds:
        rest = np.setdiff1d(np.arange(len(targets)), held)
        M, a, norm = alignment(leaf[held], counts_in[held], targets[held])
        weights = learn(rest)
        for i, share in enumerate(shares):
            mu = mixed(weights, share)
            size = np.sqrt(max(mu @ M @ mu, 0)) * norm
            scores[i] += a @ mu / size if size > 1e-9 else 0.0
    best = next(i for i in range(len(shares)) if scores[i] >= scores.max() - 1e-9)
    return mixed(learn(np.arange(len(targets))), shares[best])
