// Lists, masses and draws against counting them one by one.
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
    for (const int n_threads : {1, 3}) check_draws(n_threads);
}
