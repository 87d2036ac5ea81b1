// A drained row is complete, and the accumulator is empty afterwards.
#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "check.hpp"
#include "leafkernel/row_accumulator.hpp"

using namespace leafkernel;

namespace {

template <class Slot>
void check(SampleId n_samples, std::mt19937& random) {
    RowAccumulator<Slot> row(n_samples);
    std::vector<SampleId> sample_at(static_cast<std::size_t>(n_samples));
    std::vector<SampleId> place_of(sample_at.size());
    std::iota(sample_at.begin(), sample_at.end(), 0);
    std::shuffle(sample_at.begin(), sample_at.end(), random);
    for (SampleId place = 0; place < n_samples; ++place) place_of[sample_at[place]] = place;
    for (int round = 0; round < 20; ++round) {
        std::map<SampleId, Slot> expected;
        for (int list = 0; list < 10; ++list) {
            std::vector<SampleId> members;
            std::vector<Slot> values;
            for (SampleId m = 0; m < n_samples; m += 1 + static_cast<SampleId>(random() % 64)) {
                members.push_back(m);
                values.push_back(static_cast<Slot>(random() % 8));  // including zeros
            }
            row.add(members.data(), 0, static_cast<Offset>(members.size()),
                    [&](Offset m) { return values[static_cast<std::size_t>(m)]; });
            for (std::size_t i = 0; i < members.size(); ++i) {
                expected[members[i]] = static_cast<Slot>(expected[members[i]] + values[i]);
            }
        }
        std::map<SampleId, Slot> found;
        if (round % 2 == 0) {
            row.drain([&](SampleId place, Slot sum) {
                if (sum != Slot{0}) CHECK(found.emplace(place, sum).second);
            });
        } else {
            SampleId last = -1;
            row.drain_in_order(sample_at, place_of, [&](SampleId place, SampleId sample, Slot sum) {
                CHECK(sample > last && sample == sample_at[place]);
                last = sample;
                if (sum != Slot{0}) CHECK(found.emplace(place, sum).second);
            });
        }
        std::erase_if(expected, [](const auto& entry) { return entry.second == Slot{0}; });
        CHECK(found == expected);
    }
    row.drain([](SampleId, Slot) { CHECK(false); });
    row.drain_in_order(sample_at, place_of, [](SampleId, SampleId, Slot) { CHECK(false); });
}

}  // namespace

int main() {
    std::mt19937 random(0);
    for (SampleId n_samples : {1, 2, 63, 5000}) {
        check<std::uint16_t>(n_samples, random);
        check<double>(n_samples, random);
    }
}
