"""Take two scores of boosted models apart into the training rows that push them up and down.

python examples/plot_contributions.py [--out docs/images/contributions.png]
"""

import argparse
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from leafkernel import ForestProximity
from leafkernel.plots import plot_contributions
from leafkernel.tasks import explain_prediction


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", default="docs/images/contributions.png", help="where to save the picture"
    )
    out = Path(parser.parse_args().out)
    figure, (left, right) = plt.subplots(1, 2, figsize=(14, 5.6), layout="constrained")

    data = load_breast_cancer()
    X, X_new, y, y_new = train_test_split(
        data.data, data.target_names[data.target], random_state=0, stratify=data.target
    )
    model = GradientBoostingClassifier(random_state=0).fit(X, y)
    scores = model.decision_function(X_new)
    doubtful = int(np.argmin(np.abs(scores)))
    prox = ForestProximity(model, "gradient").fit(X, y)
    why = explain_prediction(prox, X_new[doubtful], n=8)
    print(f"{why}\nThe model's own score: {scores[doubtful]:.3f}. In truth: {y_new[doubtful]}.\n")
    plot_contributions(why, ax=left)

    X, y = load_diabetes(return_X_y=True)
    model = HistGradientBoostingRegressor(loss="poisson", max_iter=50).fit(X[1:], y[1:])
    prox = ForestProximity(model, "gradient").fit(X[1:], y[1:])
    why = explain_prediction(prox, X[0], n=8)
    print(f"{why}\nThe model's own prediction: {model.predict(X[:1])[0]:.1f}. In truth: {y[0]:g}.")
    plot_contributions(why, ax=right)

    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=130)
    print(f"Picture saved to {out}")


if __name__ == "__main__":
    main()
