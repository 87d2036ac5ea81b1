"""Save fitted proximities to disk as plain arrays, and load them memory-mapped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import leafkernel._native as core
from leafkernel import forests
from leafkernel._progress import track
from leafkernel._targets import Targets
from leafkernel._validation import check_dtype
from leafkernel.incidence import Incidence, WeighedRows
from leafkernel.inside import Inside
from leafkernel.kernel import LeafKernel
from leafkernel.leaf_index import ForestStats, LeafIndex, Samples
from leafkernel.leaf_maps import weigh
from leafkernel.parts import PartedIndex, cuts_of, parts_of
from leafkernel.saving._folder import (
    MANIFEST,
    DamagedError,
    FolderReader,
    FolderWriter,
    check_folder,
    reading,
    writing,
)
from leafkernel.saving._forest import read_forest, write_forest
from leafkernel.saving._labels import read_index, read_values, write_index, write_values
from leafkernel.schemes import Collapsed, TreeNodes, WeightScheme, find_scheme
from leafkernel.weighted_nodes import find_nodes
from leafkernel.weighting import Weighting

__all__ = ["MANIFEST", "DamagedError", "check_folder", "read", "verify", "write"]

_SAMPLES = (
    "leaf",
    "in_bag_weights",
    "oob_flags",
    "feature_values",
    "labels",
    "leaf_parts",
    "targets",
)
_STATS = (
    "leaf_offsets",
    "leaf_mass",
    "in_bag_masses",
    "weights_of_trees",
    "base_scores_of_outputs",
    "outputs_of_trees",
    "labels_of_outputs",
    "link_of_outputs",
    "learned",
)
_NODES = ("offsets", "parent", "depth", "feature", "of_leaf")
_FACTORS = ("by_sample", "by_leaf", "by_entry")
_LISTS = ("offsets", "members", "weights", "sample_at")
_PARAMS = ("diagonal", "symmetrize", "n_jobs", "max_memory", "progress")


def write(
    inside: Inside,
    folder: str | os.PathLike[str],
    *,
    begun: Path | None = None,
    there: dict[str, Any] | None = None,
    identity: str = "",
    with_forest: bool = True,
) -> None:
    """Write a fitted proximity to a folder.

    Parameters
    ----------
    inside : Inside
        The fitted proximity.
    folder : str or path-like
        The folder.
    begun : Path, default=None
        A data folder that already contains some of the arrays.
    there : dict of str to ndarray, default=None
        Arrays that are already in that folder, by name. They are not written again.
    identity : str, default=""
        Text that identifies the fit.
    with_forest : bool, default=True
        Whether to write the forest. Without it, loading requires the forest.
    """
    prox, kernel, samples, stats = inside.prox, inside.kernel, inside.samples, inside.stats
    values: dict[str, Any] = {}
    with writing(Path(folder), values, begun) as writer:
        put = writer.array
        for name, array in (there or {}).items():
            writer.adopt(name, array)
        values["identity"] = identity
        values["params"] = {name: getattr(prox, name) for name in _PARAMS}
        kept = inside.fitted_with
        values["params"].update(diagonal=kept["diagonal"], symmetrize=kept["symmetrize"])
        values["params"]["dtype"] = kernel.dtype.name
        values["params"]["engine"] = prox.engine if isinstance(prox.engine, str) else "auto"
        values["scheme"] = _write_scheme(writer, inside.scheme)
        values["forest"] = {"kind": "absent", "name": str(inside.forest)}
        if with_forest:
            values["forest"] = write_forest(writer, prox.forest_, inside.forest)
        # The targets passed to fit have the file name "targets".
        files = {"targets": "coded_targets"}
        values["samples"] = {
            name: put(files.get(name, name), getattr(samples, name)) for name in _SAMPLES
        }
        values["stats"] = {name: put(name, getattr(stats, name)) for name in _STATS}
        paths = stats.features_on_paths
        values["paths"] = (
            None
            if paths is None
            else [put("path_offsets", paths[0]), put("path_features", paths[1])]
        )
        nodes = stats.nodes_of_trees
        values["nodes"] = (
            None
            if nodes is None
            else {name: put(f"node_{name}", getattr(nodes, name)) for name in _NODES}
        )
        values["query"] = _write_weights(writer, "query", kernel.query)
        values["reference"] = _write_weights(writer, "reference", kernel.reference)
        values["lists"] = [
            {name: put(f"part{i}_{name}", getattr(part.lists, name)) for name in _LISTS}
            for i, part in enumerate(parts_of(kernel.index))
        ]
        values["own_diagonal"] = put("own_diagonal", kernel.own_diagonal)
        values["packed_oob"] = put("packed_oob", kernel.packed_oob)
        values["sample_weight"] = put("sample_weight", inside.sample_weight)
        values["targets"] = write_values(writer, "targets", prox.y_)
        values["index"] = write_index(writer, prox.index_)
        values["n_features"] = int(prox.n_features_in_)
        names = getattr(prox, "feature_names_in_", None)
        values["feature_names"] = None if names is None else [str(name) for name in names]


def read(
    folder: str | os.PathLike[str],
    *,
    weight_scheme: Any = None,
    forest: Any = None,
    trusted: Sequence[str] = (),
    verify: bool = True,
) -> dict[str, Any]:
    """Return the attributes of a fitted proximity from a folder.

    Parameters
    ----------
    folder, weight_scheme, forest, trusted, verify
        As in ``ForestProximity.load``.

    Returns
    -------
    dict
        The attributes by name.
    """
    return reading(
        Path(folder), lambda reader: _read(reader, weight_scheme, forest, trusted), verify=verify
    )


def identity_of(folder: str | os.PathLike[str]) -> str:
    """Return the identity of a saved proximity, or "" if there is none."""
    if not (Path(folder) / MANIFEST).exists():
        return ""
    found = reading(
        Path(folder), lambda reader: {"": reader.values.get("identity", "")}, verify=False
    )
    return str(found[""])


def verify(folder: str | os.PathLike[str]) -> None:
    """Verify the checksums of a saved proximity.

    Use it after loading with ``verify=False``.

    Parameters
    ----------
    folder : str or path-like
        A folder written by ``ForestProximity.save``.

    Raises
    ------
    DamagedError
        If a file does not match its checksum.

    Examples
    --------
    >>> import tempfile
    >>> from leafkernel import ForestProximity, saving
    >>> prox = ForestProximity.from_leaves([[1, 4], [1, 5], [2, 5]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saving.verify(prox.save(folder))
    """
    reading(Path(folder), lambda _: {}, verify=True)


def _read(
    reader: FolderReader, weight_scheme: Any, forest: Any, trusted: Sequence[str]
) -> dict[str, Any]:
    values = reader.values
    params = dict(values["params"])
    scheme = _read_scheme(reader, values["scheme"], weight_scheme)
    estimator, router = read_forest(reader, values["forest"], forest, trusted)
    router = forests.adapt(estimator) if router is None else router
    samples = Samples(**_arrays(reader, values["samples"]))
    paths = values["paths"]
    stats = ForestStats(
        **_arrays(reader, values["stats"]),
        features_on_paths=None if paths is None else (reader.need(paths[0]), reader.need(paths[1])),
        nodes_of_trees=_read_nodes(reader),
        track=partial(track, enabled=params["progress"]),
    )
    if not np.array_equal(router.leaf_offsets, stats.leaf_offsets):
        raise ValueError(
            f"forest={router} has other leaves than the forest of the saved proximity. Pass the "
            "same model."
        )
    kernel = _read_kernel(reader, scheme, samples, stats, params)
    targets = Targets(None)
    targets.values = read_values(reader, values["targets"])
    return {
        **params,
        "dtype": kernel.dtype.type,
        "forest": estimator,
        "weight_scheme": scheme,
        "scheme_": scheme,
        "forest_": estimator,
        "kernel_": kernel,
        "n_trees_": stats.n_trees,
        "n_leaves_": stats.n_leaves,
        "n_samples_fit_": samples.n_samples,
        "n_features_in_": values["n_features"],
        **_named(values["feature_names"]),
        "y_": targets.values,
        "index_": read_index(reader, values["index"]),
        "_targets": targets,
        "_samples": samples,
        "_sample_weight": reader.array(values["sample_weight"]),
        "_router": router,
        "_fitted_with": {
            "weight_scheme": scheme,
            "diagonal": params["diagonal"],
            "symmetrize": params["symmetrize"],
            "dtype": kernel.dtype.type,
        },
    }


def _read_nodes(reader: FolderReader) -> TreeNodes | None:
    told = reader.values.get("nodes")  # older folders have no nodes
    return None if told is None else TreeNodes(**{name: reader.need(told[name]) for name in _NODES})


def _read_kernel(
    reader: FolderReader,
    scheme: WeightScheme,
    samples: Samples,
    stats: ForestStats,
    params: dict[str, Any],
) -> LeafKernel:
    values, dtype = reader.values, check_dtype(params["dtype"])
    symmetrized = params["symmetrize"] and not scheme.symmetric
    of_forest, cells = stats, scheme.cells(stats)
    first = samples.rows(slice(0, 1))
    if cells is not None:
        first, stats = cells.samples(first), cells.stats(stats)
    if cells is None and not symmetrized:
        incidence = samples.incidence_in(stats.coordinates)
    else:
        columns = reader.need(values["query"]["columns"])
        coordinates = stats.coordinates
        incidence = Incidence.of(columns, coordinates.twice if symmetrized else coordinates)
    query = _read_weights(reader, values["query"], incidence)
    # Compute the leaf factors of the scheme once, for all later queries.
    weights, asked = weigh(scheme, "query", first, stats, dtype)
    lent = asked if scheme.symmetric else weigh(scheme, "reference", first, stats, dtype)[1]
    if asked is not None and not symmetrized:
        query = replace(query, weighting=replace(query.weighting, by_leaf=weights.by_leaf))
    same = values["reference"] == values["query"]
    reference = query if same else _read_weights(reader, values["reference"], incidence)
    index = _read_index(reader, reference, values["lists"])
    packed_oob = reader.array(values["packed_oob"])
    return LeafKernel(
        scheme=scheme,
        forest=of_forest,
        query=query,
        reference=reference,
        index=index,
        dtype=dtype,
        symmetrize=symmetrized,
        own_diagonal=reader.array(values["own_diagonal"]),
        packed_oob=packed_oob,
        oob_by_place=None if packed_oob is None else packed_oob[index.sample_at],
        leaf_factors=(asked, lent),
        cells=cells,
        nodes=find_nodes(scheme, of_forest),
    )


def _read_index(reader: FolderReader, reference: WeighedRows, told: Any) -> LeafIndex | PartedIndex:
    of_parts = told if isinstance(told, list) else [told]  # format 1 had no parts
    lists = [core.LeafLists(**_arrays(reader, arrays)) for arrays in of_parts]
    cuts = cuts_of([len(part.sample_at) for part in lists])
    if cuts[-1].stop != reference.n_rows:
        raise DamagedError(
            f"The saved proximity is damaged: it lists {cuts[-1].stop} of {reference.n_rows} "
            "samples by leaf. Save it again."
        )
    return PartedIndex.of(reference, cuts, lambda i, _: lists[i])


def _write_weights(writer: FolderWriter, side: str, rows: WeighedRows) -> dict[str, Any]:
    weighting = rows.weighting
    return {
        "columns": writer.array(f"{side}_columns", rows.incidence.columns),
        "scale": weighting.scale.hex(),
        **{name: writer.array(f"{side}_{name}", getattr(weighting, name)) for name in _FACTORS},
    }


def _read_weights(reader: FolderReader, told: dict[str, Any], incidence: Incidence) -> WeighedRows:
    factors = {name: reader.array(told[name]) for name in _FACTORS}
    return WeighedRows(incidence, Weighting(float.fromhex(told["scale"]), **factors))


def _write_scheme(writer: FolderWriter, scheme: WeightScheme) -> dict[str, Any]:
    if not type(scheme).__module__.startswith("leafkernel.schemes."):
        return {"own": scheme.name}
    told: dict[str, Any] = {"name": scheme.name, "parameters": {}, "arrays": {}}
    if isinstance(scheme, Collapsed):
        told["of"] = _write_scheme(writer, scheme.scheme)
    for field in fields(scheme):  # type: ignore[arg-type]  # built-in schemes are data classes
        value = getattr(scheme, field.name)
        if isinstance(value, WeightScheme):
            continue  # the scheme that another one is made of
        if isinstance(value, np.generic):
            value = value.item()
        if callable(value):  # the objective of "gradient"; its result is saved with the samples
            value = None
        if value is None or isinstance(value, (bool, int, float, str)):
            told["parameters"][field.name] = value
        else:
            told["arrays"][field.name] = writer.array(f"scheme_{field.name}", np.asarray(value))
    return told


def _read_scheme(reader: FolderReader, told: dict[str, Any], given: Any) -> WeightScheme:
    if "own" in told:
        if given is None:
            raise ValueError(
                f"weight_scheme is missing: the proximity uses your own scheme {told['own']!r}, "
                "which is not saved. Load it with weight_scheme=..."
            )
        scheme = find_scheme(given)
        if scheme.name != told["own"]:
            raise ValueError(
                f"weight_scheme={scheme.name!r}, but the proximity was saved with the scheme "
                f"{told['own']!r}. Pass the same scheme, and use reweigh to change it."
            )
        return scheme
    if "of" in told:
        inner = given.scheme if isinstance(given, Collapsed) else given
        return Collapsed(_read_scheme(reader, told["of"], inner), **told["parameters"])
    plain = find_scheme(told["name"])
    return type(plain)(**told["parameters"], **_arrays(reader, told["arrays"]))


def _arrays(reader: FolderReader, told: dict[str, str | None]) -> dict[str, Any]:
    return {name: reader.array(at) for name, at in told.items()}


def _named(names: list[str] | None) -> dict[str, Any]:
    return {} if names is None else {"feature_names_in_": np.array(names, dtype=object)}
