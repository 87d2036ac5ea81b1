// How often each tree drew each sample.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "leafkernel/leaf_lists.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

// Writes counts (n_samples, n_trees), row by row. Returns whether all fit in a byte; if not, they are
// not to be used. Draws must be samples.
inline bool count_draws(std::span<const std::span<const std::int32_t>> draws, Offset n_samples,
                        std::uint8_t* counts, int n_threads, const Monitor& monitor) {
    const auto n_trees = static_cast<Offset>(draws.size());
    std::atomic<bool> fits{true};
    detail::for_each_groups(
        n_trees, n_threads, monitor, [&](Offset first, Offset last, const auto& poll) {
            // Counted for these trees side by side, then copied into the rows.
            const Offset width = last - first;
            std::vector<std::uint8_t> part(static_cast<std::size_t>(n_samples * width));
            for (Offset t = first; t < last; ++t) {
                poll();
                for (const auto sample : draws[static_cast<std::size_t>(t)]) {
                    auto& count = part[static_cast<std::size_t>(sample * width + t - first)];
                    if (++count == 0) fits.store(false, std::memory_order_relaxed);
                }
            }
            for (Offset i = 0; i < n_samples; ++i) {
                std::copy_n(part.data() + i * width, width, counts + i * n_trees + first);
            }
        });
    return fits;
}

}  // namespace leafkernel
