// Incidences and lists as Python objects. They are checked once, when they are created, and used by
// many products.
#pragma once

#include "arrays.hpp"
#include "leafkernel/checks.hpp"

namespace leafkernel::bindings {

struct HeldIncidence {
    // The Python arrays, which keep the memory alive.
    nb::object columns, first, offsets;
    Incidence view;
    Arrays arrays;

    HeldIncidence(nb::object columns_, nb::object first_, nb::object offsets_)
        : columns(std::move(columns_)), first(std::move(first_)), offsets(std::move(offsets_)) {
        arrays.visit<std::int32_t, std::int64_t>(columns, "columns",
                                                 [&]<class T>(std::span<const T> found) {
                                                     if constexpr (std::is_same_v<T, std::int32_t>)
                                                         view.columns.narrow = found;
                                                     if constexpr (std::is_same_v<T, std::int64_t>)
                                                         view.columns.wide = found;
                                                 });
        view.first = arrays.view<Offset>(first, "the first columns of groups");
        view.offsets = arrays.view<Offset>(offsets, "row offsets");
        const auto array = nb::cast<nb::ndarray<nb::ro>>(columns);
        const bool ragged = !offsets.is_none();
        require(array.ndim() == (ragged ? 1 : 2), "columns has the wrong number of dimensions");
        require(ragged || view.first.empty() || array.shape(1) + 1 == view.first.size(),
                "columns does not have one entry for each row and group");
        require(!ragged || !view.offsets.empty(), "row offsets do not span their entries in order");
        view.n_rows =
            ragged ? static_cast<Offset>(view.offsets.size()) - 1 : static_cast<Offset>(array.shape(0));
    }
};

struct HeldLists {
    // The Python arrays, which keep the memory alive.
    nb::object offsets, members, weights, sample_at;
    LeafLists view;
    Arrays arrays;

    HeldLists(nb::object offsets_, nb::object members_, nb::object weights_, nb::object sample_at_)
        : offsets(std::move(offsets_)),
          members(std::move(members_)),
          weights(std::move(weights_)),
          sample_at(std::move(sample_at_)) {
        view.offsets = arrays.view<Offset>(offsets, "offsets");
        view.members = arrays.view<SampleId>(members, "members");
        view.weights = read_weights(arrays, weights, "weights");
        view.sample_at = arrays.view<SampleId>(sample_at, "sample_at");
    }
};

// Reads rows and their weights from an object with `incidence`, `present`, `weights` and `by_row`.
inline WeighedRows read_rows(Arrays& arrays, const nb::object& source) {
    WeighedRows rows;
    const nb::object ids = source.attr("incidence").attr("ids");
    rows.incidence = nb::cast<const HeldIncidence&>(ids).view;
    arrays.keep(ids);
    rows.present = arrays.attribute<std::uint8_t>(source, "present");
    rows.weights = read_weights(arrays, source.attr("weights"), "weights");
    rows.by_row = arrays.attribute<double>(source, "by_row");
    check_weights(rows);
    return rows;
}

// The data that the native engine keeps for an index.
struct HeldIndex {
    nb::object lists, by_place;
    LeafIndex view;
    Arrays arrays;

    HeldIndex(nb::object lists_, nb::object by_place_, const nb::object& rows)
        : lists(std::move(lists_)), by_place(std::move(by_place_)) {
        static_cast<LeafLists&>(view) = nb::cast<const HeldLists&>(lists).view;
        view.by_place = arrays.view<double>(by_place, "by_place");
        require_optional(view.by_place, view.sample_at.size(), "by_place");
        if (rows.is_none()) return;
        view.rows = read_rows(arrays, rows);
        require(view.rows.n_rows() == view.n_samples() &&
                    view.rows.incidence.n_columns() == view.n_leaves(),
                "rows and lists differ in samples or leaves");
    }
};

}  // namespace leafkernel::bindings
