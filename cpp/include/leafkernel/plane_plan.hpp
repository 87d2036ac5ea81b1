// Chooses which leaves get bitmaps and how many samples are processed at a time, and estimates the
// time.
#pragma once

#include <algorithm>
#include <bit>

#include "leafkernel/leaf_bitmaps.hpp"
#include "leafkernel/row_plan.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel::detail {

// How nearest_by_planes stores the leaves.
struct PlanePlan {
    int depth = 1;          // bits of the largest count
    Offset least_size = 1;  // a bit of a count that fewer members have is in a short list
    Offset chunk = 0;       // samples at a time

    static PlanePlan of(const Product& product) {
        const auto& lists = product.reference;
        PlanePlan plan;
        std::uint8_t any = 1;
        for (const auto count : lists.weights.counts) any |= count;
        plan.depth = static_cast<int>(std::bit_width(any));
        // A bitmap takes about as long as one member for each 600 samples.
        plan.least_size = std::max<Offset>(1, lists.n_samples() / 600);
        Offset n_maps = 0;  // at most
        for (Offset leaf = 0; leaf < lists.n_leaves(); ++leaf) {
            if (lists.leaf_size(leaf) >= plan.least_size) n_maps += plan.depth;
        }
        const Offset words = most_bitmap_bytes / (8 * std::max<Offset>(1, n_maps));
        plan.chunk = bits_per_word * std::clamp<Offset>(words / 8 * 8, words_per_tile, most_words);
        return plan;
    }

    // Estimates the time for a row, in nanoseconds. Filling the chunks is shared by all rows.
    double cost(const Product& product) const {
        const auto& lists = product.reference;
        const auto& incidence = product.query.incidence;
        const Offset n_rows = product.query.n_rows(), n_samples = lists.n_samples();
        const Offset n_probes = std::min<Offset>(n_rows, 256);
        Offset n_large = 0, n_members = 0;
        for (Offset i = 0; i < n_probes; ++i) {
            const Offset row = i * n_rows / n_probes;
            for (Offset e = incidence.begin(row); e < incidence.end(row); ++e) {
                if (!product.query.has(e)) continue;
                const Offset size = lists.leaf_size(incidence.columns[e]);
                size >= least_size ? n_large += 1 : n_members += size;
            }
        }
        // A rounded weight has about three bits, and a count about two.
        const double of_leaf = product.counts() ? 2.0 : depth == 1 ? 6.0 : 12.0;
        const double of_member = 10.0, of_chunk = product.counts() ? 1e3 : 6e3;
        const auto n_chunks = static_cast<double>(n_samples / chunk + 1);
        const double vectors = static_cast<double>(n_samples) / 512;
        const double rows = of_leaf * vectors * static_cast<double>(n_large) +
                            of_member * static_cast<double>(n_members);
        const double filling = 4.0 * static_cast<double>(lists.members.size()) * n_chunks;
        const auto n_sharing = static_cast<double>(std::max<std::size_t>(1, product.row_order.size()));
        return rows / static_cast<double>(std::max<Offset>(1, n_probes)) + of_chunk * n_chunks +
               filling / n_sharing;
    }

private:
    // The planes of one thread should stay in its cache.
    static constexpr Offset most_words = 256;
};

}  // namespace leafkernel::detail
