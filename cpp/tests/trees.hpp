// Random trees, as node arrays and packed.
#pragma once

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "leafkernel/route.hpp"

namespace leafkernel::testing {

struct Tree {
    std::vector<std::int64_t> left, right, feature;
    std::vector<double> threshold;
    std::vector<std::uint8_t> missing;

    Tree(std::mt19937& random, int n_features, int max_depth) { grow(random, n_features, max_depth); }

    std::int64_t grow(std::mt19937& random, int n_features, int depth) {
        const auto node = static_cast<std::int64_t>(left.size());
        left.push_back(-1);
        right.push_back(-1);
        feature.push_back(-2);
        threshold.push_back(-2.0);
        missing.push_back(random() % 2);
        if (depth > 0 && random() % 8 != 0) {
            feature[node] = random() % static_cast<unsigned>(n_features);
            threshold[node] = (random() % 1000) / 999.0;  // most are not representable as floats
            const auto l = grow(random, n_features, depth - 1);
            const auto r = grow(random, n_features, depth - 1);
            left[node] = l;
            right[node] = r;
        }
        return node;
    }

    std::int64_t leaf_node(const float* x) const {
        std::int64_t node = 0;
        while (left[node] >= 0) {
            const float value = x[feature[node]];
            const bool goes_left = std::isnan(value) ? missing[node] != 0 : value <= threshold[node];
            node = goes_left ? left[node] : right[node];
        }
        return node;
    }
};

// A packed forest that owns its arrays.
struct PackedForest {
    static constexpr int left_bits = 16;
    std::vector<NodeBits> nodes;
    std::vector<std::uint8_t> missing;
    std::vector<std::int32_t> leaf_of_node;
    std::vector<Offset> tree_offsets{0}, leaf_offsets{0};

    void add(const Tree& tree, int n_features) {
        const auto size = tree.left.size();
        const Offset first = tree_offsets.back();
        nodes.resize(nodes.size() + size);
        missing.resize(nodes.size());
        leaf_of_node.resize(nodes.size());
        const auto at = [](const auto& array) { return [&array](Offset i) { return array[i]; }; };
        const std::function<std::int64_t(Offset)> left = at(tree.left), right = at(tree.right);
        const Offset n_leaves =
            pack_tree(static_cast<Offset>(size), n_features, left, right, at(tree.feature),
                      at(tree.threshold), at(tree.missing), left_bits, nodes.data() + first,
                      missing.data() + first, leaf_of_node.data() + first);
        leaf_offsets.push_back(leaf_offsets.back() + n_leaves);
        tree_offsets.push_back(static_cast<Offset>(nodes.size()));
    }

    RouteTable table() const {
        return {nodes, tree_offsets, missing, leaf_of_node, leaf_offsets, left_bits};
    }
};

}  // namespace leafkernel::testing
