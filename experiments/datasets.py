"""The data sets of the paper, from files in a folder or from scikit-learn.

The folder contains NAME.npz with arrays X and y, and X_test and y_test if there is a test part. Or
it contains the files of `SOURCES` as published, directly or in a folder NAME. Zip and tar archives
must be unpacked; single files may be compressed (.gz, .bz2, .xz). Nothing is written to the folder.
If covtype or airlines is missing, scikit-learn downloads it. digits is part of scikit-learn.
"""

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.datasets import fetch_covtype, fetch_openml, load_digits, load_svmlight_file
from sklearn.model_selection import train_test_split

OPENERS = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# Errors that readers raise for a file of another type, or an incomplete file.
PACKED_BADLY = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
UNREADABLE = (*PACKED_BADLY, OSError, ValueError, KeyError)
# Text is parsed this many rows at a time, to need little memory besides the result.
ROWS = 2**11


class Dataset(NamedTuple):
    """X of shape (n, d) and labels y, and a test part if the data set has one."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray | None = None
    y_test: np.ndarray | None = None


class Source(NamedTuple):
    """The files of a publisher: how to read the training or test part, and its columns."""

    read: Callable
    columns: int
    parts: tuple
    publisher: str


def load(name, data=None):
    """Return all of a data set, by its name."""
    return LOADERS[name](name, data)


def split(dataset, seed):
    """Return X, y, X_test, y_test: the given parts, or a stratified tenth as the test part."""
    X, y, X_test, y_test = dataset
    if X_test is None:
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.1, stratify=y, random_state=seed)
    return X, y, X_test, y_test


def draw(X, y, n_rows, seed):
    """Return a random sample of `n_rows` training rows."""
    if n_rows > len(y):
        raise SystemExit(f"{n_rows:,} training rows wanted, {len(y):,} found: use --max-rows")
    rows = np.random.default_rng(seed).permutation(len(y))[:n_rows]
    return X[rows], y[rows]


def available(name, data=None):
    """Return whether a data set is available, in the folder or from scikit-learn."""
    name = MADE_OF.get(name, name)
    if name not in SOURCES or name in FETCHERS:
        return True
    if data is None:
        return False
    return (Path(data) / f"{name}.npz").exists() or published(name, Path(data)) is not None


def published(name, folder):
    """Return the paths of the publisher's files by part, or None if one is missing."""
    parts = [[find(name, folder, file) for file in part] for part in SOURCES[name].parts]
    return None if not parts or any(None in paths for paths in parts) else parts


def from_files(name, data):
    """Return a data set from NAME.npz, or from the files of its publisher."""
    folder = None if data is None else Path(data)
    if folder and (folder / f"{name}.npz").exists():
        return from_npz(folder / f"{name}.npz")
    source, parts = SOURCES[name], published(name, folder)
    if parts is None and name in FETCHERS:
        return fetched(name, folder)
    if parts is None:
        raise SystemExit(wanted(name, folder))
    return Dataset(*(array for paths in parts for array in source.read(paths, source.columns)))


def fetched(name, folder):
    try:
        return FETCHERS[name]()
    except OSError as error:  # includes the errors of urllib
        raise SystemExit(
            f"{name} could not be downloaded ({error}).\n{wanted(name, folder)}"
        ) from error


def find(name, folder, file):
    """Return the path of a publisher's file, or None if it is missing."""
    folders = [folder, folder / name] if folder else []
    paths = [each / spelling for each in folders for spelling in spellings(file)]
    return next((path for path in paths if path.is_file()), None)


def spellings(file):
    """Return the possible names of a file, the fastest to read first."""
    return [file] if file.endswith(".npz") else [file + ending for ending in OPENERS]


def wanted(name, folder):
    """Return a message with the accepted files and their publisher."""
    name = MADE_OF.get(name, name)
    files = [file for part in SOURCES[name].parts for file in part]
    lines = [f"{name} is not in {folder}" if folder else f"{name} needs a folder, --data DIR"]
    columns = f", the columns of X {', '.join(AIRLINES)}" if name == "airlines" else ""
    lines.append(f"what would do: {name}.npz, with arrays X and y (and X_test and y_test){columns}")
    lines += [f"or each of these, there or in its folder {name}:"] if files else []
    for file in files:
        found = " (found)" if find(name, folder, file) else ""
        lines.append(f"  {' or '.join(spellings(file))}{found}")
    return "\n".join([*lines, f"published by {SOURCES[name].publisher}"])


@contextmanager
def reading(path, expected):
    """Convert errors while reading a file into a message with its name."""
    try:
        yield
    except UNREADABLE as error:
        raise SystemExit(f"{path}: expected {expected}; found: {error}") from error


def opened(path):
    return OPENERS.get(path.suffix, open)(path, "rb")


def arrays(path):
    if not zipfile.is_zipfile(path):
        raise ValueError("a file of another kind, or a part of one")
    return np.load(path)


def paired(X, y, columns=None):
    """Return X as float32 rows and y as a vector, after checking their sizes."""
    X, y = X.reshape(len(X), -1), y.reshape(-1)
    if columns not in (None, X.shape[1]):
        raise ValueError(f"{X.shape[1]} columns")
    if len(X) != len(y):
        raise ValueError(f"{len(X)} rows and {len(y)} labels")
    return X.astype(np.float32, copy=False), y


def whole(y):
    """Return labels as integers. Other numbers are probably features, so they raise an error."""
    if (y % 1 != 0).any():
        raise ValueError(f"{y[y % 1 != 0][0]} as a label")
    return y.astype(np.int64)


def from_npz(path):
    with reading(path, "arrays X and y, also X_test and y_test or neither"), arrays(path) as file:
        X, y = paired(file["X"], file["y"])
        if "X_test" not in file and "y_test" not in file:
            return Dataset(X, y)
        return Dataset(X, y, *paired(file["X_test"], file["y_test"], X.shape[1]))


def numbers(path, columns, separator=",", header=""):
    """Return a float32 table that follows a line starting with `header`."""
    import pandas as pd  # noqa: PLC0415

    with reading(path, f"{columns} numbers in each row"), opened(path) as file:
        if header and not file.readline().startswith(header.encode()):
            raise ValueError(f"no first line that begins with '{header}'")
        blocks = []
        options = {"sep": separator, "header": None, "dtype": np.float32, "chunksize": ROWS}
        with pd.read_csv(file, **options) as frames:
            for frame in frames:
                if frame.shape[1] != columns:
                    raise ValueError(f"{frame.shape[1]} columns")
                if (missing := frame.isna().any(axis=1)).any():
                    raise ValueError(f"fewer in row {missing.idxmax() + 1}")
                blocks.append(np.ascontiguousarray(frame))
        return np.concatenate(blocks)


def read_csv(paths, columns, at=0, header=""):
    """Read comma-separated numbers, with the label first (`at` 0) or last (`at` -1)."""
    table = numbers(paths[0], columns + 1, header=header)
    with reading(paths[0], f"a label in column {at % (columns + 1) + 1}"):
        return np.delete(table, at, axis=1), whole(table[:, at])


def svmlight(path, columns):
    """Yield sparse X and y, some rows at a time."""
    with reading(path, f"rows in LIBSVM's format, columns 1 to {columns}"), opened(path) as file:
        if not file.peek(1):
            raise ValueError("an empty file")
        while lines := b"".join(islice(file, ROWS)):
            X, y = load_svmlight_file(
                io.BytesIO(lines), n_features=columns, dtype=np.float32, zero_based=False
            )
            yield X, whole(y)


def read_svmlight(paths, columns):
    """Read rows in which zeros may be omitted. The last column must not be empty."""
    blocks = [(X.toarray(), y) for X, y in svmlight(paths[0], columns)]
    X, y = (np.concatenate(each) for each in zip(*blocks, strict=True))
    with reading(paths[0], f"{columns} columns, the last with values"):
        if not X[:, -1].any():
            raise ValueError(f"{np.flatnonzero(X.any(axis=0)).max(initial=-1) + 1} columns")
    return X, y


def read_tv_news(paths, columns):
    """Read all channels, with the columns that occur in at least one of them.

    The files number 4,125 columns, most of them for audio words; the paper counts 234.
    """
    blocks = [block for path in paths for block in svmlight(path, columns)]
    X = sparse.vstack([X for X, _ in blocks], format="csr")
    return X[:, np.unique(X.indices)].toarray(), np.concatenate([y for _, y in blocks])


def read_pbmc(paths, columns):
    """Read tab-separated principal components, and the cell type on each line."""
    X = numbers(paths[0], columns, "\t")
    with reading(paths[1], f"a label for each row of {paths[0].name}"), opened(paths[1]) as file:
        names = file.read().decode().splitlines()
        if "" in names:
            raise ValueError(f"nothing in line {names.index('') + 1}")
        return paired(X, np.unique(names, return_inverse=True)[1])


def read_images(paths, columns):
    X, y = map(read_idx, paths)
    with reading(paths[0], f"an image of {columns} pixels for each label in {paths[1].name}"):
        return paired(X, y, columns)


def read_idx(path):
    """Read an array of bytes in MNIST's format: type, number of axes, shape, values."""
    with reading(path, "MNIST's IDX format"), opened(path) as file:
        content = file.read()
        if content[:3] != b"\0\0\x08":
            raise ValueError("a file of another kind")
        n_axes = int.from_bytes(content[3:4], "big")
        shape = np.frombuffer(content, ">u4", n_axes, offset=4)
        return np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def read_medmnist(paths, columns):
    """Read the training and the test part.

    The validation part is left out, as the paper seems to do: its numbers of images, 97K and 213K,
    are those of the training and test parts together (89,996 + 7,180 and 165,466 + 47,280).
    """
    with reading(paths[0], f"images of {columns} numbers"), arrays(paths[0]) as file:
        training = paired(file["train_images"], file["train_labels"], columns)
        return *training, *paired(file["test_images"], file["test_labels"], columns)


AIRLINES = ("Airline", "Flight", "AirportFrom", "AirportTo", "DayOfWeek", "Time", "Length")
AIRLINES_NAMES = ("Airline", "AirportFrom", "AirportTo")


def fetch_airlines():
    """Return Airlines with names as alphabetical codes and days as 1 to 7."""
    X, y = fetch_openml(data_id=1169, as_frame=True, return_X_y=True)
    codes = {
        name: np.unique(np.array(X[name], str), return_inverse=True)[1] for name in AIRLINES_NAMES
    }
    return Dataset(
        *paired(np.array(X.assign(**codes)[[*AIRLINES]], np.float32), np.array(y, np.uint8))
    )


def fetch_forest_cover():
    X, y = fetch_covtype(return_X_y=True)
    return Dataset(X.astype(np.float32), y)


def sign_mnist_a_to_k(name, data):
    """Return A to K: labels 0 to 10 without 9. J needs a motion and is not in the data."""
    X, y, X_test, y_test = from_files("sign_mnist", data)
    if X_test is None:
        raise SystemExit("sign_mnist.npz: expected X_test and y_test too; found none")
    return Dataset(X[y <= 10], y[y <= 10], X_test[y_test <= 10], y_test[y_test <= 10])


def airlines_indicators(name, data):
    """Return Airlines with an indicator column for each airline, airport and day of the week."""
    X, y, *_ = from_files("airlines", data)
    nominal = [AIRLINES.index(column) for column in (*AIRLINES_NAMES, "DayOfWeek")]
    indicators = (X[:, [j]] == np.unique(X[:, j]) for j in nominal)
    return Dataset(np.hstack([np.delete(X, nominal, axis=1), *indicators], dtype=X.dtype), y)


def digits(name, data):
    X, y = load_digits(return_X_y=True)
    return Dataset(X[:1400].astype(np.float32), y[:1400], X[1400:].astype(np.float32), y[1400:])


UCI = "the UCI Machine Learning Repository: https://archive.ics.uci.edu/dataset"
MEDMNIST = "MedMNIST v2: https://medmnist.com"
SOURCES = {
    "covtype": Source(partial(read_csv, at=-1), 54, (("covtype.data",),), f"{UCI}/31/covertype"),
    "airlines": Source(
        None, 7, (), "OpenML: https://www.openml.org/d/1169, downloaded if it is missing"
    ),
    "higgs": Source(read_csv, 28, (("HIGGS.csv",),), f"{UCI}/280/higgs"),
    "susy": Source(read_csv, 18, (("SUSY.csv",),), f"{UCI}/279/susy"),
    "epsilon": Source(
        read_svmlight,
        2000,
        (("epsilon_normalized",), ("epsilon_normalized.t",)),
        "LIBSVM Data: https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html#epsilon",
    ),
    "tv_news": Source(
        read_tv_news,
        4125,
        (("BBC.txt", "CNN.txt", "CNNIBN.txt", "NDTV.txt", "TIMESNOW.txt"),),
        f"{UCI}/326/tv+news+channel+commercial+detection+dataset",
    ),
    "pbmc": Source(
        read_pbmc,
        50,
        (("pbmc_qc_final.txt", "pbmc_qc_final_labels.txt"),),
        "DensVis: http://cb.csail.mit.edu/cb/densvis/datasets/ in zheng_pbmc_data.tar.gz",
    ),
    "fashion_mnist": Source(
        read_images,
        784,
        (
            ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
            ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
        ),
        "Zalando Research: https://github.com/zalandoresearch/fashion-mnist",
    ),
    "sign_mnist": Source(
        partial(read_csv, header="label,"),
        784,
        (("sign_mnist_train.csv",), ("sign_mnist_test.csv",)),
        "Kaggle: https://www.kaggle.com/datasets/datamunge/sign-language-mnist",
    ),
    "path_mnist": Source(read_medmnist, 28 * 28 * 3, (("pathmnist.npz",),), MEDMNIST),
    "tissue_mnist": Source(read_medmnist, 28 * 28, (("tissuemnist.npz",),), MEDMNIST),
}
FETCHERS = {"covtype": fetch_forest_cover, "airlines": fetch_airlines}
MADE_OF = {"airlines_indicators": "airlines", "sign_mnist_ak": "sign_mnist"}
LOADERS = {
    **dict.fromkeys(SOURCES, from_files),
    "airlines_indicators": airlines_indicators,
    "sign_mnist_ak": sign_mnist_a_to_k,
    "digits": digits,
}
