"""
Which rows pushed the score of a boosted model?
===============================================

The raw score of a gradient-boosted model is a base score plus a signed sum over training rows,
exactly. The scheme ``"gradient"`` computes the contributions,
:func:`~leafkernel.tasks.explain_prediction` lists them, and
:func:`~leafkernel.plots.plot_contributions` draws them. :doc:`/boosted` explains the numbers.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from leafkernel import ForestProximity
from leafkernel.plots import plot_contributions
from leafkernel.tasks import explain_prediction

# %%
# Left: a benign tumor that the model is unsure of. One malignant training tumor alone pushes
# its score up by 1.85. Right: a regression with a log link. The score 5.42 means a prediction
# of exp(5.42) = 225.
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

plt.show()
