// Compares the inner products of centered kernels with the kernels themselves.
#include <cmath>

#include "check.hpp"
#include "leafkernel/leaf_overlaps.hpp"

using namespace leafkernel;
using leafkernel::testing::Kind;
using leafkernel::testing::RandomProduct;

namespace {

// The centered kernel of a tree, row by row.
std::vector<double> centered_kernel(const WeighedRows& rows, Offset tree) {
    const Offset n = rows.n_rows(), n_trees = rows.incidence.n_groups();
    const auto at = [&](Offset i) { return i * n_trees + tree; };
    std::vector<double> kernel(static_cast<std::size_t>(n * n)), means(static_cast<std::size_t>(n));
    double mean = 0.0;
    for (Offset i = 0; i < n; ++i) {
        for (Offset j = 0; j < n; ++j) {
            const auto& columns = rows.incidence.columns;
            kernel[i * n + j] =
                rows.has(at(i)) && rows.has(at(j)) && columns[at(i)] == columns[at(j)] ? 1.0 : 0.0;
            means[i] += kernel[i * n + j] / static_cast<double>(n);
        }
        mean += means[i] / static_cast<double>(n);
    }
    for (Offset i = 0; i < n; ++i) {
        for (Offset j = 0; j < n; ++j) kernel[i * n + j] += mean - means[i] - means[j];
    }
    return kernel;
}

void check_products(const WeighedRows& rows, int n_threads) {
    const Offset n_trees = rows.incidence.n_groups();
    std::vector<double> products(static_cast<std::size_t>(n_trees * n_trees), -1.0);
    centered_tree_products(rows, products.data(), n_threads, {});
    for (Offset s = 0; s < n_trees; ++s) {
        for (Offset t = 0; t < n_trees; ++t) {
            const auto one = centered_kernel(rows, s), other = centered_kernel(rows, t);
            double expected = 0.0;
            for (std::size_t i = 0; i < one.size(); ++i) expected += one[i] * other[i];
            CHECK(std::abs(products[s * n_trees + t] - expected) < 1e-9);
        }
    }
}

template <class Damage>
void check_refused(WeighedRows rows, Damage&& damage) {
    damage(rows);
    double product = 0.0;
    bool refused = false;
    try {
        centered_tree_products(rows, &product, 1, {});
    } catch (const std::invalid_argument&) {
        refused = true;
    }
    CHECK(refused);
}

}  // namespace

int main() {
    unsigned seed = 0;
    for (const SampleId n_samples : {1, 2, 7, 40}) {
        for (const Kind kind : {Kind::ones, Kind::flags}) {
            for (const int n_threads : {1, 3}) {
                const RandomProduct random(++seed, 1, n_samples, 5, {.reference = kind});
                check_products(random.samples(), n_threads);
            }
        }
    }
    const RandomProduct random(0, 1, 3, 1, {.reference = Kind::ones});
    const std::vector<std::uint8_t> none(3, 0);
    auto absent = random.samples();
    absent.present = none;
    check_products(absent, 1);
    const std::vector<double> doubles(3, 2.0);
    const std::vector<Offset> offsets{0, 1, 2, 3};
    check_refused(random.samples(), [&](WeighedRows& rows) { rows.weights.doubles = doubles; });
    check_refused(random.samples(), [&](WeighedRows& rows) { rows.by_row = doubles; });
    check_refused(random.samples(), [&](WeighedRows& rows) { rows.incidence.offsets = offsets; });
    check_refused(random.samples(), [&](WeighedRows& rows) { rows.incidence.n_rows = 0; });
}
