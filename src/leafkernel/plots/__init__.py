"""Plots of proximities, embeddings, neighbors, outliers, prototypes and imputed values.

Each function draws on ``ax``, or on a new figure if it is None, and returns the Axes. If a plot has
several panels, they are the ``child_axes`` of the returned Axes. The functions do not call
``plt.show()`` and do not change the settings of matplotlib, which is imported only when something
is drawn (``leafkernel[plot]``).

Text, booleans and whole numbers with at most 20 different values are colored as classes. The colors
are color-blind safe for up to 8 classes. Other numbers are colored with a color bar.
"""

from leafkernel.plots.contributions import plot_contributions
from leafkernel.plots.embedding import plot_embedding
from leafkernel.plots.imputation import plot_imputation
from leafkernel.plots.neighbors import plot_neighbors
from leafkernel.plots.outliers import plot_outliers
from leafkernel.plots.prototypes import plot_prototypes
from leafkernel.plots.proximity import plot_proximity

__all__ = [
    "plot_contributions",
    "plot_embedding",
    "plot_imputation",
    "plot_neighbors",
    "plot_outliers",
    "plot_prototypes",
    "plot_proximity",
]
