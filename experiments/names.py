"""Names for tables and figures."""

_NAMES = {
    "covtype": "Covertype",
    "airlines": "Airlines",
    "airlines_indicators": "Airlines, indicators",
    "fashion_mnist": "FashionMNIST",
    "sign_mnist": "SignMNIST",
    "sign_mnist_ak": "SignMNIST A–K",
    "higgs": "HIGGS",
    "susy": "SUSY",
    "epsilon": "Epsilon",
    "tv_news": "TV News",
    "pbmc": "PBMC",
    "path_mnist": "PathMNIST",
    "tissue_mnist": "TissueMNIST",
    "gap": "GAP",
    "oob": "exact OOB",
    "oob_separable": "separable OOB",
    "kerf": "KeRF",
    "RF": "random forest",
    "ET": "extra trees",
    "raw": "pixels",
    "leaf": "leaf coordinates",
    "pca": "PCA",
    "umap": "UMAP",
    "phate": "PHATE",
    "higgs_sample": "HIGGS, sample",
    "breast_cancer": "breast cancer",
    "boostin": "BoostIn",
    "boostin_score": "BoostIn, of the score",
    "axil": "AXIL",
    "features": "nearest by features",
    "random_side": "random, same side",
    "random": "random",
    "retrain": "leave one out and retrain",
    "gradient_self": "gradient, self",
    "gradient_held_clean": "gradient, clean held-out",
    "gradient_held_noisy": "gradient, noisy held-out",
    "boostin_self": "BoostIn, self",
    "boostin_held_clean": "BoostIn, clean held-out",
    "boostin_held_noisy": "BoostIn, noisy held-out",
    "errors_uniform": "label errors, uniform",
    "errors_boosted": "label errors, boosted",
    "errors_gap": "label errors, forest, gap",
    "loss": "loss of the model",
    "loss_apart": "loss, 5-fold",
    "kernel": "the kernel",
    "neighbors": "10 nearest neighbors of every row",
    "product": "the kernel times a vector",
}

# Rankings of training rows, in display order.
METHODS = (
    *("gradient", "boostin", "boostin_score", "axil", "uniform", "boosted"),
    *("features", "random_side", "random", "retrain"),
    *("gradient_self", "gradient_held_clean", "gradient_held_noisy"),
    *("boostin_self", "boostin_held_clean", "boostin_held_noisy"),
    *("errors_uniform", "errors_boosted", "errors_gap", "loss", "loss_apart"),
)


def name(key):
    """Return the display name of a data set, proximity, forest or method. Others are unchanged."""
    return _NAMES.get(key, str(key))
