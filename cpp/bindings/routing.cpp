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
    // Kept alive by the tree, which the caller holds.
    return [data = array.data(), stride = array.stride(0)](Offset node) { return data[node * stride]; };
}

// Packs trees, each an object with the arrays of scikit-learn's Tree.
nb::tuple pack_trees(const nb::list& trees, int left_bits, int n_threads) {
    using Integers = decltype(node_array<std::int64_t>({}, "", 0));
    using Doubles = decltype(node_array<double>({}, "", 0));
    using Flags = decltype(node_array<std::uint8_t>({}, "", 0));
    struct Tree {
        Integers left, right, feature;
        Doubles threshold;
        Flags missing;
    };
    const auto n_trees = static_cast<Offset>(trees.size());
    Buffer<std::int64_t> tree_offsets(n_trees + 1);
    Buffer<std::int64_t> leaf_offsets(n_trees + 1);
    tree_offsets[0] = leaf_offsets[0] = 0;
    std::vector<Tree> arrays;
    for (Offset t = 0; t < n_trees; ++t) {
        const nb::object tree = trees[t];
        const auto size = nb::cast<Offset>(tree.attr("node_count"));
        tree_offsets[t + 1] = tree_offsets[t] + size;
        arrays.push_back({node_array<std::int64_t>(tree, "children_left", size),
                          node_array<std::int64_t>(tree, "children_right", size),
                          node_array<std::int64_t>(tree, "feature", size),
                          node_array<double>(tree, "threshold", size),
                          node_array<std::uint8_t>(tree, "missing_go_to_left", size)});
    }
    const Offset n_nodes = tree_offsets[n_trees];
    Buffer<NodeBits> nodes(n_nodes);
    Buffer<std::uint8_t> missing_go_left(n_nodes);
    Buffer<std::int32_t> leaf_of_node(n_nodes);
    const Monitor monitor = make_monitor(nb::none());
    {
        const nb::gil_scoped_release no_gil;
        for_each_block(n_trees, 1, n_threads, monitor, [&] {
            return [&](Offset t, Offset, const auto&) {
                const Offset first = tree_offsets[t];
                const Offset size = tree_offsets[t + 1] - first;
                const Tree& tree = arrays[static_cast<std::size_t>(t)];
                leaf_offsets[t + 1] = count_leaves(size, tree.left);
                pack_tree(size, tree.left, tree.right, tree.feature, tree.threshold, tree.missing,
                          left_bits, nodes.data() + first, missing_go_left.data() + first,
                          leaf_of_node.data() + first);
            };
        });
    }
    for (Offset t = 0; t < n_trees; ++t) leaf_offsets[t + 1] += leaf_offsets[t];
    return nb::make_tuple(to_numpy(std::move(nodes)), to_numpy(std::move(missing_go_left)),
                          to_numpy(std::move(leaf_of_node)), to_numpy(std::move(tree_offsets)),
                          to_numpy(std::move(leaf_offsets)));
}

RouteTable read_table(const nb::object& source) {
    RouteTable table{view<NodeBits>(source, "nodes"),
                     view<Offset>(source, "tree_offsets"),
                     view<std::uint8_t>(source, "missing_go_left"),
                     view<std::int32_t>(source, "leaf_of_node"),
                     view<Offset>(source, "leaf_offsets"),
                     nb::cast<int>(source.attr("left_bits"))};
    require_offsets(table.tree_offsets, table.nodes, "tree offsets");
    require_size(table.missing_go_left.size(), table.nodes.size(), "missing_go_left");
    require_size(table.leaf_of_node.size(), table.nodes.size(), "leaf_of_node");
    require_size(table.leaf_offsets.size(), table.tree_offsets.size(), "leaf_offsets");
    return table;
}

template <class LeafId>
nb::object route_to(const RouteTable& table, const SampleRows& samples, int n_threads) {
    const Monitor monitor = make_monitor(nb::none());
    Buffer<LeafId> leaves(samples.n_rows * table.n_trees());
    {
        const nb::gil_scoped_release no_gil;
        route(table, samples, leaves.data(), n_threads, monitor);
    }
    return to_numpy(std::move(leaves), {static_cast<std::size_t>(samples.n_rows),
                                        static_cast<std::size_t>(table.n_trees())});
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
    module.def("pack_trees", &pack_trees, "trees"_a, "left_bits"_a, "n_threads"_a);
    module.def("route_dense", &route_dense, "table"_a, "X"_a.noconvert(), "wide_leaves"_a,
               "n_threads"_a);
    module.def("route_sparse", &route_sparse, "table"_a, "data"_a.noconvert(), "columns"_a.noconvert(),
               "offsets"_a.noconvert(), "n_features"_a, "wide_leaves"_a, "n_threads"_a);
}

}  // namespace leafkernel::bindings
