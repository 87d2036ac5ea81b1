// Kernels that compare whole paths. The inner product of two leaves of a tree sums over the nodes a on
// both paths:
//
//     k(x, y) = Σ m(a) r^(depth x − depth a) r^(depth y − depth a)
//
// Let a be the lowest common node of x and y. With norm(a) = r² norm(parent) + m(a), this is
//
//     k(x, y) = r^(depth x − depth a) · norm(a) · r^(depth y − depth a)
//
// Nodes are stored depth first, so the leaves below a node are consecutive columns.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "leafkernel/memory.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/require.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

using NodeId = std::int32_t;

class WeightedNodes {
public:
    struct Node {
        double norm;     // the inner product of a sample that ends here with itself
        double outside;  // the largest inner product of this node with a leaf that is not below it
        std::int32_t first_leaf;  // columns of the leaves below
        std::int32_t end_leaf;
        NodeId parent;  // -1 for a root
        std::int32_t depth;
    };

    // The arrays must stay alive. `first` is the first node of each tree, then the number of nodes.
    WeightedNodes(std::span<const Offset> first, std::span<const NodeId> parent,
                  std::span<const double> weights, double decay)
        : first_(first), parent_(parent), weights_(weights), decay_(decay) {
        check();
        lay_out();
        bound();
    }

    Offset n_trees() const { return static_cast<Offset>(first_.size()) - 1; }
    Offset n_leaves() const { return static_cast<Offset>(node_of_leaf_.size()); }
    const Node& operator[](Offset node) const { return nodes_[static_cast<std::size_t>(node)]; }
    NodeId node_of(Offset leaf) const { return node_of_leaf_[static_cast<std::size_t>(leaf)]; }
    std::int32_t depth_of_leaf(Offset leaf) const {
        return depth_of_leaf_[static_cast<std::size_t>(leaf)];
    }
    // First leaf of each tree, then the number of leaves.
    std::span<const Offset> first_leaves() const { return first_leaves_; }
    // r to the power of a number of edges.
    double power(std::int32_t edges) const { return powers_[static_cast<std::size_t>(edges)]; }

    // Replaces the values u of all leaves by K u, with the inner products K of the leaves of each tree:
    // one pass up, which sums the leaves below each node, and one pass down. `Width` values per leaf.
    template <class Store, int Width>
    void multiply(Store* of_leaf, int n_threads, const Monitor& monitor) const {
        for_each_block(n_trees(), 1, n_threads, monitor, [&] {
            return [&, sums = std::vector<double>()](Offset begin, Offset end, const auto&) mutable {
                for (Offset tree = begin; tree < end; ++tree)
                    multiply<Store, Width>(tree, of_leaf, sums);
            };
        });
    }

private:
    void check() const {
        require_offsets(first_, parent_.size(), "nodes of trees");
        require_size(weights_.size(), parent_.size(), "node weights");
        require(parent_.size() <= std::numeric_limits<NodeId>::max(), "there are too many nodes");
        require(decay_ >= 0 && decay_ <= 1, "the decay is not between 0 and 1");
        for (const double weight : weights_) {
            require(weight >= 0 && weight <= std::numeric_limits<double>::max(),
                    "a node weight is negative or not finite");
        }
        std::vector<Offset> path;  // from the root to the node before
        for (Offset tree = 0; tree < n_trees(); ++tree) {
            require(first_[tree] < first_[tree + 1], "a tree has no nodes");
            path.clear();
            for (Offset node = first_[tree]; node < first_[tree + 1]; ++node) {
                const Offset above = parent_[node];
                while (!path.empty() && path.back() != above) path.pop_back();
                require(node == first_[tree] ? above == -1 : !path.empty(),
                        "the nodes of a tree are not in depth-first order");
                path.push_back(node);
            }
        }
    }

    // Sets everything but `outside`.
    void lay_out() {
        nodes_.resize(parent_.size());
        first_leaves_.push_back(0);
        std::int32_t deepest = 0;
        for (Offset tree = 0; tree < n_trees(); ++tree) {
            for (Offset node = first_[tree]; node < first_[tree + 1]; ++node) {
                Node& here = nodes_[node];
                here.parent = parent_[node];
                const bool is_root = here.parent < 0;
                here.depth = is_root ? 0 : nodes_[here.parent].depth + 1;
                here.norm = weights_[node];
                if (!is_root) here.norm += decay_ * decay_ * nodes_[here.parent].norm;
                here.first_leaf = static_cast<std::int32_t>(n_leaves());
                if (is_leaf(node)) {
                    node_of_leaf_.push_back(static_cast<NodeId>(node));
                    depth_of_leaf_.push_back(here.depth);
                }
                here.end_leaf = static_cast<std::int32_t>(n_leaves());
                deepest = std::max(deepest, here.depth);
            }
            for (Offset node = first_[tree + 1] - 1; node > first_[tree]; --node) {
                Node& above = nodes_[nodes_[node].parent];
                above.end_leaf = std::max(above.end_leaf, nodes_[node].end_leaf);
            }
            first_leaves_.push_back(n_leaves());
        }
        powers_.assign(static_cast<std::size_t>(deepest) + 1, 1.0);
        for (std::size_t edges = 1; edges < powers_.size(); ++edges) {
            powers_[edges] = decay_ * powers_[edges - 1];
        }
    }

    // Sets `outside`. A leaf outside of a node is below its parent, but not below the node, or outside
    // of its parent.
    void bound() {
        // The number of edges to the nearest leaf below each node, over all children but one.
        constexpr auto none = std::numeric_limits<std::int32_t>::max();
        std::vector<std::int32_t> nearest(nodes_.size(), none), second(nodes_.size(), none);
        for (auto node = static_cast<Offset>(nodes_.size()) - 1; node >= 0; --node) {
            if (nearest[node] == none) nearest[node] = 0;  // a leaf
            const NodeId above = nodes_[node].parent;
            if (above < 0) continue;
            const std::int32_t edges = nearest[node] + 1;
            if (edges < nearest[above]) {
                second[above] = nearest[above];
                nearest[above] = edges;
            } else {
                second[above] = std::min(second[above], edges);
            }
        }
        for (std::size_t node = 0; node < nodes_.size(); ++node) {
            const NodeId above = nodes_[node].parent;
            nodes_[node].outside = 0.0;
            if (above < 0) continue;
            const bool is_nearest = nearest[node] + 1 == nearest[above];
            const std::int32_t edges = is_nearest ? second[above] : nearest[above];
            const double beside = edges == none ? 0.0 : nodes_[above].norm * power(edges);
            nodes_[node].outside = decay_ * std::max(beside, nodes_[above].outside);
        }
    }

    template <class Store, int Width>
    void multiply(Offset tree, Store* of_leaf, std::vector<double>& sums) const {
        const Offset begin = first_[tree], n = first_[tree + 1] - begin;
        const Offset first = first_leaves_[tree], end = first_leaves_[tree + 1];
        // Leaves are copied in loops of their own. Whether a node is a leaf cannot be predicted.
        sums.assign(static_cast<std::size_t>(n * Width), 0.0);
        double* const of_node = sums.data();
        for (Offset leaf = first; leaf < end; ++leaf) {
            double* here = of_node + (node_of(leaf) - begin) * Width;
            for (int c = 0; c < Width; ++c) here[c] = of_leaf[leaf * Width + c];
        }
        const NodeId* const parent = parent_.data() + begin;
        for (Offset node = n - 1; node > 0; --node) {
            const double* here = of_node + node * Width;
            double* above = of_node + (parent[node] - begin) * Width;
            for (int c = 0; c < Width; ++c) above[c] += decay_ * here[c];
        }
        const double* const weight = weights_.data() + begin;
        for (int c = 0; c < Width; ++c) of_node[c] *= weight[0];
        for (Offset node = 1; node < n; ++node) {
            double* here = of_node + node * Width;
            const double* above = of_node + (parent[node] - begin) * Width;
            for (int c = 0; c < Width; ++c) here[c] = weight[node] * here[c] + decay_ * above[c];
        }
        for (Offset leaf = first; leaf < end; ++leaf) {
            const double* here = of_node + (node_of(leaf) - begin) * Width;
            for (int c = 0; c < Width; ++c) of_leaf[leaf * Width + c] = static_cast<Store>(here[c]);
        }
    }

    bool is_leaf(Offset node) const {
        return node + 1 == static_cast<Offset>(parent_.size()) || parent_[node + 1] != node;
    }

    std::span<const Offset> first_;
    std::span<const NodeId> parent_;
    std::span<const double> weights_;
    double decay_;
    std::vector<Node> nodes_;
    std::vector<NodeId> node_of_leaf_;
    std::vector<std::int32_t> depth_of_leaf_;  // read at random, so not only in the nodes
    std::vector<Offset> first_leaves_;
    std::vector<double> powers_;
};

}  // namespace leafkernel
