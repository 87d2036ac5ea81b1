// Finds the leaf of each sample in each packed tree, with exactly the same result as the library that
// grew the trees.
//
// Siblings are adjacent in memory, so a step is `node = left + (x > threshold)` without a branch. A
// leaf points to itself, so the samples of a group may stop at different depths. Samples are processed
// in groups, which keeps many loads in flight, and in blocks, which keep the nodes of a tree in cache.
// Samples that share a leaf of the first tree are processed together, because they take similar paths
// through the other trees. Identical samples are routed once.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "leafkernel/parallel.hpp"
#include "leafkernel/require.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

// A node takes eight bytes. Size matters most, because a forest is much larger than a cache. The second
// word holds the feature and the left child; `RouteTable::left_bits` says how many bits the child
// takes.
struct PackedNode {
    float threshold;
    std::uint32_t feature_and_left;
};
using NodeBits = std::uint64_t;  // a packed node, as stored in NumPy arrays

// All trees of a forest, one after the other. Child indices are relative to their tree.
struct RouteTable {
    std::span<const NodeBits> nodes;
    std::span<const Offset> tree_offsets;           // n_trees + 1
    std::span<const std::uint8_t> missing_go_left;  // per node
    std::span<const std::int32_t> leaf_of_node;     // leaf number within the tree; used for leaves only
    std::span<const Offset> leaf_offsets;           // first leaf of each tree; n_trees + 1 entries
    int left_bits = 0;

    Offset n_trees() const { return static_cast<Offset>(tree_offsets.size()) - 1; }
};

// Returns the largest float that does not exceed the threshold. The test x <= threshold then gives the
// same answer for every float x.
inline float floor_to_float(double threshold) {
    const auto rounded = static_cast<float>(threshold);
    return static_cast<double>(rounded) > threshold
               ? std::nextafter(rounded, -std::numeric_limits<float>::infinity())
               : rounded;
}

// Packs one tree. The arguments are callables that take a node. The root is node 0, and leaves have
// negative children. Leaves are numbered in the order of their nodes. Writes one entry per node to each
// output and returns the number of leaves.
//
// The arrays may come from a damaged or hostile file. Throws std::invalid_argument unless every node
// except the root has exactly one parent, all nodes can be reached, and every split uses an existing
// feature.
template <class Children, class Features, class Thresholds, class Missing>
Offset pack_tree(Offset n_nodes, Offset n_features, const Children& left, const Children& right,
                 const Features& feature, const Thresholds& threshold, const Missing& missing,
                 int left_bits, NodeBits* nodes, std::uint8_t* missing_go_left,
                 std::int32_t* leaf_of_node) {
    require(n_nodes > 0, "a tree has no nodes");
    constexpr std::int32_t inner = -1;
    std::vector<std::int32_t> leaf_number(static_cast<std::size_t>(n_nodes), inner);
    std::int32_t n_leaves = 0;
    for (Offset node = 0; node < n_nodes; ++node) {
        if (left(node) < 0) leaf_number[static_cast<std::size_t>(node)] = n_leaves++;
    }
    struct Placed {
        Offset node;
        std::uint32_t at;
    };
    std::vector<Placed> waiting{{0, 0}};
    std::vector<bool> has_parent(static_cast<std::size_t>(n_nodes));
    has_parent[0] = true;  // the root has no parent, and must not get one
    const auto wait = [&](Offset child, std::uint32_t at) {
        require(child >= 0 && child < n_nodes, "a tree has a child that is not one of its nodes");
        require(!has_parent[static_cast<std::size_t>(child)], "a node of a tree has two parents");
        has_parent[static_cast<std::size_t>(child)] = true;
        waiting.push_back({child, at});
    };
    std::uint32_t next_free = 1;
    while (!waiting.empty()) {  // depth first, which keeps each subtree contiguous
        const auto [node, at] = waiting.back();
        waiting.pop_back();
        const std::int32_t leaf = leaf_number[static_cast<std::size_t>(node)];
        const bool is_leaf = leaf != inner;
        const std::uint32_t left_at = is_leaf ? at : next_free;
        std::uint32_t split_on = 0;
        if (is_leaf) {
            require(right(node) < 0, "a node of a tree has only one child");
        } else {
            const Offset found = feature(node);
            require(found >= 0 && found < n_features,
                    "a tree splits on a feature that X does not have");
            split_on = static_cast<std::uint32_t>(found);
            wait(right(node), left_at + 1);
            wait(left(node), left_at);
            next_free += 2;
        }
        const float split_at =
            is_leaf ? std::numeric_limits<float>::infinity() : floor_to_float(threshold(node));
        nodes[at] = std::bit_cast<NodeBits>(PackedNode{split_at, split_on << left_bits | left_at});
        missing_go_left[at] = is_leaf || missing(node);
        leaf_of_node[at] = leaf;
    }
    require(next_free == n_nodes, "a tree has nodes that cannot be reached");
    return n_leaves;
}

// Rejects packed trees with invalid indices or endless paths. Throws std::invalid_argument.
inline void check_table(const RouteTable& table, Offset n_features) {
    require(table.left_bits > 0 && table.left_bits < 32, "left_bits must lie between 1 and 31");
    require(n_features >= 0, "n_features must not be negative");
    require_size(table.missing_go_left.size(), table.nodes.size(), "missing_go_left");
    require_size(table.leaf_of_node.size(), table.nodes.size(), "leaf_of_node");
    require_offsets(table.tree_offsets, table.nodes.size(), "tree_offsets");
    require_size(table.leaf_offsets.size(), table.tree_offsets.size(), "leaf_offsets");
    require(table.leaf_offsets.front() == 0 &&
                std::is_sorted(table.leaf_offsets.begin(), table.leaf_offsets.end()),
            "leaf_offsets do not ascend from 0");
    const std::uint32_t left_mask = (std::uint32_t{1} << table.left_bits) - 1;
    for (Offset tree = 0; tree < table.n_trees(); ++tree) {
        const Offset first = table.tree_offsets[tree];
        const Offset n_nodes = table.tree_offsets[tree + 1] - first;
        const Offset n_leaves = table.leaf_offsets[tree + 1] - table.leaf_offsets[tree];
        require(n_nodes > 0, "a tree has no nodes");
        require(n_leaves > 0 && n_leaves <= n_nodes, "a tree has an invalid number of leaves");
        for (Offset at = 0; at < n_nodes; ++at) {
            const auto node = std::bit_cast<PackedNode>(table.nodes[first + at]);
            const Offset left = node.feature_and_left & left_mask;
            const Offset feature = node.feature_and_left >> table.left_bits;
            const std::int32_t leaf = table.leaf_of_node[first + at];
            if (left == at) {  // a leaf points to itself
                require(node.threshold == std::numeric_limits<float>::infinity() && feature == 0 &&
                            table.missing_go_left[first + at] != 0 && leaf >= 0 && leaf < n_leaves,
                        "a packed leaf is damaged");
            } else {  // children come after their parent, so every path ends
                require(left > at && left + 1 < n_nodes && feature < n_features,
                        "a packed node is damaged");
            }
        }
    }
}

// Samples as float32 rows, dense or CSR.
struct SampleRows {
    Offset n_rows = 0;
    Offset n_features = 0;
    std::span<const float> values;          // n_rows * n_features if dense, else the CSR data
    std::span<const std::int32_t> columns;  // CSR only
    std::span<const std::int32_t> offsets;  // CSR only

    bool is_sparse() const { return !offsets.empty(); }
};

// Rejects samples whose arrays are inconsistent, or that have fewer features than the trees.
inline void check_samples(const SampleRows& samples, Offset n_features) {
    constexpr Offset most = std::numeric_limits<std::int32_t>::max();
    require(samples.n_rows <= most && samples.n_features <= most, "X has too many rows or columns");
    require(samples.n_features >= n_features, "samples have fewer features than the trees split on");
    if (!samples.is_sparse()) return;
    require_size(samples.columns.size(), samples.values.size(), "columns");
    require_offsets(samples.offsets, samples.values.size(), "offsets of rows");
    for (const auto column : samples.columns) {
        require(column >= 0 && column < samples.n_features, "a column is out of range");
    }
}

namespace detail {

constexpr Offset route_group = 8;

// Moves one group of samples from the root of a tree to its leaves. `HasMissing` adds a test for NaN to
// every step.
template <bool HasMissing>
void walk_group(const NodeBits* nodes, const std::uint8_t* missing_go_left, int left_bits,
                const float* rows, Offset n_features, std::array<std::uint32_t, route_group>& at) {
    const std::uint32_t left_mask = (std::uint32_t{1} << left_bits) - 1;
    at.fill(0);
    for (bool moved = true; moved;) {
        moved = false;
        for (int step = 0; step < 2; ++step) {  // test for the end only after every second step
            std::uint32_t any = 0;
            for (Offset i = 0; i < route_group; ++i) {
                // Two loads are faster than one load that is split afterwards.
                PackedNode node;
                const auto* bytes = reinterpret_cast<const char*>(nodes + at[i]);
                std::memcpy(&node.threshold, bytes, sizeof node.threshold);
                std::memcpy(&node.feature_and_left, bytes + sizeof node.threshold,
                            sizeof node.feature_and_left);
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

// A block of samples, converted to dense rows and padded to whole groups.
class DenseBlock {
public:
    DenseBlock(const SampleRows& samples)
        : samples_(samples), n_features_(std::max<Offset>(samples.n_features, 1)) {}

    // At most 4 MB, which limits the memory for wide sparse data.
    static Offset rows_at_once(const SampleRows& samples, int n_threads) {
        const Offset affordable = (Offset{1} << 20) / std::max<Offset>(samples.n_features, 1);
        const Offset most = std::clamp<Offset>(affordable / route_group, 8, 512);
        const Offset n_groups = (samples.n_rows + route_group - 1) / route_group;
        return std::max<Offset>(even_blocks(n_groups, most, n_threads), 8) * route_group;
    }

    // Reads the rows [begin, end).
    void fill(Offset begin, Offset end) {
        clear(end - begin);
        for (Offset row = begin; row < end; ++row) read(row, row - begin);
        finish(end - begin);
    }

    // Reads the rows order[begin .. end). A row that equals the previous one is stored once: row i is
    // in `slot_of[i - begin]`.
    void fill(std::span<const std::int32_t> order, Offset begin, Offset end) {
        clear(end - begin);
        slot_of.resize(static_cast<std::size_t>(end - begin));
        Offset n_slots = 0;
        for (Offset i = begin; i < end; ++i) {
            read(order[i], n_slots);
            if (n_slots > 0 && are_equal(n_slots - 1, n_slots)) {
                std::fill_n(at(n_slots), n_features_, 0.0f);
            } else {
                ++n_slots;
            }
            slot_of[i - begin] = n_slots - 1;
        }
        finish(n_slots);
    }

    // A hash of a row. Equal rows have equal hashes.
    std::uint64_t hash(Offset slot) const {
        constexpr std::uint64_t odd = 0x9E3779B97F4A7C15;
        std::uint64_t hash = 0;
        for (Offset f = 0; f < n_features_; ++f) {
            hash = (hash ^ std::bit_cast<std::uint32_t>(at(slot)[f])) * odd;
            hash ^= hash >> 32;
        }
        return hash;
    }

    // Calls visit(first row of group, packed nodes reached) for each group of rows in one tree.
    template <class Visit>
    void walk(const RouteTable& table, Offset tree, Visit&& visit) const {
        const NodeBits* nodes = table.nodes.data() + table.tree_offsets[tree];
        const std::uint8_t* missing = table.missing_go_left.data() + table.tree_offsets[tree];
        std::array<std::uint32_t, route_group> at;
        for (Offset group = 0; group < n_groups; ++group) {
            const float* rows = values_.data() + group * route_group * n_features_;
            if (has_missing_) {
                walk_group<true>(nodes, missing, table.left_bits, rows, n_features_, at);
            } else {
                walk_group<false>(nodes, missing, table.left_bits, rows, n_features_, at);
            }
            visit(group * route_group, at);
        }
    }

    Offset n_groups = 0;
    std::vector<Offset> slot_of;

private:
    float* at(Offset slot) { return values_.data() + slot * n_features_; }
    const float* at(Offset slot) const { return values_.data() + slot * n_features_; }

    bool are_equal(Offset slot, Offset other) const {
        const auto n_bytes = static_cast<std::size_t>(n_features_) * sizeof(float);
        return std::memcmp(at(slot), at(other), n_bytes) == 0;
    }

    void clear(Offset n_rows) {
        const Offset n_slots = (n_rows + route_group - 1) / route_group * route_group;
        values_.assign(static_cast<std::size_t>(n_slots * n_features_), 0.0f);
    }

    void read(Offset row, Offset slot) {
        float* to = at(slot);
        if (samples_.is_sparse()) {
            for (auto e = samples_.offsets[row]; e < samples_.offsets[row + 1]; ++e) {
                to[samples_.columns[e]] += samples_.values[e];
            }
        } else {
            std::copy_n(samples_.values.data() + row * samples_.n_features, samples_.n_features, to);
        }
    }

    void finish(Offset n_slots) {
        n_groups = (n_slots + route_group - 1) / route_group;
        has_missing_ = std::any_of(values_.begin(), values_.end(), [](float x) { return x != x; });
    }

    const SampleRows& samples_;
    Offset n_features_;
    std::vector<float> values_;
    bool has_missing_ = false;
};

}  // namespace detail

// Returns the order of the samples by their leaf in the first tree. Identical samples are adjacent.
inline std::vector<std::int32_t> order_by_first_tree(const RouteTable& table, const SampleRows& samples,
                                                     int n_threads, const Monitor& monitor) {
    std::vector<std::int32_t> leaf(static_cast<std::size_t>(samples.n_rows));
    std::vector<std::uint64_t> hash(leaf.size());
    const Offset block_rows = detail::DenseBlock::rows_at_once(samples, n_threads);
    for_each_block(samples.n_rows, block_rows, n_threads, monitor, [&] {
        return [&, block = detail::DenseBlock(samples)](Offset begin, Offset end, const auto&) mutable {
            block.fill(begin, end);
            for (Offset i = begin; i < end; ++i) hash[i] = block.hash(i - begin);
            block.walk(table, 0, [&](Offset row, const auto& at) {
                for (Offset i = 0; i < std::min(detail::route_group, end - begin - row); ++i) {
                    leaf[begin + row + i] = table.leaf_of_node[at[i]];
                }
            });
        };
    });
    std::vector<Offset> next(static_cast<std::size_t>(table.leaf_offsets[1]) + 1);
    for (const auto l : leaf) ++next[l + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    std::vector<std::int32_t> order(leaf.size());
    for (std::size_t i = 0; i < leaf.size(); ++i) order[next[leaf[i]]++] = static_cast<std::int32_t>(i);
    for_each_block(static_cast<Offset>(next.size()) - 1, 64, n_threads, monitor, [&] {
        return [&](Offset begin, Offset end, const auto&) {
            for (Offset l = begin; l < end; ++l) {  // next[l] is now the end of leaf l
                std::sort(order.begin() + (l == 0 ? 0 : next[l - 1]), order.begin() + next[l],
                          [&](auto a, auto b) { return hash[a] < hash[b]; });
            }
        };
    });
    return order;
}

// Writes the global leaf id of each sample in each tree, as a row-major (n_rows, n_trees) array.
template <class LeafId>
void route(const RouteTable& table, const SampleRows& samples, LeafId* leaves, int n_threads,
           const Monitor& monitor) {
    using detail::route_group;
    const Offset n_trees = table.n_trees();
    constexpr Offset worth_ordering = 256;
    std::vector<std::int32_t> order;
    if (samples.n_rows >= worth_ordering && n_trees > 1) {
        order = order_by_first_tree(table, samples, n_threads, monitor);
    }
    const Offset block_rows = detail::DenseBlock::rows_at_once(samples, n_threads);
    for_each_block(samples.n_rows, block_rows, n_threads, monitor, [&] {
        return [&, block = detail::DenseBlock(samples), found = std::vector<LeafId>()](
                   Offset begin, Offset end, const auto& poll) mutable {
            order.empty() ? block.fill(begin, end) : block.fill(order, begin, end);
            // Collect whole rows here first, because their destinations are far apart in memory.
            found.resize(static_cast<std::size_t>(block.n_groups * route_group * n_trees));
            for (Offset tree = 0; tree < n_trees; ++tree) {
                poll();
                const std::int32_t* leaf_of_node = table.leaf_of_node.data() + table.tree_offsets[tree];
                const auto first = static_cast<LeafId>(table.leaf_offsets[tree]);
                block.walk(table, tree, [&](Offset row, const auto& at) {
                    LeafId* to = found.data() + row * n_trees + tree;
                    for (Offset i = 0; i < route_group; ++i) {
                        to[i * n_trees] = first + static_cast<LeafId>(leaf_of_node[at[i]]);
                    }
                });
            }
            for (Offset i = begin; i < end; ++i) {
                const Offset slot = order.empty() ? i - begin : block.slot_of[i - begin];
                std::copy_n(found.data() + slot * n_trees, n_trees,
                            leaves + (order.empty() ? i : order[i]) * n_trees);
            }
        };
    });
}

}  // namespace leafkernel
