// A check macro that reports failures, and random products for tests.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>
#include <vector>

#include "leafkernel/views.hpp"

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            std::cerr << __FILE__ << ":" << __LINE__ << ": " << #condition << " failed\n"; \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (false)

namespace leafkernel::testing {

// The type of the weights on one side.
enum class Kind { ones, flags, counts, floats, doubles };

// Random entry weights of any type.
struct RandomWeights {
    std::vector<std::uint8_t> flags, counts;
    std::vector<float> floats;
    std::vector<double> doubles;

    template <class Random>
    RandomWeights(Random& random, Kind kind, Offset size, double density) {
        std::uniform_real_distribution<double> unit(0.0, 1.0);
        for (Offset i = 0; i < size; ++i) {
            const double value = unit(random) < density ? unit(random) : 0.0;
            if (kind == Kind::flags) flags.push_back(value > 0);
            if (kind == Kind::counts) counts.push_back(static_cast<std::uint8_t>(4 * value));
            if (kind == Kind::floats) floats.push_back(static_cast<float>(value));
            if (kind == Kind::doubles) doubles.push_back(value);
        }
    }

    EntryWeights view() const { return {counts, floats, doubles}; }
    double at(Offset i) const {
        if (!flags.empty()) return flags[i];
        return view()[i];
    }
};

// A random product over trees with a few leaves each, with any of the optional factors.
struct RandomProduct {
    Offset n_rows, n_trees, leaves_per_tree = 6, n_words;
    SampleId n_samples;
    std::mt19937 random;
    std::vector<std::int32_t> query_leaf, sample_leaf;
    std::vector<std::int64_t> wide_query_leaf;
    RandomWeights query_weights, sample_weights;
    std::vector<double> by_row, by_place, by_leaf, diagonal;
    std::vector<Offset> leaf_offsets, row_order, first_leaves;
    std::vector<SampleId> members, sample_at, own;
    std::vector<std::uint8_t> member_counts;
    std::vector<float> member_floats;
    std::vector<double> member_doubles;
    std::vector<std::uint64_t> query_oob, reference_oob;

    struct Options {
        Kind query = Kind::ones, reference = Kind::ones;
        bool factors = false, diagonal = false, oob = false, wide = false, ordered = false;
        double density = 0.7;
    };

    RandomProduct(unsigned seed, Offset n_rows_, SampleId n_samples_, Offset n_trees_, Options options)
        : n_rows(n_rows_),
          n_trees(n_trees_),
          n_words(options.oob ? 2 : 0),
          n_samples(n_samples_),
          random(seed),
          query_weights(random, options.query, n_rows * n_trees, options.density),
          sample_weights(random, options.reference, n_samples * n_trees, options.density) {
        std::uniform_real_distribution<double> unit(0.0, 1.0);
        const auto draw = [&](Offset tree) {
            return static_cast<std::int32_t>(tree * leaves_per_tree +
                                             static_cast<Offset>(random() % leaves_per_tree));
        };
        for (Offset i = 0; i < n_rows * n_trees; ++i) query_leaf.push_back(draw(i % n_trees));
        for (Offset i = 0; i < n_samples * n_trees; ++i) sample_leaf.push_back(draw(i % n_trees));
        if (options.wide) wide_query_leaf.assign(query_leaf.begin(), query_leaf.end());
        // Results must not depend on the order of the samples or rows.
        for (SampleId sample = 0; sample < n_samples; ++sample) sample_at.push_back(sample);
        for (Offset row = 0; row < n_rows; ++row) row_order.push_back(row);
        if (!options.ordered) std::shuffle(sample_at.begin(), sample_at.end(), random);
        std::shuffle(row_order.begin(), row_order.end(), random);
        leaf_offsets.push_back(0);
        for (Offset t = 0; t <= n_trees; ++t) first_leaves.push_back(t * leaves_per_tree);
        for (Offset leaf = 0; leaf < n_trees * leaves_per_tree; ++leaf) {
            for (SampleId place = 0; place < n_samples; ++place) {
                const Offset e = sample_at[place] * n_trees + leaf / leaves_per_tree;
                if (sample_leaf[e] != leaf || sample_weights.at(e) == 0.0) continue;
                members.push_back(place);
                if (options.reference == Kind::counts)
                    member_counts.push_back(sample_weights.counts[e]);
                if (options.reference == Kind::floats)
                    member_floats.push_back(sample_weights.floats[e]);
                if (options.reference == Kind::doubles) {
                    member_doubles.push_back(sample_weights.doubles[e]);
                }
            }
            leaf_offsets.push_back(static_cast<Offset>(members.size()));
            if (options.factors) by_leaf.push_back(unit(random));
        }
        for (Offset row = 0; row < n_rows; ++row) {
            own.push_back(static_cast<SampleId>(random() % static_cast<unsigned>(n_samples)));
            if (options.diagonal) diagonal.push_back(row % 2 == 0 ? 0.0 : 1.0);
            if (options.factors) by_row.push_back(unit(random));
        }
        for (SampleId i = 0; i < n_samples && options.factors; ++i) by_place.push_back(unit(random));
        for (Offset i = 0; i < n_rows * n_words; ++i) query_oob.push_back(random());
        for (Offset i = 0; i < n_samples * n_words; ++i) reference_oob.push_back(random() & random());
    }

    WeighedRows query() const {
        WeighedRows rows;
        if (wide_query_leaf.empty()) {
            rows.incidence.columns.narrow = query_leaf;
        } else {
            rows.incidence.columns.wide = wide_query_leaf;
        }
        rows.incidence.first = first_leaves;
        rows.incidence.n_rows = n_rows;
        rows.incidence.longest = n_trees;
        rows.present = query_weights.flags;
        rows.weights = query_weights.view();
        rows.by_row = by_row;
        return rows;
    }

    // The reference samples as rows, from which the lists are built.
    WeighedRows samples() const {
        WeighedRows rows;
        rows.incidence.columns.narrow = sample_leaf;
        rows.incidence.first = first_leaves;
        rows.incidence.n_rows = n_samples;
        rows.incidence.longest = n_trees;
        rows.present = sample_weights.flags;
        rows.weights = sample_weights.view();
        return rows;
    }

    Product view() const {
        Product product;
        product.query = query();
        product.reference = {
            {leaf_offsets, members, {member_counts, member_floats, member_doubles}, sample_at},
            by_place,
            samples()};
        product.by_leaf = by_leaf;
        product.scale = 0.5;
        product.row_order = row_order;
        product.own = own;
        product.diagonal = diagonal;
        product.query_oob = {query_oob, n_words};
        product.reference_oob = {reference_oob, n_words};
        return product;
    }

    // The dense matrix, computed pair by pair.
    std::vector<double> dense() const {
        std::vector<double> matrix(static_cast<std::size_t>(n_rows * n_samples));
        for (Offset row = 0; row < n_rows; ++row) {
            for (SampleId place = 0; place < n_samples; ++place) {
                const SampleId sample = sample_at[place];
                double sum = 0.0;
                for (Offset t = 0; t < n_trees; ++t) {
                    const Offset q = row * n_trees + t;
                    const Offset w = sample * n_trees + t;
                    if (query_leaf[q] != sample_leaf[w]) continue;
                    const double g = by_leaf.empty() ? 1.0 : by_leaf[query_leaf[q]];
                    sum += query_weights.at(q) * g * sample_weights.at(w);
                }
                sum *= 0.5 * (by_row.empty() ? 1.0 : by_row[row]) *
                       (by_place.empty() ? 1.0 : by_place[place]);
                if (n_words > 0) {
                    int shared = 0;
                    for (Offset bit = 0; bit < 64 * n_words; ++bit) {
                        const auto a = query_oob[row * n_words + bit / 64] >> (bit % 64);
                        const auto b = reference_oob[place * n_words + bit / 64] >> (bit % 64);
                        shared += static_cast<int>(a & b & 1);
                    }
                    sum = shared > 0 ? sum / shared : 0.0;
                }
                if (!diagonal.empty() && place == own[row]) sum = diagonal[row];
                matrix[row * n_samples + sample] = sum;
            }
        }
        return matrix;
    }
};

}  // namespace leafkernel::testing
