// Compares products and neighbors of whole paths with sums over the nodes of every pair, and damages
// the nodes.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "check.hpp"
#include "leafkernel/checks.hpp"
#include "leafkernel/matvec.hpp"
#include "leafkernel/nearest_by_paths.hpp"
#include "trees.hpp"

using namespace leafkernel;
using leafkernel::testing::Tree;

namespace {

// Random trees with weighted nodes, and samples in random leaves.
struct RandomPaths {
    std::mt19937 random;
    std::vector<Offset> first{0}, first_leaves{0}, offsets, row_order;
    std::vector<NodeId> parent, node_of_leaf;
    std::vector<double> weights;
    double decay;
    Offset n_trees, n_rows;
    SampleId n_samples;
    std::vector<std::int32_t> rows, samples;  // leaves
    std::vector<SampleId> members, sample_at, own;

    RandomPaths(unsigned seed, Offset trees, int depth, Offset n_rows_, SampleId n_samples_)
        : random(seed), n_trees(trees), n_rows(n_rows_), n_samples(n_samples_) {
        decay = seed % 4 == 0 ? 1.0 : (random() % 100) / 99.0;
        for (Offset tree = 0; tree < n_trees; ++tree) {
            const Tree grown(random, 3, depth);  // its nodes are depth first
            const auto begin = static_cast<NodeId>(parent.size());
            parent.resize(parent.size() + grown.left.size(), -1);
            for (std::size_t node = 0; node < grown.left.size(); ++node) {
                const auto here = begin + static_cast<NodeId>(node);
                weights.push_back((random() % 10) / 9.0);
                if (grown.left[node] < 0) {
                    node_of_leaf.push_back(here);
                } else {
                    parent[begin + grown.left[node]] = parent[begin + grown.right[node]] = here;
                }
            }
            first.push_back(static_cast<Offset>(parent.size()));
            first_leaves.push_back(static_cast<Offset>(node_of_leaf.size()));
        }
        const auto draw = [&](Offset n) {
            std::vector<std::int32_t> leaves;
            for (Offset i = 0; i < n * n_trees; ++i) {
                const Offset begin = first_leaves[i % n_trees], end = first_leaves[i % n_trees + 1];
                leaves.push_back(static_cast<std::int32_t>(begin + random() % (end - begin)));
            }
            return leaves;
        };
        rows = draw(n_rows);
        samples = draw(n_samples);
        sample_at.resize(static_cast<std::size_t>(n_samples));
        std::iota(sample_at.begin(), sample_at.end(), 0);
        std::shuffle(sample_at.begin(), sample_at.end(), random);
        row_order.resize(static_cast<std::size_t>(n_rows));
        std::iota(row_order.rbegin(), row_order.rend(), 0);
        offsets.assign(1, 0);
        for (Offset leaf = 0; leaf < first_leaves.back(); ++leaf) {
            for (SampleId place = 0; place < n_samples; ++place) {
                const auto* of_sample = samples.data() + sample_at[place] * n_trees;
                if (std::find(of_sample, of_sample + n_trees, leaf) != of_sample + n_trees) {
                    members.push_back(place);
                }
            }
            offsets.push_back(static_cast<Offset>(members.size()));
        }
        for (Offset row = 0; row < n_rows; ++row) {
            own.push_back(static_cast<SampleId>(random() % (n_samples + 1)) - 1);
        }
    }

    Product view(const WeightedNodes& nodes) const {
        Product product;
        const auto of = [&](const std::vector<std::int32_t>& leaves, Offset n) {
            WeighedRows found;
            found.incidence.columns.narrow = leaves;
            found.incidence.first = first_leaves;
            found.incidence.n_rows = n;
            found.incidence.longest = n_trees;
            return found;
        };
        product.query = of(rows, n_rows);
        product.reference.offsets = offsets;
        product.reference.members = members;
        product.reference.sample_at = sample_at;
        product.reference.rows = of(samples, n_samples);
        product.row_order = row_order;
        product.own = own;
        product.nodes = &nodes;
        return product;
    }

    // The inner product of two leaves: the sum over the nodes on both paths.
    double shared(std::int32_t one, std::int32_t other) const {
        return shared_by_nodes(node_of_leaf[one], node_of_leaf[other]);
    }

    double shared_by_nodes(NodeId one, NodeId other) const {
        double sum = 0.0, left = 1.0;
        for (NodeId a = one; a >= 0; a = parent[a], left *= decay) {
            double right = 1.0;
            for (NodeId b = other; b >= 0; b = parent[b], right *= decay) {
                if (a == b) sum += weights[a] * left * right;
            }
        }
        return sum;
    }

    std::vector<double> dense() const {
        std::vector<double> matrix;
        for (Offset row = 0; row < n_rows; ++row) {
            for (SampleId sample = 0; sample < n_samples; ++sample) {
                double sum = 0.0;
                for (Offset t = 0; t < n_trees; ++t) {
                    sum += shared(rows[row * n_trees + t], samples[sample * n_trees + t]);
                }
                matrix.push_back(sum);
            }
        }
        return matrix;
    }
};

void check_products(const RandomPaths& random, const WeightedNodes& nodes, int n_threads) {
    const Product product = random.view(nodes);
    const auto expected = random.dense();
    for (const Offset n_columns : {1, 3, 21}) {
        std::vector<double> values(static_cast<std::size_t>(random.n_samples * n_columns));
        std::mt19937 draw(7);
        for (double& value : values) value = (draw() % 200) / 100.0 - 1.0;
        std::vector<double> out(static_cast<std::size_t>(random.n_rows * n_columns));
        apply<double>(product, values, n_columns, out.data(), n_threads, {});
        for (Offset row = 0; row < random.n_rows; ++row) {
            for (Offset c = 0; c < n_columns; ++c) {
                double sum = 0.0;
                for (SampleId s = 0; s < random.n_samples; ++s) {
                    sum += expected[row * random.n_samples + s] * values[s * n_columns + c];
                }
                CHECK(std::abs(out[row * n_columns + c] - sum) < 1e-10);
            }
        }
    }
}

// The bound of a node is the largest inner product with a leaf of its tree that is not below it.
void check_bounds(const RandomPaths& random, const WeightedNodes& nodes) {
    for (Offset tree = 0; tree < random.n_trees; ++tree) {
        for (Offset node = random.first[tree]; node < random.first[tree + 1]; ++node) {
            double most = 0.0;
            for (Offset leaf = random.first_leaves[tree]; leaf < random.first_leaves[tree + 1];
                 ++leaf) {
                if (leaf >= nodes[node].first_leaf && leaf < nodes[node].end_leaf) continue;
                const auto here = static_cast<NodeId>(node);
                most = std::max(most, random.shared_by_nodes(here, random.node_of_leaf[leaf]));
            }
            CHECK(std::abs(nodes[node].outside - most) < 1e-12);
        }
    }
}

template <class Value>
void check_nearest(const RandomPaths& random, const WeightedNodes& nodes, Offset k, int n_threads) {
    const auto expected = random.dense();
    std::vector<Value> values(static_cast<std::size_t>(random.n_rows * k));
    std::vector<std::int64_t> found(values.size()), n_looks(static_cast<std::size_t>(random.n_rows));
    nearest_by_paths(random.view(nodes), nodes, k, values.data(), found.data(), n_looks.data(),
                     n_threads, {});
    const double tolerance = std::is_same_v<Value, float> ? 1e-5 : 1e-11;
    for (Offset row = 0; row < random.n_rows; ++row) {
        const SampleId own = random.own[row] < 0 ? -1 : random.sample_at[random.own[row]];
        std::vector<double> others;
        for (SampleId s = 0; s < random.n_samples; ++s) {
            if (s != own) others.push_back(expected[row * random.n_samples + s]);
        }
        std::sort(others.rbegin(), others.rend());
        for (Offset i = 0; i < k; ++i) {
            const Offset at = row * k + i;
            CHECK(found[at] != own);
            CHECK(std::abs(values[at] - others[i]) < tolerance);
            CHECK(std::abs(values[at] - expected[row * random.n_samples + found[at]]) < tolerance);
            if (i > 0) {
                CHECK(values[at - 1] > values[at] ||
                      (values[at - 1] == values[at] && found[at - 1] < found[at]));
            }
        }
    }
}

// Nodes from damaged arrays are rejected, or valid. The sanitizers find everything else.
void damage_nodes() {
    int refused = 0, accepted = 0;
    for (unsigned seed = 0; seed < 2000; ++seed) {
        RandomPaths random(seed, 1 + seed % 3, 3, 4, 9);
        auto& draw = random.random;
        const auto any = [&](auto& array) -> auto& { return array[draw() % array.size()]; };
        const auto number = [&] { return static_cast<std::int32_t>(draw() % 12) - 3; };
        const unsigned kind = draw() % 6;
        if (kind == 0) any(random.parent) = number();
        if (kind == 1) any(random.first) = number();
        if (kind == 2) any(random.weights) = -1.0;
        if (kind == 3) random.decay = number();
        if (kind == 4) random.parent.pop_back();
        if (kind == 5) random.first.pop_back();
        try {
            const WeightedNodes nodes(random.first, random.parent, random.weights, random.decay);
            const Product product = random.view(nodes);
            check_product(product);
            check_nodes(product);
            std::vector<double> values(9), out(4);
            apply<double>(product, values, 1, out.data(), 1, {});
            ++accepted;
        } catch (const std::invalid_argument&) {
            ++refused;
        }
    }
    CHECK(refused > 1000);
    CHECK(accepted > 50);
}

}  // namespace

int main() {
    for (unsigned seed = 0; seed < 60; ++seed) {
        const auto n_samples = static_cast<SampleId>(2 + seed % 40);
        const RandomPaths random(seed, 1 + seed % 5, static_cast<int>(seed % 7), 1 + seed % 9,
                                 n_samples);
        const WeightedNodes nodes(random.first, random.parent, random.weights, random.decay);
        check_bounds(random, nodes);
        for (int n_threads : {1, 3}) {
            check_products(random, nodes, n_threads);
            for (const Offset k : {Offset{1}, Offset{n_samples} / 2, Offset{n_samples} - 1}) {
                check_nearest<double>(random, nodes, k, n_threads);
                check_nearest<float>(random, nodes, k, n_threads);
            }
        }
    }
    const RandomPaths large(1, 20, 9, 40, 3000);
    const WeightedNodes nodes(large.first, large.parent, large.weights, large.decay);
    check_nearest<float>(large, nodes, 10, 2);
    damage_nodes();
}
