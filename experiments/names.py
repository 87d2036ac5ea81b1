"""What tables and figures call things."""

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
    "kernel": "the kernel",
    "neighbors": "10 nearest neighbours of every row",
    "product": "the kernel times a vector",
}


def name(key):
    """Return the name of a data set, a proximity, a forest, a method; of another thing, itself."""
    return _NAMES.get(key, str(key))
