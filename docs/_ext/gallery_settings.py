"""How the gallery runs and orders the examples."""

import warnings

import matplotlib as mpl

ORDER = (
    "quickstart",
    "plot_heatmap",
    "plot_neighbors",
    "plot_explain_pair",
    "plot_contributions",
    "plot_intervals",
    "plot_embeddings",
    "plot_outliers",
    "plot_prototypes",
    "plot_clusters",
    "plot_imputation",
    "plot_kernels",
    "plot_schemes",
    "survival_curves",
)


class InOrder:
    """Sort examples as listed above; new ones come last."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, filename):
        name = filename.removesuffix(".py")
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def reset(gallery_conf, fname):
    """Prepare a process for an example: sharp pictures, and no call that will stop working."""
    mpl.use("Agg")
    mpl.rcParams["figure.dpi"] = mpl.rcParams["savefig.dpi"] = 120
    warnings.filterwarnings("error", category=FutureWarning)
