// Compares every reducer with the dense matrix, for all types of weights, value types and thread
// counts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "check.hpp"
#include "leafkernel/csr_rows.hpp"
#include "leafkernel/matvec.hpp"
#include "leafkernel/reducers.hpp"

using namespace leafkernel;
using leafkernel::testing::Kind;
using leafkernel::testing::RandomProduct;

namespace {

constexpr Offset no_limit = std::numeric_limits<Offset>::max();

bool close(double a, double b, double tolerance) { return std::abs(a - b) <= tolerance * std::abs(b); }

// Checks the rows and returns them as a dense matrix.
template <class Index, class Value>
std::vector<Value> check_rows(const RandomProduct& random, bool sorted, int n_threads) {
    const auto product = random.view();
    const auto expected = random.dense();
    const auto matrix = csr_rows<Index, Value>(product, sorted, no_limit, n_threads, {});
    CHECK(matrix.columns.size() == matrix.offsets[random.n_rows]);
    std::vector<Value> dense(expected.size());
    for (Offset row = 0; row < random.n_rows; ++row) {
        for (Offset e = matrix.offsets[row]; e < matrix.offsets[row + 1]; ++e) {
            if (sorted && e > matrix.offsets[row]) CHECK(matrix.columns[e - 1] < matrix.columns[e]);
            auto& entry = dense[row * random.n_samples + matrix.columns[e]];
            CHECK(entry == Value{0});  // no duplicate columns
            entry = matrix.values[e];
            CHECK(entry != Value{0});
        }
    }
    const double tolerance = std::is_same_v<Value, float> ? 1e-6 : 1e-13;
    for (std::size_t i = 0; i < dense.size(); ++i) CHECK(close(dense[i], expected[i], tolerance));

    std::vector<std::int64_t> counts(static_cast<std::size_t>(random.n_rows));
    count_nonzeros<Value>(product, counts.data(), n_threads, {});
    for (Offset row = 0; row < random.n_rows; ++row) {
        CHECK(counts[row] == matrix.offsets[row + 1] - matrix.offsets[row]);
        CHECK(counts[row] <= product.collisions(row) + !random.diagonal.empty());
    }
    return dense;
}

template <class Value>
void check_top_k(const RandomProduct& random, const std::vector<Value>& dense, Offset k,
                 int n_threads) {
    std::vector<Value> similarities(static_cast<std::size_t>(random.n_rows * k));
    std::vector<std::int64_t> samples(similarities.size());
    top_k(random.view(), k, similarities.data(), samples.data(), n_threads, {});
    for (Offset row = 0; row < random.n_rows; ++row) {
        std::vector<SampleId> order(static_cast<std::size_t>(random.n_samples));
        std::iota(order.begin(), order.end(), 0);
        std::erase(order, random.sample_at[random.own[row]]);
        const Value* values = dense.data() + row * random.n_samples;
        std::stable_sort(order.begin(), order.end(),
                         [&](SampleId a, SampleId b) { return values[a] > values[b]; });
        for (Offset i = 0; i < k; ++i) {
            CHECK(samples[row * k + i] == order[i]);
            CHECK(similarities[row * k + i] == values[order[i]]);
        }
    }
}

// Checks P V by rows and, if P has no diagonal or division, through the leaves.
template <class Value>
void check_sums(const RandomProduct& random, const std::vector<Value>& dense, Offset n_columns,
                int n_threads) {
    std::vector<double> values(static_cast<std::size_t>(random.n_samples * n_columns));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i));
    std::vector<double> sums(static_cast<std::size_t>(random.n_rows * n_columns));
    auto through_leaves = sums;
    weighted_sums<Value>(random.view(), values, n_columns, sums.data(), n_threads, {});
    const bool is_plain = random.diagonal.empty() && random.n_words == 0;
    if (is_plain) apply<Value>(random.view(), values, n_columns, through_leaves.data(), n_threads, {});
    for (Offset row = 0; row < random.n_rows; ++row) {
        for (Offset c = 0; c < n_columns; ++c) {
            double expected = 0.0;
            for (Offset s = 0; s < random.n_samples; ++s) {
                expected +=
                    static_cast<double>(dense[row * random.n_samples + s]) * values[s * n_columns + c];
            }
            CHECK(std::abs(sums[row * n_columns + c] - expected) < 1e-9);
            if (is_plain) CHECK(std::abs(through_leaves[row * n_columns + c] - expected) < 1e-4);
        }
    }
}

template <class Value>
void check_all() {
    const auto kinds = {Kind::ones, Kind::flags, Kind::counts, Kind::floats, Kind::doubles};
    unsigned seed = 0;
    for (const Kind query : kinds) {
        for (const Kind reference : kinds) {
            for (int options = 0; options < 16; ++options) {
                const Offset n_rows = options == 0 ? 0 : 20;
                const RandomProduct random(++seed, n_rows, 60, 9,
                                           {.query = query,
                                            .reference = reference,
                                            .factors = (options & 1) != 0,
                                            .diagonal = (options & 2) != 0,
                                            .oob = (options & 4) != 0,
                                            .wide = (options & 8) != 0,
                                            .density = options % 3 == 0 ? 0.1 : 0.7});
                for (const int n_threads : {1, 3}) {
                    check_rows<std::int64_t, Value>(random, false, n_threads);
                    const auto dense = check_rows<std::int32_t, Value>(random, true, n_threads);
                    for (const Offset k : {0, 7, 59}) check_top_k(random, dense, k, n_threads);
                    for (const Offset columns : {1, 6, 37})
                        check_sums(random, dense, columns, n_threads);
                }
            }
        }
    }
}

// Uses several chunks of rows, many blocks and threads, and more trees than fit in an 8-bit count.
void check_many() {
    const RandomProduct random(99, 9000, 300, 12, {.reference = Kind::counts, .diagonal = true});
    const auto dense = check_rows<std::int32_t, float>(random, true, 4);
    CHECK(dense == (check_rows<std::int32_t, float>(random, true, 1)));
    CHECK(dense == (check_rows<std::int32_t, float>(random, false, 3)));
    check_top_k(random, dense, 9, 4);
    const RandomProduct counts(100, 50, 40, 700, {.query = Kind::flags});
    check_rows<std::int32_t, double>(counts, true, 2);
}

}  // namespace

int main() {
    check_all<float>();
    check_all<double>();
    check_many();
}
