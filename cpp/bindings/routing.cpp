// Bindings for packing trees and routing samples to leaves.
#include "arrays.hpp"
#include "leafkernel/draws.hpp"
#include "leafkernel/route.hpp"

namespace leafkernel::bindings {

namespace {

// Packed trees as a Python object. They are checked once, when the object is created.
struct HeldTrees {
    // The Python arrays, which keep the memory alive.
    nb::object nodes, missing_go_left, leaf_of_node, tree_offsets, leaf_offsets;
    Offset n_features;
    RouteTable view;
    Arrays arrays;

    HeldTrees(nb::object nodes_, nb::object missing_, nb::object leaf_of_node_,
              nb::object tree_offsets_, nb::object leaf_offsets_, int left_bits, Offset n_features_)
        : nodes(std::move(nodes_)),
          missing_go_left(std::move(missing_)),
          leaf_of_node(std::move(leaf_of_node_)),
          tree_offsets(std::move(tree_offsets_)),
          leaf_offsets(std::move(leaf_offsets_)),
          n_features(n_features_) {
        view = {arrays.view<NodeBits>(nodes, "nodes"),
                arrays.view<Offset>(tree_offsets, "tree_offsets"),
                arrays.view<std::uint8_t>(missing_go_left, "missing_go_left"),
                arrays.view<std::int32_t>(leaf_of_node, "leaf_of_node"),
                arrays.view<Offset>(leaf_offsets, "leaf_offsets"),
                left_bits};
    }
};

// Creates packed trees from untrusted arrays.
void make_trees(HeldTrees* trees, const nb::object& nodes, const nb::object& missing_go_left,
                const nb::object& leaf_of_node, const nb::object& tree_offsets,
                const nb::object& leaf_offsets, int left_bits, Offset n_features) {
    HeldTrees made(locked(nodes), locked(missing_go_left), locked(leaf_of_node), locked(tree_offsets),
                   locked(leaf_offsets), left_bits, n_features);
    check_table(made.view, n_features);
    new (trees) HeldTrees(std::move(made));
}

// An array over the nodes of a tree. In scikit-learn, it is a strided view of the node table.
template <class T>
struct NodeArray {
    nb::ndarray<const T, nb::ndim<1>, nb::device::cpu> array;

    NodeArray(const nb::object& tree, const char* name, Offset n_nodes) {
        if (!nb::try_cast(tree.attr(name), array, false)) {
            throw nb::type_error((std::string(name) + " of a tree has the wrong type").c_str());
        }
        require_size(array.shape(0), static_cast<std::size_t>(n_nodes), name);
    }
    auto operator()(Offset node) const { return array.data()[node * array.stride(0)]; }
};

// Packs trees, given as objects with the arrays of scikit-learn's Tree. Returns None if a feature
// number and a node number do not fit in 32 bits together.
nb::object pack_trees(const nb::list& trees, Offset n_features, int n_threads) {
    struct Tree {
        NodeArray<std::int64_t> left, right, feature;
        NodeArray<double> threshold;
        NodeArray<std::uint8_t> missing;
    };
    const auto n_trees = static_cast<Offset>(trees.size());
    Buffer<std::int64_t> tree_offsets(n_trees + 1);
    Buffer<std::int64_t> leaf_offsets(n_trees + 1);
    tree_offsets[0] = leaf_offsets[0] = 0;
    std::vector<Tree> arrays;
    Offset largest = 1;
    for (Offset t = 0; t < n_trees; ++t) {
        const nb::object tree = trees[t];
        const auto size = nb::cast<Offset>(tree.attr("node_count"));
        require(size > 0 && size < std::numeric_limits<std::int32_t>::max(),
                "a tree has no nodes, or too many");
        tree_offsets[t + 1] = tree_offsets[t] + size;
        largest = std::max(largest, size);
        arrays.push_back({{tree, "children_left", size},
                          {tree, "children_right", size},
                          {tree, "feature", size},
                          {tree, "threshold", size},
                          {tree, "missing_go_to_left", size}});
    }
    require(n_features >= 0, "n_features must not be negative");
    const int left_bits = std::bit_width(static_cast<std::uint64_t>(largest));
    const auto last_feature = static_cast<std::uint64_t>(std::max<Offset>(n_features - 1, 1));
    const bool fits = left_bits + std::bit_width(last_feature) <= 32;
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
                const Tree& tree = arrays[static_cast<std::size_t>(t)];
                // Trees that do not fit are packed too, because packing checks them.
                leaf_offsets[t + 1] = pack_tree(
                    tree_offsets[t + 1] - first, n_features, tree.left, tree.right, tree.feature,
                    tree.threshold, tree.missing, left_bits, nodes.data() + first,
                    missing_go_left.data() + first, leaf_of_node.data() + first);
            };
        });
    }
    if (!fits) return nb::none();
    for (Offset t = 0; t < n_trees; ++t) leaf_offsets[t + 1] += leaf_offsets[t];
    return nb::cast(
        HeldTrees(to_locked_numpy(std::move(nodes)), to_locked_numpy(std::move(missing_go_left)),
                  to_locked_numpy(std::move(leaf_of_node)), to_locked_numpy(std::move(tree_offsets)),
                  to_locked_numpy(std::move(leaf_offsets)), left_bits, n_features));
}

// Returns the first tree whose recorded leaf weights differ from the given in-bag weights, or -1 if all
// agree. Trees have the arrays of scikit-learn's Tree.
Offset find_other_masses(const nb::list& trees, const Array<double>& masses,
                         const Array<Offset>& leaf_offsets, int n_threads) {
    struct Tree {
        NodeArray<std::int64_t> left;
        NodeArray<double> recorded;
    };
    const auto n_trees = static_cast<Offset>(trees.size());
    const std::span<const Offset> offsets{leaf_offsets.data(), leaf_offsets.size()};
    require_size(offsets.size(), trees.size() + 1, "leaf_offsets");
    require_offsets(offsets, masses.size(), "leaf_offsets");
    std::vector<Offset> n_nodes;
    std::vector<Tree> arrays;
    for (Offset t = 0; t < n_trees; ++t) {
        const nb::object tree = trees[t];
        n_nodes.push_back(nb::cast<Offset>(tree.attr("node_count")));
        arrays.push_back({{tree, "children_left", n_nodes.back()},
                          {tree, "weighted_n_node_samples", n_nodes.back()}});
    }
    const Monitor monitor = make_monitor(nb::none());
    std::vector<std::uint8_t> differs(trees.size());
    {
        const nb::gil_scoped_release no_gil;
        for_each_block(n_trees, 1, n_threads, monitor, [&] {
            return [&](Offset t, Offset, const auto&) {
                const Tree& tree = arrays[static_cast<std::size_t>(t)];
                const auto size = static_cast<std::size_t>(offsets[t + 1] - offsets[t]);
                differs[t] = !masses_agree(n_nodes[t], tree.left, tree.recorded,
                                           {masses.data() + offsets[t], size});
            };
        });
    }
    const auto found = std::find(differs.begin(), differs.end(), 1);
    return found == differs.end() ? -1 : found - differs.begin();
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

nb::object leaves_of(const HeldTrees& trees, const SampleRows& samples, bool wide_leaves,
                     int n_threads) {
    check_samples(samples, trees.n_features);
    if (wide_leaves) return route_to<std::int64_t>(trees.view, samples, n_threads);
    return route_to<std::int32_t>(trees.view, samples, n_threads);
}

nb::object route_dense(const HeldTrees& trees, const Array<float>& X, bool wide_leaves, int n_threads) {
    require(X.ndim() == 2, "X must have two dimensions");
    const SampleRows samples{
        static_cast<Offset>(X.shape(0)), static_cast<Offset>(X.shape(1)), {X.data(), X.size()}, {}, {}};
    return leaves_of(trees, samples, wide_leaves, n_threads);
}

nb::object route_sparse(const HeldTrees& trees, const Array<float>& data,
                        const Array<std::int32_t>& columns, const Array<std::int32_t>& offsets,
                        Offset n_features, bool wide_leaves, int n_threads) {
    require(offsets.size() > 0, "offsets of rows are empty");
    const SampleRows samples{static_cast<Offset>(offsets.size()) - 1,
                             n_features,
                             {data.data(), data.size()},
                             {columns.data(), columns.size()},
                             {offsets.data(), offsets.size()}};
    return leaves_of(trees, samples, wide_leaves, n_threads);
}

}  // namespace

void register_routing(nb::module_& module) {
    using namespace nb::literals;
    nb::class_<HeldTrees>(module, "PackedTrees")
        .def("__init__", &make_trees, "nodes"_a, "missing_go_left"_a, "leaf_of_node"_a,
             "tree_offsets"_a, "leaf_offsets"_a, "left_bits"_a, "n_features"_a)
        .def_ro("nodes", &HeldTrees::nodes)
        .def_ro("missing_go_left", &HeldTrees::missing_go_left)
        .def_ro("leaf_of_node", &HeldTrees::leaf_of_node)
        .def_ro("tree_offsets", &HeldTrees::tree_offsets)
        .def_ro("leaf_offsets", &HeldTrees::leaf_offsets)
        .def_prop_ro("left_bits", [](const HeldTrees& trees) { return trees.view.left_bits; })
        .def_ro("n_features", &HeldTrees::n_features)
        .def("__getstate__",
             [](const HeldTrees& trees) {
                 return nb::make_tuple(trees.nodes, trees.missing_go_left, trees.leaf_of_node,
                                       trees.tree_offsets, trees.leaf_offsets, trees.view.left_bits,
                                       trees.n_features);
             })
        .def("__setstate__", [](HeldTrees& trees, const nb::tuple& state) {
            if (state.size() != 7) throw nb::value_error("invalid pickle of packed trees");
            make_trees(&trees, state[0], state[1], state[2], state[3], state[4],
                       nb::cast<int>(state[5]), nb::cast<Offset>(state[6]));
        });
    module.def("pack_trees", &pack_trees, "trees"_a, "n_features"_a, "n_threads"_a);
    module.def("find_other_masses", &find_other_masses, "trees"_a, "masses"_a.noconvert(),
               "leaf_offsets"_a.noconvert(), "n_threads"_a);
    module.def("route_dense", &route_dense, "trees"_a, "X"_a.noconvert(), "wide_leaves"_a,
               "n_threads"_a);
    module.def("route_sparse", &route_sparse, "trees"_a, "data"_a.noconvert(), "columns"_a.noconvert(),
               "offsets"_a.noconvert(), "n_features"_a, "wide_leaves"_a, "n_threads"_a);
}

}  // namespace leafkernel::bindings
