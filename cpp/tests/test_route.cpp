// Compares packed trees with routing one sample at a time, with missing values and sparse rows.
#include <cmath>
#include <limits>

#include "check.hpp"
#include "leafkernel/route.hpp"
#include "trees.hpp"

using namespace leafkernel;
using leafkernel::testing::PackedForest;
using leafkernel::testing::Tree;

namespace {

void check(unsigned seed, int n_features, Offset n_rows, bool with_missing, bool sparse) {
    std::mt19937 random(seed);
    std::vector<Tree> trees;
    PackedForest forest;
    for (int t = 0; t < 5; ++t) {
        trees.emplace_back(random, n_features, t == 2 ? 0 : 3 * t + 1);
        forest.add(trees.back(), n_features);
    }
    const RouteTable table = forest.table();
    check_table(table, n_features);

    std::vector<float> dense(static_cast<std::size_t>(n_rows * n_features));
    for (auto& x : dense) {
        x = static_cast<float>((random() % 1000) / 999.0);
        if (sparse && random() % 3 != 0) x = 0.0f;
        if (with_missing && random() % 5 == 0) x = std::numeric_limits<float>::quiet_NaN();
    }
    for (Offset row = n_rows / 3; row < n_rows; ++row) {  // duplicate rows, which are routed once
        const Offset other = static_cast<Offset>(random() % 1000) % n_rows;
        std::copy_n(dense.data() + other * n_features, n_features, dense.data() + row * n_features);
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
                Offset number = forest.leaf_offsets[t];
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
