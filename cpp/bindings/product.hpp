// Products as Python objects: the arrays that they read, and dense results.
#pragma once

#include <limits>

#include "arrays.hpp"
#include "leafkernel/checks.hpp"
#include "leafkernel/weighted_nodes.hpp"
#include "lists.hpp"

namespace leafkernel::bindings {

// The nodes of trees, with the Python arrays that keep their memory alive.
struct HeldNodes {
    nb::object first, parent, weights;
    Arrays arrays;
    WeightedNodes view;

    HeldNodes(const nb::object& first_, const nb::object& parent_, const nb::object& weights_,
              double decay)
        : first(locked(first_)),
          parent(locked(parent_)),
          weights(locked(weights_)),
          view(arrays.view<Offset>(first, "first"), arrays.view<NodeId>(parent, "parent"),
               arrays.view<double>(weights, "weights"), decay) {}
};

// A product and the arrays that it reads.
struct HeldProduct {
    Product view;
    Arrays arrays;
};

// Most functions compare leaves. They must not get a product that compares whole paths.
enum class Compares { leaves, paths_too };

inline HeldProduct read_product(const nb::object& source, const HeldIndex& index,
                                Compares compares = Compares::leaves) {
    HeldProduct held;
    auto& [product, arrays] = held;
    product.query = read_rows(arrays, source.attr("query"));
    product.reference = index.view;
    product.by_leaf = arrays.attribute<double>(source, "by_leaf");
    product.scale = nb::cast<double>(source.attr("scale"));
    // These are used as indices while Python code runs, so they must not change after the check.
    product.row_order = arrays.view<Offset>(locked(source.attr("row_order")), "row_order");
    product.own = arrays.view<SampleId>(locked(source.attr("own")), "own");
    product.diagonal = arrays.attribute<double>(source, "diagonal");
    product.query_oob.words =
        arrays.table<std::uint64_t>(source, "query_oob", product.query_oob.words_per_sample);
    product.reference_oob.words =
        arrays.table<std::uint64_t>(source, "reference_oob", product.reference_oob.words_per_sample);
    const nb::object nodes = source.attr("nodes");
    if (!nodes.is_none()) {
        require(compares == Compares::paths_too, "this product compares whole paths, not leaves");
        const nb::object native = nodes.attr("native");
        product.nodes = &nb::cast<const HeldNodes&>(native).view;
        arrays.keep(native);
    }
    const nb::gil_scoped_release no_gil;
    check_product(product);
    if (product.nodes != nullptr) check_nodes(product);
    return held;
}

// Calls visit with a zero of the result type.
template <class Visit>
auto in_type_of(const nb::object& source, Visit&& visit) {
    return nb::cast<int>(source.attr("dtype").attr("itemsize")) == 8 ? visit(double{}) : visit(float{});
}

// With more columns, not even one row would fit in memory, and sizes would overflow.
inline constexpr std::size_t most_columns = std::numeric_limits<std::int32_t>::max();

// Returns the result of compute(values, n_columns, out) for a dense V.
template <class Compute>
nb::object times_dense(const Product& product, const Array<double>& values, Compute&& compute) {
    if (values.ndim() != 2 ||
        values.shape(0) != static_cast<std::size_t>(product.reference.n_samples())) {
        throw std::invalid_argument("values must have one row for each reference sample");
    }
    const auto n_columns = values.shape(1);
    require(n_columns <= most_columns, "values has too many columns");
    Buffer<double> out(product.query.n_rows() * static_cast<Offset>(n_columns));
    {
        const nb::gil_scoped_release no_gil;
        compute(std::span<const double>(values.data(), values.size()), static_cast<Offset>(n_columns),
                out.data());
    }
    return to_numpy(std::move(out), {static_cast<std::size_t>(product.query.n_rows()), n_columns});
}

}  // namespace leafkernel::bindings
