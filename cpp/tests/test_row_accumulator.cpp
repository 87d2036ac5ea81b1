// A row comes out sorted and complete, and leaves nothing behind.
#include <map>
#include <random>

#include "check.hpp"
#include "leafkernel/row_accumulator.hpp"

using namespace leafkernel;

int main() {
    std::mt19937 random(0);
    for (SampleId n_samples : {1, 63, 64, 65, 4096, 4097, 300000}) {
        RowAccumulator<double> row(n_samples);
        for (int round = 0; round < 20; ++round) {
            std::map<SampleId, double> expected;
            for (int i = 0; i < 200; ++i) {
                const auto sample = static_cast<SampleId>(random() % static_cast<unsigned>(n_samples));
                const double value = (random() % 8) / 8.0;  // zeros too: an entry in use all the same
                row.add(sample, value);
                expected[sample] += value;
            }
            row.add(n_samples - 1, 1.0);
            expected[n_samples - 1] += 1.0;
            auto next = expected.begin();
            row.drain([&](SampleId sample, double sum) {
                CHECK(next != expected.end());
                CHECK(sample == next->first);
                CHECK(sum == next->second);
                ++next;
            });
            CHECK(next == expected.end());
        }
        row.drain([](SampleId, double) { CHECK(false); });
    }
}
