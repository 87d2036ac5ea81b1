"""Pictures of what a forest finds alike: embeddings, proximities, outliers, contributions.

Every function draws on ``ax``, or on a new figure where there is none, and returns the Axes; where
a picture has several panels they are the ``child_axes`` of what is returned. Nothing is shown and
no setting of matplotlib is changed. matplotlib is only imported when something is drawn
(``leafkernel[plot]``).

Whatever colors samples is read as follows: text, booleans, and whole numbers of at most 20 kinds
are classes, in colors that the color-blind can tell apart (up to 8 of them); other numbers are
numbers, and get a color bar.
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
