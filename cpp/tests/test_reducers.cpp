// Every reducer against the dense matrix, for all types and numbers of threads.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "check.hpp"
#include "leafkernel/reducers.hpp"

using namespace leafkernel;
using leafkernel::testing::RandomProduct;

namespace {

template <class Index, class Value, class LeafId>
void check_rows(const RandomProduct<Value, LeafId>& random, const std::vector<Value>& dense,
                int n_threads) {
    const auto product = random.view();
    auto builder = build_rows(product, n_threads, {});
    const auto offsets = builder->row_offsets();
    std::vector<Index> columns(static_cast<std::size_t>(offsets.back()));
    std::vector<Value> values(columns.size());
    builder->join(std::span<const Offset>(offsets), columns.data(), values.data(), n_threads, {});
    Offset e = 0;
    for (Offset row = 0; row < random.n_rows; ++row) {
        CHECK(offsets[row] == e);
        for (SampleId sample = 0; sample < random.n_samples; ++sample) {
            const Value expected = dense[row * random.n_samples + sample];
            if (expected == Value{0}) continue;
            CHECK(e < offsets[row + 1]);
            CHECK(columns[e] == sample);
            CHECK(values[e] == expected);
            ++e;
        }
    }
    CHECK(e == offsets.back());

    std::vector<std::int64_t> counts(static_cast<std::size_t>(random.n_rows));
    count_nonzeros(product, counts.data(), n_threads, {});
    for (Offset row = 0; row < random.n_rows; ++row)
        CHECK(counts[row] == offsets[row + 1] - offsets[row]);
}

template <class Value, class LeafId>
void check_top_k(const RandomProduct<Value, LeafId>& random, const std::vector<Value>& dense, Offset k,
                 int n_threads) {
    std::vector<Value> similarities(static_cast<std::size_t>(random.n_rows * k));
    std::vector<std::int64_t> samples(similarities.size());
    top_k(random.view(), k, similarities.data(), samples.data(), n_threads, {});
    for (Offset row = 0; row < random.n_rows; ++row) {
        std::vector<SampleId> order(static_cast<std::size_t>(random.n_samples));
        std::iota(order.begin(), order.end(), 0);
        std::erase(order, random.own[row]);
        const Value* values = dense.data() + row * random.n_samples;
        std::stable_sort(order.begin(), order.end(),
                         [&](SampleId a, SampleId b) { return values[a] > values[b]; });
        for (Offset i = 0; i < k; ++i) {
            CHECK(samples[row * k + i] == order[i]);
            CHECK(similarities[row * k + i] == values[order[i]]);
        }
    }
}

template <class Value, class LeafId>
void check_sums(const RandomProduct<Value, LeafId>& random, const std::vector<Value>& dense,
                int n_threads) {
    const Offset n_columns = 2;
    std::vector<double> values(static_cast<std::size_t>(random.n_samples * n_columns));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i));
    std::vector<double> sums(static_cast<std::size_t>(random.n_rows * n_columns));
    weighted_sums(random.view(), values, n_columns, sums.data(), n_threads, {});
    for (Offset row = 0; row < random.n_rows; ++row) {
        for (Offset c = 0; c < n_columns; ++c) {
            double expected = 0.0;
            for (Offset s = 0; s < random.n_samples; ++s) {
                expected +=
                    static_cast<double>(dense[row * random.n_samples + s]) * values[s * n_columns + c];
            }
            CHECK(std::abs(sums[row * n_columns + c] - expected) < 1e-9);
        }
    }
}

template <class Value, class LeafId>
void check_all() {
    unsigned seed = 0;
    for (Offset n_rows : {0, 1, 100}) {
        for (double density : {0.02, 0.3, 1.0}) {
            for (bool with_diagonal : {false, true}) {
                for (bool with_oob : {false, true}) {
                    const RandomProduct<Value, LeafId> random(++seed, n_rows, 150, 20, density,
                                                              with_diagonal, with_oob);
                    const auto dense = random.dense();
                    for (int n_threads : {1, 3}) {
                        check_rows<std::int32_t>(random, dense, n_threads);
                        check_rows<std::int64_t>(random, dense, n_threads);
                        check_top_k(random, dense, 0, n_threads);
                        check_top_k(random, dense, 7, n_threads);
                        check_top_k(random, dense, 149, n_threads);
                        check_sums(random, dense, n_threads);
                    }
                }
            }
        }
    }
}

// Rows from many threads that overflow their slabs: others must follow, and all be joined in order.
void check_many_slabs() {
    const Offset n_rows = 60000;
    CsrBuilder<float> builder(n_rows);
    for_each_block(n_rows, 7, 3, {}, [&] {
        return [writer = CsrBuilder<float>::Writer(builder, 11)](Offset begin, Offset end,
                                                                 const auto&) mutable {
            for (Offset row = begin; row < end; ++row) {
                writer(row, [&](auto&& visit) {
                    for (Offset i = 0; i < row % 11; ++i) {
                        visit(static_cast<SampleId>(i), static_cast<float>(row + i));
                    }
                });
            }
        };
    });
    const auto offsets = builder.row_offsets();
    std::vector<std::int32_t> columns(static_cast<std::size_t>(offsets.back()));
    std::vector<float> values(columns.size());
    builder.join(std::span<const Offset>(offsets), columns.data(), values.data(), 3, {});
    for (Offset row = 0; row < n_rows; ++row) {
        CHECK(offsets[row + 1] - offsets[row] == row % 11);
        for (Offset i = 0; i < row % 11; ++i) {
            CHECK(columns[offsets[row] + i] == i);
            CHECK(values[offsets[row] + i] == static_cast<float>(row + i));
        }
    }
}

// Enough work for many blocks of the real loop on many threads.
void check_many_blocks() {
    const RandomProduct<float, std::int32_t> random(99, 1500, 2000, 20, 0.5, true, true);
    const auto dense = random.dense();
    check_rows<std::int32_t>(random, dense, 4);
    check_top_k(random, dense, 9, 4);
    check_sums(random, dense, 4);
}

}  // namespace

int main() {
    check_all<float, std::int32_t>();
    check_all<float, std::int64_t>();
    check_all<double, std::int32_t>();
    check_all<double, std::int64_t>();
    check_many_slabs();
    check_many_blocks();
}
