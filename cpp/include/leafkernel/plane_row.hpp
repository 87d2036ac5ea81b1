// One row of P, prepared for bit planes: its leaves, their weights in whole units, and the bitmaps to
// add.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "leafkernel/for_each_row.hpp"
#include "leafkernel/leaf_chunk.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel::detail {

// The mean weight of a leaf with bitmaps, in units. More units give tighter bounds and take longer,
// above all if there is a bitmap for each bit of a count.
constexpr double mean_units(int depth) { return depth == 1 ? 12 : 6; }
// The most units of a row. Sums of units, times counts of eight bits, must fit in 32 bits.
constexpr double most_units = 1 << 20;

// Sums of bitmaps must fit in the 24 planes of plane_kernels.inc. A row has at most most_visits leaves
// with bitmaps. Each has the mean number of units, plus one for rounding, and counts of up to 255.
static_assert(std::bit_width(static_cast<std::uint64_t>(most_visits) * 13) <= 24);
static_assert(std::bit_width(static_cast<std::uint64_t>(most_visits) * 7 * 255) <= 24);

struct PlaneRow {
    struct Visit {
        Offset leaf, group;
        double weight;        // q · g
        std::uint32_t units;  // the weight, rounded up
    };

    Offset row = 0;
    double factor = 0.0;  // scale · a
    double unit = 1.0;    // the weight that one unit stands for
    std::vector<Visit> visits;
    std::vector<const Word*> maps;  // group by group; group g has weight 2^g
    std::vector<int> ends;          // of the groups
    int map_planes = 1;             // enough for the sums of the maps
    int n_planes = 1;               // enough for all sums

    void prepare(const Product& product, const LeafChunk& chunk, RowEntries& entries, Offset row_) {
        row = row_;
        factor = product.scale * (product.query.by_row.empty() ? 1.0 : product.query.by_row[row]);
        visits.clear();
        maps.clear();
        ends.clear();
        entries.find(product.query, row);
        const bool has_weights = !product.query.weights.all_one();
        for (std::size_t v = 0; v < entries.size && factor != 0.0; ++v) {
            const Offset leaf = entries.leaves[v];
            const double q = has_weights ? entries.weights[v] : 1.0;
            const double weight = q * (product.by_leaf.empty() ? 1.0 : product.by_leaf[leaf]);
            if (weight != 0.0) visits.push_back({leaf, entries.groups[v], weight, 1});
        }
        unit = 1.0;
        if (!product.counts()) round_weights(chunk);
        group_maps(chunk);
    }

private:
    // Rounds each weight up to whole units. If the weights differ by orders of magnitude, the heavy
    // leaves are mostly small. They have no bitmaps, so their size in units does not matter.
    void round_weights(const LeafChunk& chunk) {
        double of_maps = 0.0, total = 0.0;
        int n_maps = 0;
        for (const auto& visit : visits) {
            total += visit.weight;
            if (!chunk.has_bitmaps(visit.leaf)) continue;
            of_maps += visit.weight;
            ++n_maps;
        }
        if (total > 0.0) {
            unit = std::max(of_maps / (mean_units(chunk.depth()) * std::max(n_maps, 1)),
                            total / most_units);
        }
        for (auto& visit : visits) {
            visit.units = static_cast<std::uint32_t>(std::ceil(visit.weight / unit * (1 + 1e-12)));
        }
    }

    // The bits of a number of units say which planes the maps of the leaf are added to.
    void group_maps(const LeafChunk& chunk) {
        for (auto& group : groups_) group.clear();
        std::uint64_t of_maps = 0, total = 0;
        for (const auto& visit : visits) {
            // A count is less than 2^depth.
            total += std::uint64_t{visit.units} << chunk.depth();
            for (int bit = 0; bit < chunk.depth(); ++bit) {
                if (!chunk.has_bitmap(visit.leaf, bit)) continue;
                of_maps += std::uint64_t{visit.units} << bit;
                for (std::uint32_t left = visit.units; left != 0; left &= left - 1) {
                    const auto group = static_cast<std::size_t>(std::countr_zero(left) + bit);
                    if (groups_.size() <= group) groups_.resize(group + 1);
                    groups_[group].push_back(chunk.bitmap(visit.leaf, bit));
                }
            }
        }
        map_planes = std::max(1, static_cast<int>(std::bit_width(of_maps)));
        n_planes = std::max(map_planes, static_cast<int>(std::bit_width(total)));
        for (const auto& group : groups_) {
            maps.insert(maps.end(), group.begin(), group.end());
            ends.push_back(static_cast<int>(maps.size()));
        }
        while (!ends.empty() && (ends.size() > 1 ? ends[ends.size() - 2] : 0) == ends.back()) {
            ends.pop_back();  // the last group is empty
        }
    }

    std::vector<std::vector<const Word*>> groups_;
};

}  // namespace leafkernel::detail
