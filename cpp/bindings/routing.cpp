// Trees to packed nodes, and samples to leaves.
#include "arrays.hpp"
#include "leafkernel/route.hpp"

namespace leafkernel::bindings {

namespace {

// An array over the nodes of a tree, as scikit-learn keeps it: a strided view of its node table.
template <class T>
auto node_array(const nb::object& tree, const char* name, Offset n_nodes) {
    const auto array = nb::cast<nb::ndarray<const T, nb::ndim<1>, nb::device::cpu>>(tree.attr(name));
    if (array.shape(0) != static_cast<std::size_t>(n_nodes)) {
        throw std::invalid_argument(std::string(name) + " does not have one entry for each node");
    }
    return [data = array.data(), stride = array.stride(0)](Offset node) { return data[node * stride]; };
}

// Packs trees, each an object with the arrays of scikit-learn's Tree.
nb::tuple pack_trees(const nb::list& trees, int left_bits) {
    const auto n_trees = static_cast<Offset>(trees.size());
    Owned<std::int64_t> tree_offsets(n_trees + 1);
    Owned<std::int64_t> leaf_offsets(n_trees + 1);
    tree_offsets.data[0] = leaf_offsets.data[0] = 0;
    for (Offset t = 0; t < n_trees; ++t) {
        tree_offsets.data[t + 1] = tree_offsets.data[t] + nb::cast<Offset>(trees[t].attr("node_count"));
    }
    const Offset n_nodes = tree_offsets.data[n_trees];
    Owned<NodeBits> nodes(n_nodes);
    Owned<std::uint8_t> missing_go_left(n_nodes);
    Owned<std::int64_t> leaf_of_node(n_nodes);
    for (Offset t = 0; t < n_trees; ++t) {
        const nb::object tree = trees[t];
        const Offset first = tree_offsets.data[t];
        const Offset size = tree_offsets.data[t + 1] - first;
        const auto left = node_array<std::int64_t>(tree, "children_left", size);
        const auto right = node_array<std::int64_t>(tree, "children_right", size);
        leaf_offsets.data[t + 1] =
            leaf_offsets.data[t] +
            pack_tree(size, left, right, node_array<std::int64_t>(tree, "feature", size),
                      node_array<double>(tree, "threshold", size),
                      node_array<std::uint8_t>(tree, "missing_go_to_left", size), leaf_offsets.data[t],
                      left_bits, nodes.data.get() + first, missing_go_left.data.get() + first,
                      leaf_of_node.data.get() + first);
    }
    return nb::make_tuple(nodes.to_numpy(), missing_go_left.to_numpy(), leaf_of_node.to_numpy(),
                          tree_offsets.to_numpy(), leaf_offsets.to_numpy());
}

RouteTable read_table(const nb::object& source) {
    RouteTable table{view<NodeBits>(source, "nodes"), view<Offset>(source, "tree_offsets"),
                     view<std::uint8_t>(source, "missing_go_left"),
                     view<std::int64_t>(source, "leaf_of_node"),
                     nb::cast<int>(source.attr("left_bits"))};
    require_offsets(table.tree_offsets, table.nodes, "tree offsets");
    require_size(table.missing_go_left, table.nodes.size(), "missing_go_left");
    require_size(table.leaf_of_node, table.nodes.size(), "leaf_of_node");
    return table;
}

template <class LeafId>
nb::object route_to(const RouteTable& table, const SampleRows& samples, int n_threads) {
    const Monitor monitor = make_monitor(nb::none());
    Owned<LeafId> leaves(samples.n_rows * table.n_trees());
    {
        const nb::gil_scoped_release no_gil;
        route(table, samples, leaves.data.get(), n_threads, monitor);
    }
    return leaves.to_numpy(
        {static_cast<std::size_t>(samples.n_rows), static_cast<std::size_t>(table.n_trees())});
}

nb::object leaves_of(const nb::object& source, const SampleRows& samples, Offset n_features,
                     bool wide_leaves, int n_threads) {
    if (samples.n_features < n_features) {
        throw std::invalid_argument("samples have fewer features than the trees split on");
    }
    const RouteTable table = read_table(source);
    if (wide_leaves) return route_to<std::int64_t>(table, samples, n_threads);
    return route_to<std::int32_t>(table, samples, n_threads);
}

nb::object route_dense(const nb::object& source, const Array<float>& X, bool wide_leaves,
                       int n_threads) {
    if (X.ndim() != 2) throw std::invalid_argument("X must have two dimensions");
    const SampleRows samples{
        static_cast<Offset>(X.shape(0)), static_cast<Offset>(X.shape(1)), {X.data(), X.size()}, {}, {}};
    return leaves_of(source, samples, nb::cast<Offset>(source.attr("n_features")), wide_leaves,
                     n_threads);
}

nb::object route_sparse(const nb::object& source, const Array<float>& data,
                        const Array<std::int32_t>& columns, const Array<std::int32_t>& offsets,
                        Offset n_features, bool wide_leaves, int n_threads) {
    const SampleRows samples{static_cast<Offset>(offsets.size()) - 1,
                             n_features,
                             {data.data(), data.size()},
                             {columns.data(), columns.size()},
                             {offsets.data(), offsets.size()}};
    for (const auto column : samples.columns) {
        if (column < 0 || column >= n_features) throw std::invalid_argument("column out of range");
    }
    return leaves_of(source, samples, nb::cast<Offset>(source.attr("n_features")), wide_leaves,
                     n_threads);
}

}  // namespace

void register_routing(nb::module_& module) {
    using namespace nb::literals;
    module.def("pack_trees", &pack_trees, "trees"_a, "left_bits"_a);
    module.def("route_dense", &route_dense, "table"_a, "X"_a.noconvert(), "wide_leaves"_a,
               "n_threads"_a);
    module.def("route_sparse", &route_sparse, "table"_a, "data"_a.noconvert(), "columns"_a.noconvert(),
               "offsets"_a.noconvert(), "n_features"_a, "wide_leaves"_a, "n_threads"_a);
}

}  // namespace leafkernel::bindings
