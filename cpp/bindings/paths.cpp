// Bindings for products with vectors, and for kernels that compare whole paths.
#include "arrays.hpp"
#include "leafkernel/matvec.hpp"
#include "leafkernel/nearest_by_paths.hpp"
#include "product.hpp"

namespace leafkernel::bindings {

namespace {

nb::object apply_to(const nb::object& source, const HeldIndex& index, const Array<double>& values,
                    int n_threads) {
    const HeldProduct held = read_product(source, index, Compares::paths_too);
    const Product& product = held.view;
    const Monitor monitor = make_monitor(nb::none());
    return in_type_of(source, [&](auto zero) {
        return times_dense(product, values, [&](auto in, Offset n_columns, double* out) {
            apply<decltype(zero)>(product, in, n_columns, out, n_threads, monitor);
        });
    });
}

// Returns the similarities and samples of the k nearest, and the number of visits for each row.
nb::tuple nearest_paths_of(const nb::object& source, const HeldIndex& index, Offset k, int n_threads,
                           const nb::object& on_progress) {
    const HeldProduct held = read_product(source, index, Compares::paths_too);
    const Product& product = held.view;
    require(product.nodes != nullptr, "this product compares leaves, not whole paths");
    check_neighbors(product, k);
    require(detail::knows_samples(product) && product.query.weights.all_one() &&
                product.query.present.empty() && product.query.by_row.empty() &&
                product.reference.weights.all_one() && product.reference.by_place.empty() &&
                product.by_leaf.empty() && product.scale > 0,
            "neighbors by paths need samples by row, with weights of one");
    const Monitor monitor = make_monitor(on_progress);
    const Offset n_rows = product.query.n_rows();
    return in_type_of(source, [&](auto zero) {
        Buffer<decltype(zero)> similarities(n_rows * k);
        Buffer<std::int64_t> samples(n_rows * k), n_looks(n_rows);
        {
            const nb::gil_scoped_release no_gil;
            nearest_by_paths(product, *product.nodes, k, similarities.data(), samples.data(),
                             n_looks.data(), n_threads, monitor);
        }
        const auto rows = static_cast<std::size_t>(n_rows);
        const auto columns = static_cast<std::size_t>(k);
        return nb::make_tuple(to_numpy(std::move(similarities), {rows, columns}),
                              to_numpy(std::move(samples), {rows, columns}),
                              to_numpy(std::move(n_looks)));
    });
}

// Returns the inner product of each leaf with itself.
nb::object norms_of(const HeldNodes& nodes) {
    Buffer<double> norms(nodes.view.n_leaves());
    for (Offset leaf = 0; leaf < norms.size(); ++leaf) {
        norms[leaf] = nodes.view[nodes.view.node_of(leaf)].norm;
    }
    return to_locked_numpy(std::move(norms));
}

}  // namespace

void register_paths(nb::module_& module) {
    using namespace nb::literals;
    nb::class_<HeldNodes>(module, "WeightedNodes")
        .def(nb::init<const nb::object&, const nb::object&, const nb::object&, double>(), "first"_a,
             "parent"_a, "weights"_a, "decay"_a)
        .def_prop_ro("norms", &norms_of);
    module.def("apply", &apply_to, "product"_a, "index"_a, "values"_a.noconvert(), "n_threads"_a);
    module.def("nearest_by_paths", &nearest_paths_of, "product"_a, "index"_a, "k"_a, "n_threads"_a,
               "on_progress"_a.none());
}

}  // namespace leafkernel::bindings
