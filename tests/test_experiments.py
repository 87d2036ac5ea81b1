"""The framework of the experiments: stored cells, tables, slopes and claims."""

import subprocess
import sys
from dataclasses import asdict, replace
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier

from experiments import (
    asides,
    cells,
    manifolds,
    memory,
    page,
    paper,
    parts,
    scaling,
    separability,
    table,
)
from experiments.__main__ import main, options_of

pytestmark = pytest.mark.experiments


class Counting:
    """An experiment of three cells that counts how often each is computed."""

    def __init__(self, fails_at=None, *, claim=True):
        self.computed, self.drawn = [], []
        self.fails_at, self.claim = fails_at, claim

    def cells(self, options):
        return [{"dataset": "none", "rows": rows} for rows in (1, 2, 3)]

    def compute(self, cell, path, options):
        if cell["rows"] == self.fails_at:
            raise KeyboardInterrupt
        self.computed.append(cell["rows"])
        return [{"square": float(cell["rows"] ** 2)}]

    def draw(self, rows, folder, options):
        self.drawn = [row["square"] for row in rows]

    def claims(self, rows, options):
        yield "squares are positive", self.claim


@pytest.fixture
def options(tmp_path):
    folders = {key: tmp_path / key for key in ("cache", "results", "figures")}
    return cells.Options(quick=True, **folders)


def test_a_finished_cell_is_not_computed_again(options, capsys):
    first = Counting(fails_at=3)
    with pytest.raises(KeyboardInterrupt):
        cells.run("counting", first, options)
    again = Counting()
    cells.run("counting", again, options)
    assert (first.computed, again.computed) == ([1, 2], [3])
    assert again.drawn == [1.0, 4.0, 9.0]
    assert "rows 1 ... kept" in capsys.readouterr().out


def test_cells_of_another_seed_are_others(options):
    """Cells of full runs are stored by seed. Stored files replace their processes here."""
    first = replace(options, quick=False)
    for seed in (0, 1):
        again = replace(first, seed=seed)
        kept = again.cache / f"seed-{seed}" / "counting"
        kept.mkdir(parents=True)
        for cell in Counting().cells(again):
            cells.keep([{"square": float(seed)}], kept / f"{cells.label(cell)}.json")
        experiment = Counting()
        cells.run("counting", experiment, again)
        assert experiment.drawn == [float(seed)] * 3


def test_results_come_back_from_the_csv_file(options):
    cells.run("counting", Counting(), options)
    known = [{"dataset": "none", "rows": n, "square": n**2} for n in (1, 2, 3)]
    assert cells.read_csv(options.results / "counting.csv") == known


def test_a_claim_that_does_not_hold_stops_the_run(options, capsys):
    with pytest.raises(cells.ClaimError, match="1 of the claims above do not hold"):
        cells.run("counting", Counting(claim=False), options)
    assert "FAILS: squares are positive" in capsys.readouterr().out


def test_the_way_of_a_full_run(tmp_path, rng):
    """Each cell runs in its own process, and a partial run does not change the full results."""
    data = tmp_path / "data"
    data.mkdir()
    y = rng.integers(0, 2, 400)
    np.savez(data / "covtype.npz", X=rng.normal(size=(400, 3)) + y[:, None], y=y)
    words = ["accuracy", "--data", data, "--datasets", "covtype", "--max-rows", 200]
    words += ["--repeats", 1, "--seed", 3, "--cache", tmp_path / "cache"]
    command = [sys.executable, "-m", "experiments", *map(str, words)]
    root = Path(cells.HERE).parent
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "holds: GAP's test accuracy is the forest's" in done.stdout
    found = cells.read_csv(tmp_path / "cache" / "results" / "accuracy.csv")
    assert [row["predictor"] for row in found] == list(paper.PREDICTORS)
    assert {row["rows"] for row in found} == {200}
    assert min(row["accuracy"] for row in found) > 0.6
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert "rows 200, repeat 0 ... kept" in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["accuracy", "--datasets", "covertype"], "invalid choice: 'covertype'"),
        (["accuracy", "--repeats", "0"], "must be 1 or more, not 0"),
        (["accuracy", "--data", "nowhere"], "there is no folder nowhere"),
        (["scaling", "--forestgeom", "nowhere"], "there is no nowhere"),
        (["scaling", "--forestgeom", sys.executable], "cannot import forestgeom"),
        (["all", "--quick", "--max-rows", "9"], "--quick has data and sizes of its own"),
    ],
)
def test_what_cannot_be_run_is_told_at_once(words, told, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["experiments", *words])
    with pytest.raises(SystemExit):
        main()
    assert told in capsys.readouterr().err


def test_an_experiment_without_cells_leaves_results_alone(options, capsys):
    nothing = SimpleNamespace(cells=lambda options: [])
    assert not cells.run("nothing", nothing, options)
    assert "none of its data sets was asked for" in capsys.readouterr().out
    assert not options.results.exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["separability"], "separability needs sign_mnist_ak:\nsign_mnist needs a folder"),
        (["manifolds"], "fashion_mnist needs a folder"),
        (["accuracy", "--datasets", "higgs"], "accuracy knows none of higgs"),
    ],
)
def test_what_is_missing_is_told_before_any_work(words, told, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["experiments", *words, "--cache", str(tmp_path)])
    with pytest.raises(SystemExit, match=told):
        main()
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.parametrize(
    ("names", "words", "whole"),
    [
        (["accuracy"], {}, True),
        (["accuracy"], {"seed": 4}, False),
        (["accuracy"], {"repeats": 1}, False),
        (["accuracy"], {"max_rows": 9}, False),
        (["accuracy", "scaling"], {}, False),
        (["accuracy", "scaling"], {"forestgeom": Path("python")}, True),
    ],
)
def test_a_part_leaves_the_results_of_the_whole_alone(names, words, whole):
    known = {**asdict(cells.Options()), "results": None, "figures": None}
    found = options_of(names, {**known, **words})
    assert (found.results == cells.Options().results) == whole
    assert (found.figures == cells.Options().figures) == whole


def test_a_file_with_too_few_rows_is_told(options):
    with pytest.raises(SystemExit, match="20,000 training rows wanted, 10,800 found"):
        parts.train_and_test("synthetic", 20_000, 0, options)


def test_separability_against_every_pair(iris):
    """R and the errors, from counts computed pair by pair."""
    X, y = iris
    forest = RandomForestClassifier(30, random_state=0).fit(X, y)
    found = separability.compare(forest, X, y, 1)
    oob = np.ones((len(y), 30), bool)
    for tree, drawn in enumerate(forest.estimators_samples_):
        oob[drawn, tree] = False
    leaf = forest.apply(X)
    ratios, squares, never = [], [0.0, 0.0], 0
    for i, j in permutations(range(len(y)), 2):
        shared = np.sum(oob[i] & oob[j])
        never += shared == 0
        if shared:
            proxy = oob[i].sum() * oob[j].sum() / 30
            both = np.sum(oob[i] & oob[j] & (leaf[i] == leaf[j]))
            ratios.append(shared / proxy)
            squares[0] += (both / shared - both / proxy) ** 2
            squares[1] += (both / shared) ** 2
    assert found["ratio_mean"] == pytest.approx(np.mean(ratios), rel=1e-5)
    assert found["ratio_sd"] == pytest.approx(np.std(ratios), rel=1e-5)
    assert found["error_frobenius"] == pytest.approx(np.sqrt(squares[0] / squares[1]), rel=1e-5)
    assert found["pairs_never_out_together"] == pytest.approx(never / (150 * 149))
    assert found["limit"] == pytest.approx((1 - 2 / 150) ** 150 / (1 - 1 / 150) ** 300)


def test_accuracies_are_those_of_nearest_neighbors(iris):
    X, y = iris
    found = manifolds.accuracies(X[::2], y[::2], X[1::2], y[1::2])
    for k in (5, 10, 20):
        score = KNeighborsClassifier(k).fit(X[::2], y[::2]).score(X[1::2], y[1::2])
        assert found[f"accuracy_{k}"] == pytest.approx(score)
    assert found["accuracy"] == pytest.approx(
        np.mean([found[f"accuracy_{k}"] for k in (5, 10, 20)])
    )


@pytest.mark.parametrize("name", page.PAGES)
def test_the_page_is_what_the_results_give(name):
    """After a change of results or text, run `python -m experiments page`."""
    written = cells.HERE.parent / "docs" / name
    assert written.read_text(encoding="utf-8") == page.text(page.PAGES[name])


def test_slopes_in_the_words_of_the_page(capsys):
    asides.growth()
    told = capsys.readouterr().out.splitlines()
    shared = [line for line in told if line.startswith("slope of time on shared sizes: covtype")]
    for library in ("leafkernel", "forestgeom"):
        slopes = [line.split(": ")[-1] for line in shared if library in line]
        assert f"{min(slopes)} to {max(slopes)}" in page.text()
    for dataset in ("fashion_mnist", "sign_mnist"):
        slope = next(line for line in told if f"numbers: {dataset}, leafkernel" in line)[-4:]
        assert f" {slope} " in page.text()


def test_sizes_end_with_the_largest():
    assert cells.Options().sizes((10, 20, 40), 30) == [10, 20, 30]
    assert cells.Options(max_rows=20).sizes((10, 20, 40), 30) == [10, 20]


def test_means_and_slopes():
    rows = [{"n": n, "seconds": n**1.25 * factor} for n in (10, 100, 1000) for factor in (1, 3)]
    found = table.means([*rows, {"n": 10, "seconds": ""}], ("n",), "seconds")
    assert found[10,].mean == pytest.approx(2 * 10**1.25)
    assert found[10,].sd == pytest.approx(np.sqrt(2) * 10**1.25)
    assert found[10,].count == 2
    assert table.slope(
        *zip(*[(n, s.mean) for (n,), s in found.items()], strict=True)
    ) == pytest.approx(1.25)


def test_predictors_are_compared_where_they_differ_most():
    accuracies = {("a", "gap"): 0.9, ("a", "forest"): 0.9, ("b", "gap"): 0.7, ("b", "forest"): 0.8}
    found = {key: table.Spread(mean, 0.0, 1) for key, mean in accuracies.items()}
    assert table.farthest(found, "gap", "forest") == pytest.approx(0.1)


def test_a_size_that_is_not_there_is_not_measured_under_its_name():
    """A folder may contain only a part of a data set."""
    cell = scaling.cell("synthetic", "leafkernel", scaling.PLAIN, 16_384, 32_768, 0)
    assert scaling.compute(cell, None, cells.Options()) == []


def test_peak_memory_is_above_what_is_held():
    before = memory.reset_peak()
    if np.isnan(before):
        pytest.skip("this system does not tell the peak")
    block = np.ones(4_000_000)
    peak = memory.peak() - before
    assert 0.9 * block.nbytes < peak < 1.5 * block.nbytes


def test_train_and_test_rows_do_not_meet(options):
    X, y, X_test, y_test = parts.train_and_test("synthetic", 500, 0, options)
    assert len(X) == len(y) == 500
    assert len(X_test) == len(y_test) == 1_200
    assert not {row.tobytes() for row in X} & {row.tobytes() for row in X_test}


def test_the_papers_table_is_whole():
    assert len(paper.ACCURACY) == 2 * 6 * 5
    assert paper.ACCURACY["covtype", 65_536, "oob_separable"] == (0.850, 0.003)
    assert all(0.5 < mean < 1 and 0 < sd < 0.01 for mean, sd in paper.ACCURACY.values())


def test_what_differs_from_the_paper():
    assert not page.differs(table.Spread(0.630, 0.002, 5), 0.632, 0.002)
    assert page.differs(table.Spread(0.630, 0.002, 5), 0.637, 0.002)
