// Compares the radix sort with a comparison sort, for rows of many sizes and widths.
#include <algorithm>
#include <numeric>
#include <random>

#include "check.hpp"
#include "leafkernel/row_sort.hpp"

using namespace leafkernel;

int main() {
    std::mt19937 random(0);
    for (const SampleId n_columns : {1, 2, 100, 5000, 70000, 5000000, 2147483647}) {
        RowSorter<float> sort(n_columns);
        for (const Offset size : {0, 1, 2, 47, 48, 49, 1000, 3000}) {
            std::vector<SampleId> columns;
            std::vector<float> values;
            for (Offset i = 0; i < size; ++i) {
                columns.push_back(static_cast<SampleId>(random() % static_cast<unsigned>(n_columns)));
                values.push_back(static_cast<float>(i));
            }
            std::vector<std::size_t> order(columns.size());
            std::iota(order.begin(), order.end(), std::size_t{0});
            std::stable_sort(order.begin(), order.end(),
                             [&](std::size_t a, std::size_t b) { return columns[a] < columns[b]; });
            auto sorted_columns = columns;
            auto sorted_values = values;
            sort(sorted_columns.data(), sorted_values.data(), size);
            for (std::size_t i = 0; i < order.size(); ++i) {
                CHECK(sorted_columns[i] == columns[order[i]]);
                CHECK(sorted_values[i] == values[order[i]]);
            }
        }
    }
}
