// Random trees: the packed walk against one sample at a time, with missing values and sparse rows.
#include <cmath>
#include <limits>

#include "check.hpp"
#include "leafkernel/route.hpp"

using namespace leafkernel;

namespace {

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
            threshold[node] = (random() % 1000) / 999.0;  // most are no floats
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

void check(unsigned seed, int n_features, Offset n_rows, bool with_missing, bool sparse) {
    std::mt19937 random(seed);
    const int left_bits = 16;
    std::vector<Tree> trees;
    std::vector<NodeBits> nodes;
    std::vector<std::uint8_t> missing;
    std::vector<std::int32_t> leaf_of_node;
    std::vector<Offset> tree_offsets{0};
    std::vector<Offset> leaf_offsets{0};
    for (int t = 0; t < 5; ++t) {
        trees.emplace_back(random, n_features, t == 2 ? 0 : 3 * t + 1);
        const Tree& tree = trees.back();
        const auto size = tree.left.size();
        nodes.resize(nodes.size() + size);
        missing.resize(nodes.size());
        leaf_of_node.resize(nodes.size());
        const Offset first = tree_offsets.back();
        const auto at = [](const auto& array) { return [&array](Offset i) { return array[i]; }; };
        const std::function<std::int64_t(Offset)> left = at(tree.left), right = at(tree.right);
        pack_tree(static_cast<Offset>(size), left, right, at(tree.feature), at(tree.threshold),
                  at(tree.missing), left_bits, nodes.data() + first, missing.data() + first,
                  leaf_of_node.data() + first);
        leaf_offsets.push_back(leaf_offsets.back() + count_leaves(static_cast<Offset>(size), left));
        tree_offsets.push_back(static_cast<Offset>(nodes.size()));
    }
    const RouteTable table{nodes, tree_offsets, missing, leaf_of_node, leaf_offsets, left_bits};

    std::vector<float> dense(static_cast<std::size_t>(n_rows * n_features));
    for (auto& x : dense) {
        x = static_cast<float>((random() % 1000) / 999.0);
        if (sparse && random() % 3 != 0) x = 0.0f;
        if (with_missing && random() % 5 == 0) x = std::numeric_limits<float>::quiet_NaN();
    }
    std::vector<float> data;
    std::vector<std::int32_t> columns, offsets{0};
    SampleRows samples{n_rows, n_features, dense, {}, {}};
    if (sparse) {
        for (Offset row = 0; row < n_rows; ++row) {
            for (std::int32_t c = 0; c < n_features; ++c) {
                const float x = dense[row * n_features + c];
                if (x != 0.0f) {
                    data.push_back(x);
                    columns.push_back(c);
                }
            }
            offsets.push_back(static_cast<std::int32_t>(data.size()));
        }
        samples = {n_rows, n_features, data, columns, offsets};
    }
    for (int n_threads : {1, 3}) {
        std::vector<std::int32_t> leaves(static_cast<std::size_t>(n_rows) * trees.size());
        route(table, samples, leaves.data(), n_threads, {});
        for (Offset row = 0; row < n_rows; ++row) {
            for (std::size_t t = 0; t < trees.size(); ++t) {
                const auto node = trees[t].leaf_node(dense.data() + row * n_features);
                Offset number = leaf_offsets[t];
                for (std::int64_t i = 0; i < node; ++i) number += trees[t].left[i] < 0;
                CHECK(leaves[row * static_cast<Offset>(trees.size()) + static_cast<Offset>(t)] ==
                      number);
            }
        }
    }
}

void thresholds_are_rounded_down() {
    for (double threshold : {0.1, 1.0 / 3.0, -0.7, 1e-40, -1e-40, 16777217.0, 1.0}) {
        const float rounded = floor_to_float(threshold);
        CHECK(static_cast<double>(rounded) <= threshold);
        CHECK(static_cast<double>(std::nextafter(rounded, INFINITY)) > threshold);
    }
}

}  // namespace

int main() {
    thresholds_are_rounded_down();
    unsigned seed = 0;
    for (int n_features : {1, 7, 200}) {
        for (Offset n_rows : {0, 1, 16, 37, 5000}) {
            for (bool with_missing : {false, true}) {
                for (bool sparse : {false, true})
                    check(++seed, n_features, n_rows, with_missing, sparse);
            }
        }
    }
}
