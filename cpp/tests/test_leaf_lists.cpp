// Compares lists, masses and draws with counting one by one.
#include <cmath>

#include "check.hpp"
#include "leafkernel/draws.hpp"
#include "leafkernel/leaf_lists.hpp"

using namespace leafkernel;
using leafkernel::testing::Kind;
using leafkernel::testing::RandomProduct;

namespace {

template <class Weight>
void check_lists(const RandomProduct& random, const std::vector<Weight>& expected, int n_threads) {
    const auto rows = random.samples();
    std::vector<Offset> offsets(random.leaf_offsets.size());
    count_members(rows, offsets, n_threads, {});
    CHECK(offsets == random.leaf_offsets);
    std::vector<SampleId> members(random.members.size());
    std::vector<Weight> weights(expected.size());
    list_members(rows, random.sample_at, offsets, members.data(),
                 expected.empty() ? nullptr : weights.data(), n_threads, {});
    CHECK(members == random.members);
    CHECK(weights == expected);

    const auto n_leaves = random.leaf_offsets.size() - 1;
    std::vector<std::int64_t> counts(n_leaves), true_counts(n_leaves);
    std::vector<double> masses(n_leaves), true_masses(n_leaves);
    leaf_masses(rows, counts.data(), masses.data(), n_threads, {});
    for (std::size_t e = 0; e < random.sample_leaf.size(); ++e) {
        ++true_counts[random.sample_leaf[e]];
        true_masses[random.sample_leaf[e]] += rows.weights[static_cast<Offset>(e)];
    }
    CHECK(counts == true_counts);
    for (std::size_t i = 0; i < n_leaves; ++i) CHECK(std::abs(masses[i] - true_masses[i]) < 1e-12);
}

// Compares rows given as a table with the same rows given as ragged rows, which use a different code
// path.
void check_table_and_rows(const RandomProduct& random, int n_threads) {
    const auto table = random.samples();
    auto listed = table;
    std::vector<Offset> offsets;
    for (Offset row = 0; row <= table.n_rows(); ++row) offsets.push_back(row * random.n_trees);
    listed.incidence.offsets = offsets;
    std::vector<std::int64_t> wide_leaf(random.sample_leaf.begin(), random.sample_leaf.end());
    auto wide = table;
    wide.incidence.columns = {{}, wide_leaf};

    const auto n_leaves = random.leaf_offsets.size() - 1;
    std::vector<Offset> expected_begins(n_leaves + 1, -1);
    count_members(listed, expected_begins, n_threads, {});
    std::vector<SampleId> expected(static_cast<std::size_t>(expected_begins.back()));
    std::vector<double> expected_weights(expected.size());
    list_members(listed, random.sample_at, expected_begins, expected.data(), expected_weights.data(),
                 n_threads, {});
    std::vector<std::int64_t> expected_counts(n_leaves, -1);
    std::vector<double> expected_masses(n_leaves, -1.0);
    leaf_masses(listed, expected_counts.data(), expected_masses.data(), n_threads, {});
    for (const auto& rows : {table, wide}) {
        std::vector<Offset> begins(n_leaves + 1, -1);
        count_members(rows, begins, n_threads, {});
        CHECK(begins == expected_begins);
        std::vector<SampleId> members(expected.size());
        std::vector<double> weights(expected.size(), 1.0);
        list_members(rows, random.sample_at, begins, members.data(), weights.data(), n_threads, {});
        CHECK(members == expected);
        if (!rows.weights.all_one()) CHECK(weights == expected_weights);
        std::vector<std::int64_t> counts(n_leaves, -1);
        std::vector<double> masses(n_leaves, -1.0);
        leaf_masses(rows, counts.data(), masses.data(), n_threads, {});
        CHECK(counts == expected_counts);
        CHECK(masses == expected_masses);  // equal to the last bit: same order of additions
    }
}

// Compares the order by first column with a sort, for many and for few rows.
void check_order(Offset n_rows, Offset n_columns, bool ragged) {
    std::mt19937 random(static_cast<unsigned>(n_rows));
    std::vector<std::int32_t> columns;
    std::vector<Offset> offsets{0}, expected;
    std::vector<Offset> keys;
    for (Offset row = 0; row < n_rows; ++row) {
        const auto column = static_cast<std::int32_t>(random() % static_cast<unsigned>(n_columns));
        const bool is_empty = ragged && random() % 4 == 0;
        if (!is_empty) columns.push_back(column);
        keys.push_back(is_empty ? -1 : column);
        offsets.push_back(static_cast<Offset>(columns.size()));
        expected.push_back(row);
    }
    const std::vector<Offset> first{0, n_columns};
    Incidence rows;
    rows.columns.narrow = columns;
    rows.first = first;
    if (ragged) rows.offsets = offsets;
    rows.n_rows = n_rows;
    rows.longest = 1;
    std::stable_sort(expected.begin(), expected.end(),
                     [&](Offset a, Offset b) { return keys[a] < keys[b]; });
    std::vector<Offset> order(expected.size());
    locality_order(rows, order);
    CHECK(order == expected);
}

// Compares draws from seeds with the generator of the standard library.
void check_seeded_draws(Offset n_samples, Offset n_draws, int n_threads) {
    const std::vector<std::uint32_t> seeds{0, 1, 42, 0x7fffffffu, 0xffffffffu};
    const auto n_trees = static_cast<Offset>(seeds.size());
    std::vector<std::uint8_t> counts(static_cast<std::size_t>(n_samples * n_trees), 99);
    const bool fits = count_seeded_draws(seeds, n_samples, n_draws, counts.data(), n_threads, {});
    std::vector<Offset> expected(counts.size());
    std::uint32_t mask = 0;
    while (mask < n_samples - 1) mask = 2 * mask + 1;
    for (Offset t = 0; t < n_trees; ++t) {
        std::mt19937 generator(seeds[t]);
        for (Offset i = 0; i < n_draws; ++i) {
            Offset sample = n_samples;
            while (sample >= n_samples) sample = generator() & mask;
            ++expected[sample * n_trees + t];
        }
    }
    const Offset most = *std::max_element(expected.begin(), expected.end());
    CHECK(fits == (most <= 255));
    if (fits) CHECK(std::equal(counts.begin(), counts.end(), expected.begin()));
}

void check_masses() {
    // Node 0 has children 1 and 2, node 2 has children 3 and 4.
    const std::vector<Offset> left{1, -1, 3, -1, -1};
    const std::vector<double> recorded{10, 1, 9, 5, 4};
    const auto agree = [&](const std::vector<double>& masses) {
        return masses_agree(
            5, [&](Offset node) { return left[node]; }, [&](Offset node) { return recorded[node]; },
            masses);
    };
    CHECK(agree({1, 5, 4}));
    CHECK(agree({1 + 1e-8, 5, 4}));
    CHECK(!agree({1, 4, 5}));
    CHECK(!agree({1, 5, 4 + 1e-4}));
    CHECK(!agree({1, 5}));
    CHECK(!agree({1, 5, 4, 0}));
}

void check_draws(int n_threads) {
    const std::vector<std::vector<std::int32_t>> draws = {
        {0, 0, 2}, {}, {1}, std::vector<std::int32_t>(255, 2)};
    std::vector<std::span<const std::int32_t>> views(draws.begin(), draws.end());
    std::vector<std::uint8_t> counts(12);
    CHECK(count_draws(views, 3, counts.data(), n_threads, {}));
    CHECK((counts == std::vector<std::uint8_t>{2, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 255}));
    const std::vector<std::int32_t> too_many(256, 1);
    views[1] = too_many;
    CHECK(!count_draws(views, 3, counts.data(), n_threads, {}));
}

}  // namespace

int main() {
    unsigned seed = 0;
    for (const Offset n_trees : {1, 5, 40}) {
        for (const int n_threads : {1, 3}) {
            for (const Kind kind : {Kind::ones, Kind::flags}) {
                const RandomProduct random(++seed, 1, 100, n_trees, {.reference = kind});
                check_lists(random, std::vector<double>(), n_threads);
            }
            const RandomProduct counts(++seed, 1, 100, n_trees, {.reference = Kind::counts});
            check_lists(counts, counts.member_counts, n_threads);
            const RandomProduct floats(++seed, 1, 100, n_trees, {.reference = Kind::floats});
            check_lists(floats, floats.member_floats, n_threads);
            const RandomProduct doubles(++seed, 1, 100, n_trees, {.reference = Kind::doubles});
            check_lists(doubles, doubles.member_doubles, n_threads);
        }
    }
    for (const int n_threads : {1, 3}) {
        check_draws(n_threads);
        // More rows than one block, and more trees than share a cache line.
        for (const Kind kind : {Kind::ones, Kind::flags, Kind::counts, Kind::floats, Kind::doubles}) {
            check_table_and_rows(RandomProduct(++seed, 1, 20'000, 19, {.reference = kind}), n_threads);
        }
        for (const Offset n_samples : {1, 2, 3, 64, 100, 5000}) {
            for (const Offset n_draws : {0, 1, 623, 624, 5000, 20'000}) {
                check_seeded_draws(n_samples, n_draws, n_threads);
            }
        }
    }
    for (const bool ragged : {false, true}) {
        check_order(1000, 7, ragged);
        check_order(3, 10'000, ragged);
        check_order(1, 1, ragged);
    }
    check_masses();
}
