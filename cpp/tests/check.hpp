// The least that a test needs: a check that says where and what failed, and random products.
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

// Owns the arrays of a product: random weights on random leaves, rows and leaves of all sizes.
template <class Value, class LeafId>
struct RandomProduct {
    std::vector<Offset> query_offsets{0};
    std::vector<LeafId> query_leaves;
    std::vector<Value> query_weights;
    std::vector<Offset> leaf_offsets{0};
    std::vector<SampleId> members;
    std::vector<Value> member_weights;
    std::vector<SampleId> sample_at, own;
    std::vector<Offset> row_order;
    std::vector<double> diagonal;
    std::vector<std::uint64_t> query_oob, reference_oob;
    Offset n_rows, n_leaves, n_words;
    SampleId n_samples;

    RandomProduct(unsigned seed, Offset n_rows_, SampleId n_samples_, Offset n_leaves_, double density,
                  bool with_diagonal, bool with_oob)
        : n_rows(n_rows_), n_leaves(n_leaves_), n_words(with_oob ? 2 : 0), n_samples(n_samples_) {
        std::mt19937 random(seed);
        std::uniform_real_distribution<double> unit(0.0, 1.0);
        for (Offset row = 0; row < n_rows; ++row) {
            for (Offset leaf = 0; leaf < n_leaves; ++leaf) {
                if (unit(random) < density) {
                    query_leaves.push_back(static_cast<LeafId>(leaf));
                    query_weights.push_back(static_cast<Value>(unit(random)));
                }
            }
            query_offsets.push_back(static_cast<Offset>(query_leaves.size()));
            own.push_back(static_cast<SampleId>(random() % static_cast<unsigned>(n_samples)));
            if (with_diagonal) diagonal.push_back(row % 2 == 0 ? 0.0 : 1.0);
        }
        for (Offset leaf = 0; leaf < n_leaves; ++leaf) {
            for (SampleId sample = 0; sample < n_samples; ++sample) {
                if (unit(random) < density) {
                    members.push_back(sample);
                    member_weights.push_back(static_cast<Value>(unit(random)));
                }
            }
            leaf_offsets.push_back(static_cast<Offset>(members.size()));
        }
        // Any order of the samples and of the rows gives the same results.
        for (SampleId sample = 0; sample < n_samples; ++sample) sample_at.push_back(sample);
        for (Offset row = 0; row < n_rows; ++row) row_order.push_back(row);
        std::shuffle(sample_at.begin(), sample_at.end(), random);
        std::shuffle(row_order.begin(), row_order.end(), random);
        if (with_oob) {
            for (Offset i = 0; i < n_rows * n_words; ++i) query_oob.push_back(random());
            for (Offset i = 0; i < n_samples * n_words; ++i)
                reference_oob.push_back(random() & random());
        }
    }

    Product<Value, LeafId> view() const {
        Product<Value, LeafId> product;
        product.query = {query_offsets, query_leaves, query_weights};
        product.reference = {leaf_offsets, members, member_weights, sample_at};
        product.row_order = row_order;
        product.own = own;
        product.diagonal = diagonal;
        product.query_oob = {query_oob, n_words};
        product.reference_oob = {reference_oob, n_words};
        return product;
    }

    // The dense matrix, pair by pair.
    std::vector<Value> dense() const {
        std::vector<Value> matrix;
        for (Offset row = 0; row < n_rows; ++row) {
            std::vector<double> sums(static_cast<std::size_t>(n_samples));
            for (Offset e = query_offsets[row]; e < query_offsets[row + 1]; ++e) {
                const auto leaf = query_leaves[e];
                for (Offset m = leaf_offsets[leaf]; m < leaf_offsets[leaf + 1]; ++m) {
                    sums[sample_at[members[m]]] +=
                        static_cast<double>(query_weights[e]) * member_weights[m];
                }
            }
            for (SampleId sample = 0; sample < n_samples; ++sample) {
                if (n_words > 0) {
                    int shared = 0;
                    for (Offset bit = 0; bit < 64 * n_words; ++bit) {
                        const auto a = query_oob[row * n_words + bit / 64] >> (bit % 64);
                        const auto b = reference_oob[sample * n_words + bit / 64] >> (bit % 64);
                        shared += static_cast<int>(a & b & 1);
                    }
                    sums[sample] = shared > 0 ? sums[sample] / shared : 0.0;
                }
                if (!diagonal.empty() && sample == own[row]) sums[sample] = diagonal[row];
                matrix.push_back(static_cast<Value>(sums[sample]));
            }
        }
        return matrix;
    }
};

}  // namespace leafkernel::testing
