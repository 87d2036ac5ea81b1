// Compares bit planes with plain sums, for the kernels named by LEAFKERNEL_SIMD or the best ones.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "leafkernel/nearest.hpp"
#include "leafkernel/reducers.hpp"

using namespace leafkernel;
using leafkernel::detail::Words;
using leafkernel::testing::Kind;
using leafkernel::testing::RandomProduct;

namespace {

constexpr Offset n_words = 24;
constexpr Offset n_columns = 64 * n_words;

struct Planes {
    std::vector<std::uint64_t> sums = std::vector<std::uint64_t>(n_columns);
    int n_planes;
    Words bits;
};

Planes random_planes(std::mt19937& random) {
    const int n_groups = std::uniform_int_distribution<int>(1, 4)(random);
    std::vector<Words> maps;
    std::vector<const Word*> pointers;
    std::vector<int> ends;
    Planes planes;
    std::uint64_t total = 0;
    for (int g = 0; g < n_groups; ++g) {
        const int n_maps = std::uniform_int_distribution<int>(0, 70)(random);
        for (int m = 0; m < n_maps; ++m) {
            Words map(n_words);
            for (Offset w = 0; w < n_words; ++w) {
                map.data()[w] = std::uniform_int_distribution<Word>()(random);
            }
            for (Offset c = 0; c < n_columns; ++c) {
                planes.sums[c] += (map.data()[c / 64] >> c % 64 & 1u) << g;
            }
            maps.push_back(std::move(map));
            total += Word{1} << g;
        }
        ends.push_back(static_cast<int>(maps.size()));
    }
    for (const auto& map : maps) pointers.push_back(map.data());
    planes.n_planes = std::max(1, static_cast<int>(std::bit_width(total)));
    planes.bits = Words(planes.n_planes * n_words);
    plane_kernels().add(pointers.data(), ends.data(), n_groups, planes.n_planes, n_words,
                        planes.bits.data(), n_words);
    return planes;
}

void sums_are_sums(const Planes& planes) {
    for (Offset c = 0; c < n_columns; ++c) {
        std::uint64_t sum = 0;
        for (int p = 0; p < planes.n_planes; ++p) {
            sum |= (planes.bits.data()[p * n_words + c / 64] >> c % 64 & 1u) << p;
        }
        CHECK(sum == planes.sums[c]);
    }
}

void planes_are_added(const Planes& planes, std::mt19937& random) {
    const auto more = random_planes(random);
    const int n_planes = std::max(planes.n_planes, more.n_planes) + 1;
    Words sum(n_planes * n_words), terms(n_planes * n_words);
    std::fill_n(sum.data(), n_planes * n_words, Word{0});
    std::fill_n(terms.data(), n_planes * n_words, Word{0});
    std::copy_n(planes.bits.data(), planes.n_planes * n_words, sum.data());
    std::copy_n(more.bits.data(), more.n_planes * n_words, terms.data());
    plane_kernels().add_planes(terms.data(), n_planes, n_words, sum.data(), n_words);
    Planes both{.n_planes = n_planes, .bits = std::move(sum)};
    for (Offset c = 0; c < n_columns; ++c) both.sums[c] = planes.sums[c] + more.sums[c];
    sums_are_sums(both);
}

void the_largest_are_found(const Planes& planes, std::mt19937& random) {
    const Offset k = std::uniform_int_distribution<Offset>(1, n_columns)(random);
    Words equal(n_words), larger(n_words);
    std::fill_n(equal.data(), n_words, ~Word{0});
    const auto n_equal = plane_kernels().largest(planes.bits.data(), n_words, planes.n_planes, n_words,
                                                 k, equal.data(), larger.data());
    auto sorted = planes.sums;
    std::nth_element(sorted.begin(), sorted.begin() + k - 1, sorted.end(), std::greater<>());
    const auto least = sorted[static_cast<std::size_t>(k - 1)];
    Offset n_larger = 0;
    for (Offset c = 0; c < n_columns; ++c) {
        CHECK((larger.data()[c / 64] >> c % 64 & 1u) == (planes.sums[c] > least));
        CHECK((equal.data()[c / 64] >> c % 64 & 1u) == (planes.sums[c] == least));
        n_larger += planes.sums[c] > least;
    }
    CHECK(n_equal == k - n_larger);
}

void a_bound_is_kept(const Planes& planes, std::mt19937& random) {
    const auto most = *std::max_element(planes.sums.begin(), planes.sums.end());
    const auto bound = std::uniform_int_distribution<std::uint64_t>(0, most + 2)(random);
    Words columns(n_words);
    std::fill_n(columns.data(), n_words, ~Word{0} << 1);
    plane_kernels().at_least(planes.bits.data(), n_words, planes.n_planes, n_words, bound,
                             columns.data());
    for (Offset c = 0; c < n_columns; ++c) {
        const bool expected = c % 64 != 0 && planes.sums[c] >= bound;
        CHECK((columns.data()[c / 64] >> c % 64 & 1u) == expected);
    }
}

void sums_are_read(const Planes& planes) {
    std::vector<std::uint16_t> sums(n_columns);
    plane_kernels().read(planes.bits.data(), n_words, planes.n_planes, n_words, sums.data());
    for (Offset c = 0; c < n_columns; ++c) CHECK(sums[c] == planes.sums[c]);
}

// The weights differ in magnitude, so a different order of additions would change the sums.
void weights_are_added_in_order(std::mt19937& random) {
    std::vector<Words> maps;
    std::vector<const Word*> pointers;
    std::vector<double> weights, sums(n_columns, 0.1), expected(n_columns, 0.1);
    for (int m = 0; m < 30; ++m) {
        maps.emplace_back(n_words);
        Word* map = maps.back().data();
        for (Offset w = 0; w < n_words; ++w) map[w] = std::uniform_int_distribution<Word>()(random);
        pointers.push_back(map);
        weights.push_back(std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random), m % 7));
        for (Offset c = 0; c < n_columns; ++c) {
            if (map[c / 64] >> c % 64 & 1u) expected[c] += weights.back();
        }
    }
    plane_kernels().add_weights(pointers.data(), weights.data(), 30, n_words, sums.data());
    CHECK(sums == expected);
}

template <class Value>
void loops_find_the_same(const RandomProduct& random, int n_threads) {
    const auto product = random.view();
    CHECK(detail::knows_samples(product));
    const Offset k = std::min<Offset>(5, random.n_samples - 1);
    const auto n_entries = static_cast<std::size_t>(random.n_rows * k);
    std::vector<Value> expected(n_entries), values(n_entries);
    std::vector<std::int64_t> expected_samples(n_entries), samples(n_entries);
    std::vector<Value> matrix(static_cast<std::size_t>(random.n_rows * random.n_samples));
    fill_dense(product, matrix.data(), n_threads, {}, Loop::lists);
    top_k(product, k, expected.data(), expected_samples.data(), n_threads, {}, false, Loop::lists);
    const auto found_the_same = [&] {
        CHECK(values == expected);
        CHECK(samples == expected_samples);
        std::fill(values.begin(), values.end(), Value{-1});
    };
    if (detail::bounds_hold<Value>(product)) {
        // A part of the leaves are bitmaps, and samples are in several chunks.
        auto plan = detail::PlanePlan::of(product);
        for (const Offset chunk : {512, 16384}) {
            for (const Offset least_size : {1, 60, 75, 100, 2000}) {
                plan.chunk = chunk;
                plan.least_size = least_size;
                nearest_by_planes(product, plan, k, values.data(), samples.data(), n_threads, {});
                found_the_same();
                auto without_rows = product;  // exact sums come from bitmaps and short lists
                without_rows.reference.rows = {};
                CHECK(!detail::knows_samples(without_rows));
                nearest_by_planes(without_rows, plan, k, values.data(), samples.data(), n_threads, {});
                found_the_same();
            }
        }
        // A part of the rows are left to planes.
        const detail::LeafLevels levels(product.reference, product.reference.rows.incidence.first,
                                        n_threads, {});
        CHECK(levels.fits());
        Offset n_late = 0;
        for (const double most : {0.0, 5e3, 8e3, 1.2e4, 1.6e4, 1e9}) {
            auto rest = product;
            const auto late = nearest_by_bounds(product, levels, k, most, values.data(), samples.data(),
                                                n_threads, {});
            CHECK(most > 0.0 || static_cast<Offset>(late.size()) == random.n_rows);
            CHECK(most < 1e9 || late.empty());
            n_late += static_cast<Offset>(late.size());
            rest.row_order = late;
            nearest_by_planes(rest, plan, k, values.data(), samples.data(), n_threads, {});
            found_the_same();
        }
        CHECK(n_late > random.n_rows);
    }
    for (const Loop loop : {Loop::automatic, Loop::planes, Loop::bounds}) {
        nearest(product, k, false, values.data(), samples.data(), loop, n_threads, {});
        found_the_same();
        std::vector<Value> found(matrix.size());
        fill_dense(product, found.data(), n_threads, {}, loop);
        CHECK(found == matrix);
    }
}

}  // namespace

int main() {
    try {
        plane_kernels();
    } catch (const std::invalid_argument& error) {
        std::cout << error.what() << "\n";
        return 1;
    }
    std::mt19937 random(0);
    for (int i = 0; i < 60; ++i) {
        const auto planes = random_planes(random);
        sums_are_sums(planes);
        planes_are_added(planes, random);
        the_largest_are_found(planes, random);
        a_bound_is_kept(planes, random);
        sums_are_read(planes);
        weights_are_added_in_order(random);
    }
    for (const Kind query : {Kind::ones, Kind::flags}) {
        for (const Kind reference : {Kind::ones, Kind::flags, Kind::counts}) {
            for (const bool weighs : {false, true}) {
                RandomProduct product(7, 60, 1300, 40, {.query = query, .reference = reference});
                std::uniform_real_distribution<double> unit(0.0, 1.0);
                for (Offset leaf = 0; weighs && leaf < product.view().reference.n_leaves(); ++leaf) {
                    const double weight = unit(random);
                    product.by_leaf.push_back(weight < 0.2 ? 0.0 : weight * weight);
                }
                CHECK(detail::bounds_hold<float>(product.view()));
                loops_find_the_same<float>(product, 1);
                loops_find_the_same<double>(product, 3);
                // Large counts, of which no leaf has the lowest bits.
                for (auto& count : product.member_counts) count = static_cast<std::uint8_t>(64 * count);
                for (auto& count : product.sample_weights.counts) {
                    count = static_cast<std::uint8_t>(64 * count);
                }
                if (reference == Kind::counts) loops_find_the_same<float>(product, 2);
            }
        }
    }
    // If places are in the order of samples, rows use bitmaps as well.
    for (const Offset n_leaves : {40, 5}) {
        for (const bool oob : {false, true}) {
            RandomProduct product(8, 60, 1300, n_leaves,
                                  {.diagonal = true, .oob = oob, .ordered = true});
            loops_find_the_same<float>(product, 2);
            for (Offset leaf = 0; leaf < product.view().reference.n_leaves(); ++leaf) {
                product.by_leaf.push_back(std::uniform_real_distribution<double>(0, 1)(random));
            }
            loops_find_the_same<double>(product, 2);
        }
    }
    std::cout << plane_kernels().name << "\n";
}
