// Randomly damaged arrays, as from a broken file or a hostile caller. Either a check rejects them, or
// all code that uses them stays within bounds and ends. Run it with the address sanitizer.
#include <functional>
#include <limits>

#include "check.hpp"
#include "leafkernel/checks.hpp"
#include "leafkernel/csr_rows.hpp"
#include "leafkernel/matvec.hpp"
#include "leafkernel/reducers.hpp"
#include "leafkernel/route.hpp"
#include "trees.hpp"

using namespace leafkernel;
using leafkernel::testing::Kind;
using leafkernel::testing::PackedForest;
using leafkernel::testing::RandomProduct;
using leafkernel::testing::Tree;

namespace {

struct Damage {
    std::mt19937 random;

    // Overwrites one entry, drops or repeats the last one, or swaps two.
    template <class T>
    void operator()(std::vector<T>& array) {
        if (array.empty()) return;
        const auto any = [&] { return random() % array.size(); };
        switch (random() % 8) {
            case 0:
                array.pop_back();
                break;
            case 1:
                array.push_back(array.back());
                break;
            case 2:
                std::swap(array[any()], array[any()]);
                break;
            case 3:
                array[any()] = array[any()];
                break;
            default:
                array[any()] = value<T>();
        }
    }

    template <class T>
    T value() {
        const auto limits = std::numeric_limits<T>{};
        const T some[] = {T(0),         T(1),
                          T(-1),        T(2),
                          limits.max(), limits.lowest(),
                          T(random()),  std::is_floating_point_v<T> ? limits.quiet_NaN() : T(7),
                          T(1000),      std::is_floating_point_v<T> ? limits.infinity() : T(-7)};
        return some[random() % std::size(some)];
    }
};

struct Counts {
    Offset cases = 0, refused = 0;

    // Runs a function and counts whether a check rejected its input.
    void operator()(const std::function<void()>& run) {
        ++cases;
        try {
            run();
        } catch (const std::invalid_argument&) {
            ++refused;
        } catch (const std::overflow_error&) {  // the damage made weights infinite
            ++refused;
        }
    }
};

template <class Value>
void use(const Product& product, int n_threads) {
    const Offset n_rows = product.query.n_rows(), n_samples = product.reference.n_samples();
    for (bool sorted : {false, true}) {
        csr_rows<std::int32_t, Value>(product, sorted, n_rows * n_samples, n_threads, {});
    }
    for (Offset k : {Offset{1}, n_samples - 1}) {
        std::vector<Value> similarities(static_cast<std::size_t>(n_rows * k));
        std::vector<std::int64_t> samples(similarities.size());
        top_k(product, k, similarities.data(), samples.data(), n_threads, {});
        for (const auto sample : samples) CHECK(sample >= 0 && sample < n_samples);
    }
    const std::vector<double> values(static_cast<std::size_t>(3 * n_samples), 0.5);
    std::vector<double> out(static_cast<std::size_t>(3 * n_rows));
    std::vector<std::int64_t> counts(static_cast<std::size_t>(n_rows));
    weighted_sums<Value>(product, values, 3, out.data(), n_threads, {});
    apply<Value>(product, values, 3, out.data(), n_threads, {});
    count_nonzeros<Value>(product, counts.data(), n_threads, {});
    for (Offset row = 0; row < n_rows; ++row) product.collisions(row);
}

Counts damage_products() {
    Counts counts;
    for (unsigned seed = 0; seed < 3000; ++seed) {
        Damage damage{std::mt19937(seed)};
        auto& random = damage.random;
        const auto kind = [&] { return static_cast<Kind>(random() % 5); };
        RandomProduct held(seed, 1 + random() % 12, 2 + static_cast<SampleId>(random() % 20),
                           1 + random() % 6,
                           {kind(), kind(), random() % 2 == 0, random() % 2 == 0, random() % 2 == 0,
                            random() % 2 == 0});
        const std::function<void()> ways[] = {[&] { damage(held.query_leaf); },
                                              [&] { damage(held.wide_query_leaf); },
                                              [&] { damage(held.leaf_offsets); },
                                              [&] { damage(held.first_leaves); },
                                              [&] { damage(held.members); },
                                              [&] { damage(held.sample_at); },
                                              [&] { damage(held.row_order); },
                                              [&] { damage(held.own); },
                                              [&] { damage(held.by_row); },
                                              [&] { damage(held.by_place); },
                                              [&] { damage(held.by_leaf); },
                                              [&] { damage(held.diagonal); },
                                              [&] { damage(held.query_oob); },
                                              [&] { damage(held.reference_oob); },
                                              [&] { damage(held.member_counts); },
                                              [&] { damage(held.member_floats); },
                                              [&] { damage(held.member_doubles); },
                                              [&] { damage(held.query_weights.flags); },
                                              [&] { damage(held.query_weights.counts); },
                                              [&] { damage(held.query_weights.doubles); }};
        for (unsigned n = random() % 3; n < 3; ++n) ways[random() % std::size(ways)]();
        const int n_threads = 1 + static_cast<int>(seed % 2);
        counts([&] {
            const Product product = held.view();
            check_lists(product.reference);
            check_incidence(product.query.incidence, n_threads, {});
            check_product(product);
            seed % 3 == 0 ? use<double>(product, n_threads) : use<float>(product, n_threads);
        });
    }
    return counts;
}

Counts damage_samples() {
    Counts counts;
    for (unsigned seed = 0; seed < 3000; ++seed) {
        Damage damage{std::mt19937(seed)};
        RandomProduct held(seed, 1, 1 + static_cast<SampleId>(seed % 30), 1 + seed % 40,
                           {Kind::ones, static_cast<Kind>(seed % 5)});
        for (unsigned n = seed % 3; n < 3; ++n) {
            damage.random() % 2 == 0 ? damage(held.sample_leaf) : damage(held.sample_at);
        }
        const int n_threads = 1 + static_cast<int>(seed % 3);
        const auto n_leaves = held.leaf_offsets.size() - 1;
        counts([&] {
            const auto rows = held.samples();
            check_incidence(rows.incidence, n_threads, {});
            check_weights(rows);
            std::vector<std::int64_t> masses(n_leaves);
            std::vector<double> weights(n_leaves);
            leaf_masses(rows, masses.data(), weights.data(), n_threads, {});
            require_size(held.sample_at.size(), static_cast<std::size_t>(held.n_samples), "sample_at");
            require_permutation<SampleId>(held.sample_at, "sample_at");
            std::vector<Offset> offsets(n_leaves + 1);
            count_members(rows, offsets, n_threads, {});
            std::vector<SampleId> members(static_cast<std::size_t>(offsets.back()));
            list_members<float>(rows, held.sample_at, offsets, members.data(), nullptr, n_threads, {});
            check_lists({offsets, members, {}, held.sample_at});
        });
    }
    return counts;
}

// Damages rows with any number of columns, on both sides of a product.
Counts damage_ragged_rows() {
    Counts counts;
    for (unsigned seed = 0; seed < 3000; ++seed) {
        Damage damage{std::mt19937(seed)};
        auto& random = damage.random;
        std::vector<Offset> first{0}, offsets{0};
        std::vector<std::int32_t> columns;
        for (unsigned g = 0; g < 1 + seed % 5; ++g) {
            first.push_back(first.back() + static_cast<Offset>(random() % 4));
        }
        const auto n_rows = static_cast<Offset>(2 + random() % 10);
        for (Offset row = 0; row < n_rows; ++row) {
            for (Offset column = 0; column < first.back(); ++column) {
                if (random() % 2 == 0) columns.push_back(static_cast<std::int32_t>(column));
            }
            offsets.push_back(static_cast<Offset>(columns.size()));
        }
        std::vector<Offset> order;
        std::vector<SampleId> sample_at;
        for (Offset row = 0; row < n_rows; ++row) {
            order.push_back(row);
            sample_at.push_back(static_cast<SampleId>(row));
        }
        for (unsigned n = random() % 3; n < 2; ++n) {
            const std::function<void()> ways[] = {[&] { damage(first); }, [&] { damage(offsets); },
                                                  [&] { damage(columns); }};
            ways[random() % std::size(ways)]();
        }
        if (first.empty() || first.back() > 1000)
            continue;  // a large number of leaves is valid, but slow
        const int n_threads = 1 + static_cast<int>(seed % 3);
        counts([&] {
            Product product;
            auto& incidence = product.query.incidence;
            incidence.columns.narrow = columns;
            incidence.first = first;
            incidence.offsets = offsets;
            incidence.n_rows = n_rows;
            require(!offsets.empty(), "row offsets do not span their entries in order");
            incidence.longest = check_incidence(incidence, n_threads, {});
            std::vector<Offset> begins(static_cast<std::size_t>(incidence.n_columns()) + 1);
            count_members(product.query, begins, n_threads, {});
            std::vector<SampleId> members(static_cast<std::size_t>(begins.back()));
            list_members<float>(product.query, sample_at, begins, members.data(), nullptr, n_threads,
                                {});
            product.reference = {{begins, members, {}, sample_at}, {}, {}};
            product.row_order = order;
            check_lists(product.reference);
            check_product(product);
            use<double>(product, n_threads);
        });
    }
    return counts;
}

void walk(const PackedForest& forest, int n_features, std::mt19937& random) {
    constexpr Offset n_rows = 300;  // enough rows to be ordered by the first tree
    std::vector<float> dense(static_cast<std::size_t>(n_rows * n_features));
    for (auto& x : dense) {
        x = random() % 9 == 0 ? std::numeric_limits<float>::quiet_NaN() : (random() % 1000) / 999.0f;
    }
    const RouteTable table = forest.table();
    std::vector<std::int64_t> leaves(static_cast<std::size_t>(n_rows * table.n_trees()));
    route(table, {n_rows, n_features, dense, {}, {}}, leaves.data(), 2, {});
    for (const auto leaf : leaves) CHECK(leaf >= 0 && leaf < table.leaf_offsets.back());
}

Counts damage_trees() {
    Counts counts;
    for (unsigned seed = 0; seed < 3000; ++seed) {
        Damage damage{std::mt19937(seed)};
        auto& random = damage.random;
        Tree tree(random, 3, 1 + static_cast<int>(seed % 6));
        const auto size = tree.left.size();
        std::vector<std::int64_t>* arrays[] = {&tree.left, &tree.right, &tree.feature};
        for (unsigned n = random() % 3; n < 3; ++n) {
            auto& array = *arrays[random() % 3];
            damage(array);
            array.resize(size, -1);  // the Python bindings check the sizes
            if (random() % 4 == 0) array[random() % size] = static_cast<std::int64_t>(random() % size);
        }
        counts([&] {
            PackedForest forest;
            forest.add(tree, 3);
            check_table(forest.table(), 3);
            walk(forest, 3, random);
        });
    }
    return counts;
}

Counts damage_tables() {
    Counts counts;
    for (unsigned seed = 0; seed < 3000; ++seed) {
        Damage damage{std::mt19937(seed)};
        auto& random = damage.random;
        PackedForest forest;
        for (int t = 0; t < 3; ++t) forest.add(Tree(random, 3, static_cast<int>(random() % 5)), 3);
        for (unsigned n = random() % 2; n < 2; ++n) {
            const std::function<void()> ways[] = {[&] { damage(forest.nodes); },
                                                  [&] { damage(forest.missing); },
                                                  [&] { damage(forest.leaf_of_node); },
                                                  [&] { damage(forest.tree_offsets); },
                                                  [&] { damage(forest.leaf_offsets); },
                                                  [&] {  // flip one bit of a node
                                                      forest.nodes[random() % forest.nodes.size()] ^=
                                                          NodeBits{1} << random() % 64;
                                                  }};
            ways[random() % std::size(ways)]();
        }
        counts([&] {
            check_table(forest.table(), 3);
            walk(forest, 3, random);
        });
    }
    return counts;
}

void sizes_that_no_memory_has_are_refused() {
    for (const Offset size : {Offset{-1}, Offset{1} << 61, std::numeric_limits<Offset>::max()}) {
        try {
            Buffer<double> buffer(size);
            CHECK(false);
        } catch (const std::bad_alloc&) {
        }
    }
}

}  // namespace

int main() {
    sizes_that_no_memory_has_are_refused();
    const std::pair<const char*, Counts> found[] = {{"products", damage_products()},
                                                    {"samples", damage_samples()},
                                                    {"ragged rows", damage_ragged_rows()},
                                                    {"trees", damage_trees()},
                                                    {"packed trees", damage_tables()}};
    for (const auto& [what, counts] : found) {
        std::cout << what << ": " << counts.cases << " damaged, " << counts.refused << " refused\n";
        // If all or none of the inputs are rejected, the test is useless.
        CHECK(counts.refused > counts.cases / 10 && counts.refused < counts.cases);
    }
}
