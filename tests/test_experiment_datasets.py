"""Loaders of the experiments' data sets, on small files as their publishers would write them."""

import bz2
import gzip
import lzma
import struct
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from experiments import datasets

pytestmark = pytest.mark.experiments

CHANNELS = ("BBC", "CNN", "CNNIBN", "NDTV", "TIMESNOW")


def table(rng, n_rows, n_columns, n_classes=2):
    """Return whole numbers, which float32 and text hold exactly, and labels."""
    X = rng.integers(0, 256, (n_rows, n_columns))
    return X, np.arange(n_rows) % n_classes


def csv(X, y, *, last=False):
    """Write as UCI does: '1.000000000000000000e+00,...', the label first or last."""
    columns = (X, y[:, None]) if last else (y[:, None], X)
    return "".join(
        ",".join(f"{value:.18e}" for value in row) + "\n" for row in np.hstack(columns)
    ).encode()


def kaggle(X, y):
    header = ",".join(["label", *(f"pixel{i + 1}" for i in range(X.shape[1]))])
    rows = (",".join(map(str, row)) for row in np.column_stack([y, X]))
    return "\n".join([header, *rows, ""]).encode()


def libsvm(X, y):
    """Write as LIBSVM does, from column 1 and without zeros."""
    lines = (
        f"{label:d} " + " ".join(f"{j + 1}:{row[j]}" for j in np.flatnonzero(row))
        for row, label in zip(X, y, strict=True)
    )
    return "".join(f"{line}\n" for line in lines).encode()


def idx(array):
    header = b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


def check(part, X, y):
    found_X, found_y = part
    assert found_X.dtype == np.float32
    assert_array_equal(found_X, X)
    assert_array_equal(found_y, y)


def message(name, folder):
    with pytest.raises(SystemExit) as caught:
        datasets.load(name, folder)
    return str(caught.value)


@pytest.fixture(autouse=True)
def few_rows_at_a_time(monkeypatch):
    monkeypatch.setattr(datasets, "ROWS", 3)


def write_fashion_mnist(folder, rng):
    parts = [table(rng, n, 784, 10) for n in (7, 4)]
    for start, (X, y) in zip(("train", "t10k"), parts, strict=True):
        images = idx(X.reshape(-1, 28, 28))
        (folder / f"{start}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        (folder / f"{start}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(y)))
    return parts


def write_sign_mnist(folder, rng):
    parts = [(table(rng, n, 784)[0], 4 * np.arange(n)) for n in (7, 5)]
    for part, (X, y) in zip(("train", "test"), parts, strict=True):
        (folder / f"sign_mnist_{part}.csv").write_bytes(kaggle(X, y))
    return parts


def write_epsilon(folder, rng):
    parts = []
    for name, n_rows in (("epsilon_normalized.bz2", 8), ("epsilon_normalized.t.xz", 4)):
        X, y = table(rng, n_rows, 2000)
        X[:, -1] += 1
        parts.append((X, 2 * y - 1))
        pack = bz2.compress if name.endswith("bz2") else lzma.compress
        (folder / name).write_bytes(pack(libsvm(*parts[-1])))
    return parts


def write_pbmc(folder, rng):
    X, y = table(rng, 7, 50, 3)
    X = X - 100.5
    lines = ("\t".join(map(str, row)) for row in X)
    (folder / "pbmc_qc_final.txt").write_text("\n".join(lines) + "\n")
    names = np.array(["b_cells", "cd14_monocytes", "naive_t"])
    (folder / "pbmc_qc_final_labels.txt").write_text("\n".join(names[y]) + "\n")
    return [(X, y)]


def write_medmnist(folder, rng, file="tissuemnist.npz", shape=(28, 28)):
    arrays, parts = {}, []
    for part, n_rows in (("train", 6), ("val", 3), ("test", 4)):
        X, y = table(rng, n_rows, int(np.prod(shape)), 3)
        arrays[f"{part}_images"] = X.reshape(n_rows, *shape).astype(np.uint8)
        arrays[f"{part}_labels"] = y[:, None].astype(np.uint8)
        parts += [] if part == "val" else [(X, y)]
    np.savez(folder / file, **arrays)
    return parts


def write_path_mnist(folder, rng):
    return write_medmnist(folder, rng, "pathmnist.npz", (28, 28, 3))


WRITERS = {
    "fashion_mnist": write_fashion_mnist,
    "sign_mnist": write_sign_mnist,
    "epsilon": write_epsilon,
    "pbmc": write_pbmc,
    "path_mnist": write_path_mnist,
    "tissue_mnist": write_medmnist,
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_files_of_a_publisher(tmp_path, rng, name):
    parts = WRITERS[name](tmp_path, rng)
    before = sorted(tmp_path.iterdir())
    found = datasets.load(name, str(tmp_path))
    assert sorted(tmp_path.iterdir()) == before
    check(found[:2], *parts[0])
    if len(parts) == 2:
        check(found[2:], *parts[1])
    else:
        assert found.X_test is None
        assert found.y_test is None


def test_files_in_a_folder_of_the_name(tmp_path, rng):
    folder = tmp_path / "pbmc"
    folder.mkdir()
    parts = write_pbmc(folder, rng)
    check(datasets.load("pbmc", tmp_path)[:2], *parts[0])


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "file", "n_columns"),
    [("higgs", "HIGGS.csv", 28), ("susy", "SUSY.csv", 18), ("covtype", "covtype.data", 54)],
)
def test_tables_of_uci(tmp_path, rng, name, file, n_columns, ending):
    X, y = table(rng, 20, n_columns)
    content = csv(X, y, last=name == "covtype")
    (tmp_path / (file + ending)).write_bytes(gzip.compress(content) if ending else content)
    dataset = datasets.load(name, tmp_path)
    check(dataset[:2], X, y)
    X_train, y_train, X_test, y_test = datasets.split(dataset, 0)
    assert (len(X_train), len(X_test)) == (18, 2)
    assert_array_equal(np.bincount(y_train), [9, 9])
    assert_array_equal(np.bincount(y_test), [1, 1])


def test_tv_news_keeps_the_columns_that_occur(tmp_path, rng):
    wide, labels = np.zeros((15, 4125), int), np.where(rng.random(15) < 0.5, -1, 1)
    occurring = [0, 1, 17, 500, 4122, 4124]
    wide[:, occurring] = rng.integers(1, 9, (15, 6))
    wide[:12, 500] = 0  # an audio word of the last channel alone
    for number, channel in enumerate(CHANNELS):
        rows = slice(3 * number, 3 * number + 3)
        content = libsvm(wide[rows], labels[rows]).replace(b" ", b"  ", 1)
        (tmp_path / f"{channel}.txt").write_bytes(content)
    dataset = datasets.load("tv_news", tmp_path)
    check(dataset[:2], wide[:, occurring], labels)


@pytest.mark.parametrize("name", [*datasets.SOURCES])
def test_npz_goes_before_all_else(tmp_path, rng, name):
    X, y = table(rng, 20, 5)
    arrays = {"X": X.astype(np.int16), "y": y.astype(np.uint8), "feature_names": np.array(["a"])}
    np.savez(tmp_path / f"{name}.npz", **arrays)
    if name in WRITERS:
        WRITERS[name](tmp_path, rng)
    dataset = datasets.load(name, tmp_path)
    check(dataset[:2], X, y)
    assert dataset.y.dtype == np.uint8
    assert dataset.X_test is None
    np.savez(tmp_path / f"{name}.npz", **arrays, X_test=X[:3], y_test=y[:3])
    check(datasets.split(datasets.load(name, tmp_path), 0)[2:], X[:3], y[:3])


def test_sign_mnist_from_a_to_k(tmp_path, rng):
    (X, y), (X_test, y_test) = write_sign_mnist(tmp_path, rng)
    dataset = datasets.load("sign_mnist_ak", tmp_path)
    check(dataset[:2], X[y <= 10], y[y <= 10])
    check(dataset[2:], X_test[y_test <= 10], y_test[y_test <= 10])


def test_names_and_days_of_airlines_as_indicators(tmp_path):
    X = np.array([[2, 269, 1, 1, 3, 15, 205], [0, 1558, 0, 1, 7, 20, 222], [2, 24, 1, 0, 1, 30, 5]])
    np.savez(tmp_path / "airlines.npz", X=X, y=[1, 0, 1])
    dataset = datasets.load("airlines_indicators", tmp_path)
    rows = [
        [269, 15, 205, *(0, 1), *(0, 1), *(0, 1), *(0, 1, 0)],
        [1558, 20, 222, *(1, 0), *(1, 0), *(0, 1), *(0, 0, 1)],
        [24, 30, 5, *(0, 1), *(0, 1), *(1, 0), *(1, 0, 0)],
    ]
    check(dataset[:2], rows, [1, 0, 1])


def test_digits_need_no_folder():
    X, _, X_test, y_test = datasets.load("digits")
    assert (X.shape, X_test.shape, y_test.shape) == ((1400, 64), (397, 64), (397,))


def test_draw_takes_rows_of_the_training_part(rng):
    X, _ = table(rng, 50, 3)
    drawn, labels = datasets.draw(X, np.arange(50), 20, seed=4)
    assert len(set(labels)) == 20
    assert_array_equal(drawn, X[labels])


def test_without_a_folder_openml_has_the_airlines(monkeypatch):
    X = pd.DataFrame(
        {
            "Airline": pd.Categorical(["US", "AA", "DL"], ["US", "AA", "DL"]),
            "Flight": [269.0, 1558.0, 2400.0],
            "AirportFrom": pd.Categorical(["SFO", "ATL", "SFO"]),
            "AirportTo": pd.Categorical(["IAH", "IAH", "CLT"]),
            "DayOfWeek": pd.Categorical(["3", "7", "1"]),
            "Time": [15.0, 20.0, 30.0],
            "Length": [205.0, 222.0, 165.0],
        }
    )
    told = {}

    def fetch(**options):
        told.update(options)
        return X, pd.Series(pd.Categorical(["1", "0", "1"]), name="Delay")

    monkeypatch.setattr(datasets, "fetch_openml", fetch)
    dataset = datasets.load("airlines")
    assert told["data_id"] == 1169
    rows = [[2, 269, 1, 1, 3, 15, 205], [0, 1558, 0, 1, 7, 20, 222], [1, 2400, 1, 0, 1, 30, 165]]
    check(dataset[:2], rows, [1, 0, 1])


def test_without_a_folder_scikit_learn_has_covtype(monkeypatch, rng):
    X, y = table(rng, 5, 54)
    monkeypatch.setattr(datasets, "fetch_covtype", lambda return_X_y: (X.astype(float), y))
    check(datasets.load("covtype")[:2], X, y)


@pytest.mark.parametrize("name", sorted({*datasets.SOURCES} - {*datasets.FETCHERS}))
def test_what_is_missing_is_named(tmp_path, name):
    text = message(name, tmp_path)
    for part in (name, str(tmp_path), f"{name}.npz", "https://" if name != "pbmc" else "http://"):
        assert part in text
    for files in datasets.SOURCES[name].parts:
        for file in files:
            assert file in text
            assert file.endswith(".npz") or f"{file}.gz" in text
    assert "--data DIR" in message(name, None)


def test_one_of_two_files_is_not_enough(tmp_path, rng):
    write_sign_mnist(tmp_path, rng)
    (tmp_path / "sign_mnist_test.csv").unlink()
    text = message("sign_mnist", tmp_path)
    assert "sign_mnist_train.csv.xz (found)" in text
    assert "sign_mnist_test.csv.xz (found)" not in text


GOOD = csv(np.arange(8 * 28).reshape(8, 28) / 7, np.arange(8) % 2)
WRONG_TABLES = {
    "more columns": (GOOD.replace(b"\n", b",1\n"), "30 columns"),
    "no label": (b"\n".join(line.split(b",", 1)[1] for line in GOOD.splitlines()), "28 columns"),
    "an empty label": (GOOD + b"," * 28 + b"\n", "row 9"),
    "a row cut short": (GOOD[:-60], "row 8"),
    "a row too long": (GOOD + b"1," * 29 + b"1\n", "saw 30"),
    "features first": (
        b"".join(b"0.25," + line.split(b",", 1)[1] for line in GOOD.splitlines(keepends=True)),
        "0.25 as a label",
    ),
    "a header": (b"a," * 28 + b"a\n" + GOOD, "'a'"),
    "a page": (b"<!DOCTYPE html>\n<html></html>\n", "DOCTYPE"),
    "nothing": (b"", "No columns"),
}


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("case", WRONG_TABLES)
def test_a_wrong_table(tmp_path, case, ending):
    content, found = WRONG_TABLES[case]
    path = tmp_path / f"HIGGS.csv{ending}"
    path.write_bytes(gzip.compress(content) if ending else content)
    text = message("higgs", tmp_path)
    assert str(path) in text
    assert "expected" in text
    assert found in text.split("found: ")[1]


@pytest.mark.parametrize("damage", [lambda x: x[:-20], lambda x: x[:40], lambda x: b"PK" + x])
@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize(
    ("name", "file", "write"),
    [("higgs", "HIGGS.csv", csv), ("epsilon", "epsilon_normalized", libsvm)],
)
def test_a_damaged_packed_file(tmp_path, rng, name, file, write, ending, damage):
    (tmp_path / "epsilon_normalized.t").touch()
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[ending]
    path = tmp_path / (file + ending)
    path.write_bytes(damage(pack(write(*table(rng, 8, datasets.SOURCES[name].columns)))))
    text = message(name, tmp_path)
    assert str(path) in text
    assert len(text.split("found: ")[1]) > 5


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"1 1:2 2001:3\n", "2001 features"),
        (b"1 1:2 1999:3\n" * 5, "1999 columns"),
        (b"1:2 2000:3\n", "1:2"),
        (b"0.5 1:2 2000:3\n", "0.5 as a label"),
        (b"1 0:2 2000:3\n", "index 0"),
        (b"1,2,3\n", "1,2,3"),
        (b"", "empty"),
    ],
)
def test_a_wrong_libsvm_file(tmp_path, content, found):
    (tmp_path / "epsilon_normalized.t").touch()
    path = tmp_path / "epsilon_normalized"
    path.write_bytes(content)
    text = message("epsilon", tmp_path)
    assert str(path) in text
    assert found in text.split("found: ")[1]


def test_a_wrong_channel(tmp_path):
    for channel in CHANNELS:
        (tmp_path / f"{channel}.txt").write_text("1 1:2 4125:3\n-1 1:3\n")
    (tmp_path / "NDTV.txt").write_text("1 1:2 4126:3\n")
    text = message("tv_news", tmp_path)
    assert "NDTV.txt" in text
    assert "4126 features" in text


def test_sign_mnist_without_its_header(tmp_path, rng):
    write_sign_mnist(tmp_path, rng)
    path = tmp_path / "sign_mnist_test.csv"
    path.write_bytes(path.read_bytes().split(b"\n", 1)[1])
    text = message("sign_mnist", tmp_path)
    assert str(path) in text
    assert "label" in text.split("found: ")[1]


@pytest.mark.parametrize(
    ("labels", "found"),
    [("a\nb\n", "7 rows and 2 labels"), ("a\n\n" + "b\n" * 5, "line 2"), ("", "0 labels")],
)
def test_pbmc_with_wrong_labels(tmp_path, rng, labels, found):
    write_pbmc(tmp_path, rng)
    (tmp_path / "pbmc_qc_final_labels.txt").write_text(labels)
    text = message("pbmc", tmp_path)
    assert "pbmc_qc_final_labels.txt" in text
    assert found in text


@pytest.mark.parametrize(
    ("file", "content", "found"),
    [
        ("train-labels-idx1-ubyte", idx(np.arange(6)), "7 rows and 6 labels"),
        ("train-images-idx3-ubyte", idx(np.zeros((7, 28, 27))), "756 columns"),
        ("train-images-idx3-ubyte", idx(np.zeros((7, 28, 28)))[:-1], "reshape"),
        ("t10k-images-idx3-ubyte", idx(np.zeros((7, 28, 28)))[:9], "smaller"),
        ("t10k-labels-idx1-ubyte", b"\x89PNG\r\n", "another kind"),
        ("t10k-labels-idx1-ubyte", b"", "another kind"),
    ],
)
def test_wrong_images(tmp_path, rng, file, content, found):
    write_fashion_mnist(tmp_path, rng)
    (tmp_path / file).write_bytes(content)
    text = message("fashion_mnist", tmp_path)
    assert file in text
    assert found in text.split("found: ")[1]


def test_wrong_medmnist(tmp_path, rng):
    write_medmnist(tmp_path, rng)
    path = tmp_path / "tissuemnist.npz"
    with np.load(path) as file:
        arrays = dict(file)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert "part of one" in message("tissue_mnist", tmp_path)
    labels = arrays.pop("test_labels")
    np.savez(path, **arrays)
    assert "test_labels" in message("tissue_mnist", tmp_path)
    images = arrays["train_images"].repeat(2, axis=1)
    np.savez(path, **{**arrays, "test_labels": labels, "train_images": images})
    text = message("tissue_mnist", tmp_path)
    assert str(path) in text
    assert "1568 columns" in text


@pytest.mark.parametrize(
    ("arrays", "found"),
    [
        ({"X": np.ones((4, 2))}, "y"),
        ({"X": np.ones((4, 2)), "y": np.ones(3)}, "4 rows and 3 labels"),
        ({"X": np.ones((4, 2)), "y": np.ones(4), "X_test": np.ones((4, 2))}, "y_test"),
        (
            {
                "X": np.ones((4, 2)),
                "y": np.ones(4),
                "X_test": np.ones((1, 3)),
                "y_test": np.ones(1),
            },
            "3",
        ),
        ({"X": np.array([["a"]]), "y": np.ones(1)}, "'a'"),
        ({"X": np.ones((1, 1)), "y": np.array([None])}, "allow_pickle"),
    ],
)
def test_a_wrong_npz(tmp_path, arrays, found):
    np.savez(tmp_path / "airlines.npz", **arrays)
    text = message("airlines", tmp_path)
    assert str(tmp_path / "airlines.npz") in text
    assert found in text.split("found: ")[1]


def test_what_is_available(tmp_path):
    assert datasets.available("covtype")
    assert not datasets.available("higgs")
    assert not datasets.available("higgs", tmp_path)
    (tmp_path / "HIGGS.csv.gz").touch()
    assert datasets.available("higgs", tmp_path)
    np.savez(tmp_path / "susy.npz", X=np.ones((2, 18)), y=[0, 1])
    assert datasets.available("susy", tmp_path)
    assert datasets.available("airlines", tmp_path)  # scikit-learn downloads it
    assert not datasets.available("sign_mnist_ak", tmp_path)
    np.savez(tmp_path / "sign_mnist.npz", X=np.ones((2, 784)), y=[0, 1])
    assert datasets.available("sign_mnist_ak", tmp_path)


@pytest.mark.parametrize("name", [*datasets.FETCHERS])
def test_what_cannot_be_downloaded_is_told(tmp_path, monkeypatch, name):
    def fetch():
        raise URLError("no route to host")

    monkeypatch.setitem(datasets.FETCHERS, name, fetch)
    text = message(name, tmp_path)
    assert "could not be downloaded" in text
    assert "no route to host" in text
    assert f"{name}.npz" in text
