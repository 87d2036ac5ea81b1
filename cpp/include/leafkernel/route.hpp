// Sends samples down packed trees to their leaves, exactly as the library that grew them would.
//
// Trees are laid out so that siblings are neighbours: a step is `node = left + (x > threshold)`,
// without a branch. A leaf points at itself, so samples of a group may arrive at different depths.
// Groups of samples walk together to keep many loads in flight, and blocks of samples stay on one
// tree while its nodes are in cache.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "leafkernel/parallel.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

// Eight bytes a node: what matters most, since a forest is much larger than a cache. The second
// word holds the feature and the left child, in as many bits each as `RouteTable` says.
struct PackedNode {
    float threshold;
    std::uint32_t feature_and_left;
};
using NodeBits = std::uint64_t;  // a packed node as Python keeps it

// All trees of a forest, one behind the other; child indices are relative to their tree.
struct RouteTable {
    std::span<const NodeBits> nodes;
    std::span<const Offset> tree_offsets;           // n_trees + 1
    std::span<const std::uint8_t> missing_go_left;  // for each node
    std::span<const std::int64_t> leaf_of_node;     // global leaf id, for leaves
    int left_bits = 0;

    Offset n_trees() const { return static_cast<Offset>(tree_offsets.size()) - 1; }
};

// The largest float not above a threshold: x <= threshold gives the same answer for every float x.
inline float floor_to_float(double threshold) {
    const auto rounded = static_cast<float>(threshold);
    return static_cast<double>(rounded) > threshold
               ? std::nextafter(rounded, -std::numeric_limits<float>::infinity())
               : rounded;
}

// Packs one tree given by arrays over its nodes (anything that can be indexed), the root first and
// leaves marked by a negative child. Leaves are numbered in the order of their nodes, from
// `first_leaf` on. Writes as many nodes as the tree has to each output; returns its leaves.
template <class Children, class Features, class Thresholds, class Missing>
Offset pack_tree(Offset n_nodes, const Children& left, const Children& right, const Features& feature,
                 const Thresholds& threshold, const Missing& missing, Offset first_leaf, int left_bits,
                 NodeBits* nodes, std::uint8_t* missing_go_left, std::int64_t* leaf_of_node) {
    std::vector<std::int64_t> leaf_number(static_cast<std::size_t>(n_nodes));
    Offset n_leaves = 0;
    for (Offset node = 0; node < n_nodes; ++node) {
        if (left(node) < 0) leaf_number[static_cast<std::size_t>(node)] = first_leaf + n_leaves++;
    }
    struct Placed {
        Offset node;
        std::uint32_t at;
    };
    std::vector<Placed> waiting{{0, 0}};
    std::uint32_t next_free = 1;
    while (!waiting.empty()) {  // depth first, so that a subtree stays together
        const auto [node, at] = waiting.back();
        waiting.pop_back();
        const bool is_leaf = left(node) < 0;
        const std::uint32_t left_at = is_leaf ? at : next_free;
        const auto split_on = is_leaf ? 0u : static_cast<std::uint32_t>(feature(node));
        const float split_at =
            is_leaf ? std::numeric_limits<float>::infinity() : floor_to_float(threshold(node));
        nodes[at] = std::bit_cast<NodeBits>(PackedNode{split_at, split_on << left_bits | left_at});
        missing_go_left[at] = is_leaf || missing(node);
        leaf_of_node[at] = is_leaf ? leaf_number[static_cast<std::size_t>(node)] : -1;
        if (!is_leaf) {
            waiting.push_back({right(node), left_at + 1});
            waiting.push_back({left(node), left_at});
            next_free += 2;
        }
    }
    return n_leaves;
}

// Samples as rows of float32, dense or CSR.
struct SampleRows {
    Offset n_rows = 0;
    Offset n_features = 0;
    std::span<const float> values;          // n_rows * n_features if dense, else the CSR data
    std::span<const std::int32_t> columns;  // CSR only
    std::span<const std::int32_t> offsets;  // CSR only

    bool is_sparse() const { return !offsets.empty(); }
};

namespace detail {

constexpr Offset route_group = 16;

// Walks one group of samples down one tree. `HasMissing` adds what NaN costs to every step.
template <bool HasMissing>
void walk_group(const NodeBits* nodes, const std::uint8_t* missing_go_left, int left_bits,
                const float* rows, Offset n_features, std::array<std::uint32_t, route_group>& at) {
    const std::uint32_t left_mask = (std::uint32_t{1} << left_bits) - 1;
    at.fill(0);
    for (bool moved = true; moved;) {
        moved = false;
        for (int step = 0; step < 4; ++step) {  // look only now and then whether all have arrived
            std::uint32_t any = 0;
            for (Offset i = 0; i < route_group; ++i) {
                const auto node = std::bit_cast<PackedNode>(nodes[at[i]]);
                const float x = rows[i * n_features + (node.feature_and_left >> left_bits)];
                const std::uint32_t left = node.feature_and_left & left_mask;
                std::uint32_t goes_right = !(x <= node.threshold);
                if constexpr (HasMissing) {
                    if (std::isnan(x)) goes_right = !missing_go_left[at[i]];
                }
                const std::uint32_t next = left + goes_right;
                any |= next ^ at[i];
                at[i] = next;
            }
            moved = any != 0;
        }
    }
}

}  // namespace detail

// Writes the global leaf id of each sample in each tree, (n_rows, n_trees) row by row.
template <class LeafId>
void route(const RouteTable& table, const SampleRows& samples, LeafId* leaves, int n_threads,
           const Monitor& monitor) {
    using detail::route_group;
    const Offset n_trees = table.n_trees();
    const Offset n_features = std::max<Offset>(samples.n_features, 1);
    // Rows are copied into a dense block: sparse ones to make them dense, the last ones to fill up
    // their group. At most 16 MB for each thread, so that wide sparse data stays cheap.
    const Offset block_rows =
        std::clamp<Offset>((Offset{1} << 22) / n_features / route_group, 1, 256) * route_group;

    for_each_block(samples.n_rows, block_rows, n_threads, monitor, [&] {
        return [&, block = std::vector<float>()](Offset begin, Offset end, const auto& poll) mutable {
            const Offset n_rows = end - begin;
            const Offset n_groups = (n_rows + route_group - 1) / route_group;
            const float* rows = nullptr;
            if (!samples.is_sparse() && n_rows % route_group == 0) {
                rows = samples.values.data() + begin * samples.n_features;
            } else {
                block.assign(static_cast<std::size_t>(n_groups * route_group * n_features), 0.0f);
                if (samples.is_sparse()) {
                    for (Offset row = 0; row < n_rows; ++row) {
                        for (auto e = samples.offsets[begin + row];
                             e < samples.offsets[begin + row + 1]; ++e) {
                            block[row * n_features + samples.columns[e]] += samples.values[e];
                        }
                    }
                } else {
                    std::copy_n(samples.values.data() + begin * samples.n_features,
                                n_rows * samples.n_features, block.data());
                }
                rows = block.data();
            }
            const bool has_missing =
                std::any_of(rows, rows + n_rows * n_features, [](float x) { return x != x; });
            std::array<std::uint32_t, route_group> at;
            for (Offset tree = 0; tree < n_trees; ++tree) {
                poll();
                const Offset first = table.tree_offsets[tree];
                const NodeBits* nodes = table.nodes.data() + first;
                const std::uint8_t* missing = table.missing_go_left.data() + first;
                for (Offset group = 0; group < n_groups; ++group) {
                    const float* group_rows = rows + group * route_group * n_features;
                    if (has_missing) {
                        detail::walk_group<true>(nodes, missing, table.left_bits, group_rows,
                                                 n_features, at);
                    } else {
                        detail::walk_group<false>(nodes, missing, table.left_bits, group_rows,
                                                  n_features, at);
                    }
                    const Offset row = group * route_group;
                    for (Offset i = 0; i < std::min(route_group, n_rows - row); ++i) {
                        leaves[(begin + row + i) * n_trees + tree] =
                            static_cast<LeafId>(table.leaf_of_node[first + at[i]]);
                    }
                }
            }
        };
    });
}

}  // namespace leafkernel
