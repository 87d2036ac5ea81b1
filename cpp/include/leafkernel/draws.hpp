// Counts how often each tree drew each sample, and checks the counts against the leaf weights that the
// tree recorded.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "leafkernel/leaf_lists.hpp"
#include "leafkernel/memory.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/require.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

namespace detail {

// The generator of NumPy's RandomState(seed): MT19937, one block of numbers at a time.
class MersenneTwister {
public:
    static constexpr int block_size = 624;

    explicit MersenneTwister(std::uint32_t seed) {
        for (std::uint32_t i = 0; i < block_size; ++i) {
            state_[i] = seed;
            seed = 1812433253u * (seed ^ (seed >> 30)) + i + 1;
        }
    }

    // Returns the next block of the sequence.
    const std::array<std::uint32_t, block_size>& next() {
        constexpr int shift = 397;
        int i = 0;
        for (; i < block_size - shift; ++i) state_[i] = twisted(i, i + 1, state_[i + shift]);
        for (; i < block_size - 1; ++i) {
            state_[i] = twisted(i, i + 1, state_[i + shift - block_size]);
        }
        state_[i] = twisted(i, 0, state_[shift - 1]);
        for (i = 0; i < block_size; ++i) {
            std::uint32_t number = state_[i];
            number ^= number >> 11;
            number ^= (number << 7) & 0x9d2c5680u;
            number ^= (number << 15) & 0xefc60000u;
            numbers_[i] = number ^ (number >> 18);
        }
        return numbers_;
    }

private:
    std::uint32_t twisted(int high, int low, std::uint32_t other) const {
        const std::uint32_t mixed = (state_[high] & 0x80000000u) | (state_[low] & 0x7fffffffu);
        return other ^ (mixed >> 1) ^ (-(mixed & 1u) & 0x9908b0dfu);
    }

    std::array<std::uint32_t, block_size> state_, numbers_;
};

// Counts the draws of RandomState(seed).randint(0, n_samples, n_draws). NumPy masks each number to the
// bits of the largest sample, and rejects values that are too large. `counts` has one entry for every
// masked value, initially zero. Returns whether the counts of all samples fit in a byte.
inline bool count_randint(std::uint32_t seed, Offset n_samples, Offset n_draws, std::uint8_t* counts) {
    if (n_samples == 1) {  // NumPy does not advance the generator here
        counts[0] = static_cast<std::uint8_t>(n_draws);
        return n_draws <= 255;
    }
    const auto last = static_cast<std::uint32_t>(n_samples - 1);
    const std::uint32_t mask = std::bit_ceil(std::uint64_t{last} + 1) - 1;
    MersenneTwister twister(seed);
    bool wraps = false;
    Offset drawn = 0;
    // Whole blocks without a branch, because rejections cannot be predicted.
    while (drawn + MersenneTwister::block_size <= n_draws) {
        for (const std::uint32_t number : twister.next()) {
            const std::uint32_t sample = number & mask;
            const bool is_sample = sample <= last;
            wraps |= ++counts[sample] == 0 && is_sample;
            drawn += is_sample;
        }
    }
    while (drawn < n_draws) {
        for (const std::uint32_t number : twister.next()) {
            const std::uint32_t sample = number & mask;
            if (sample > last) continue;
            if (drawn++ == n_draws) break;
            wraps |= ++counts[sample] == 0;
        }
    }
    return !wraps;
}

// Transposes counts from (n_trees, stride) to (n_samples, n_trees), both row-major.
inline void turn_counts(const std::uint8_t* by_tree, Offset stride, Offset n_samples, Offset n_trees,
                        std::uint8_t* counts, int n_threads, const Monitor& monitor) {
    constexpr Offset rows_at_once = 64;  // stays in cache for any number of trees
    for_each_block(n_samples, 64 * rows_at_once, n_threads, monitor, [&] {
        return [&](Offset begin, Offset end, const auto&) {
            for (; begin < end; begin += rows_at_once) {
                const Offset size = std::min(rows_at_once, end - begin);
                for (Offset t = 0; t < n_trees; ++t) {
                    const std::uint8_t* from = by_tree + t * stride + begin;
                    std::uint8_t* to = counts + begin * n_trees + t;
                    for (Offset i = 0; i < size; ++i) to[i * n_trees] = from[i];
                }
            }
        };
    });
}

}  // namespace detail

// Counts the draws of trees from their seeds, as a row-major (n_samples, n_trees) array. Returns
// whether all counts fit in a byte; if not, they must not be used.
inline bool count_seeded_draws(std::span<const std::uint32_t> seeds, Offset n_samples, Offset n_draws,
                               std::uint8_t* counts, int n_threads, const Monitor& monitor) {
    if (n_samples == 0) return true;
    const auto n_trees = static_cast<Offset>(seeds.size());
    // Room for all masked values, including the rejected ones.
    const auto room = static_cast<Offset>(std::bit_ceil(static_cast<std::uint64_t>(n_samples)));
    Buffer<std::uint8_t> by_tree(n_trees * n_samples);
    std::atomic<bool> fits{true};
    for_each_block(n_trees, 1, n_threads, monitor, [&] {
        return [&, part = std::vector<std::uint8_t>()](Offset t, Offset, const auto&) mutable {
            part.assign(static_cast<std::size_t>(room), 0);
            if (!detail::count_randint(seeds[t], n_samples, n_draws, part.data())) {
                fits.store(false, std::memory_order_relaxed);
            }
            std::copy_n(part.data(), n_samples, by_tree.data() + t * n_samples);
        };
    });
    detail::turn_counts(by_tree.data(), n_samples, n_samples, n_trees, counts, n_threads, monitor);
    return fits;
}

// Counts given draws of trees, as a row-major (n_samples, n_trees) array. Returns whether all counts
// fit in a byte; if not, they must not be used. Throws std::invalid_argument if a draw is not a valid
// sample.
inline bool count_draws(std::span<const std::span<const std::int32_t>> draws, Offset n_samples,
                        std::uint8_t* counts, int n_threads, const Monitor& monitor) {
    const auto n_trees = static_cast<Offset>(draws.size());
    Buffer<std::uint8_t> by_tree(n_trees * n_samples);
    std::atomic<bool> fits{true};
    for_each_block(n_trees, 1, n_threads, monitor, [&] {
        return [&](Offset t, Offset, const auto&) {
            std::uint8_t* of_tree = by_tree.data() + t * n_samples;
            std::fill_n(of_tree, n_samples, std::uint8_t{0});
            for (const auto sample : draws[static_cast<std::size_t>(t)]) {
                require(sample >= 0 && sample < n_samples, "a draw is not a valid sample");
                if (++of_tree[sample] == 0) fits.store(false, std::memory_order_relaxed);
            }
        };
    });
    detail::turn_counts(by_tree.data(), n_samples, n_samples, n_trees, counts, n_threads, monitor);
    return fits;
}

// Whether the in-bag weights of a tree's leaves match the recorded ones, up to rounding. `left` and
// `recorded` take a node. Leaves have a negative left child and are numbered in the order of their
// nodes.
template <class Children, class Weights>
bool masses_agree(Offset n_nodes, const Children& left, const Weights& recorded,
                  std::span<const double> masses) {
    std::vector<double> expected;
    expected.reserve(masses.size());
    double total = 0.0;
    for (Offset node = 0; node < n_nodes; ++node) {
        if (left(node) >= 0) continue;
        expected.push_back(recorded(node));
        total += expected.back();
    }
    if (expected.size() != masses.size()) return false;
    bool agree = true;
    for (std::size_t i = 0; i < masses.size(); ++i) {
        agree &= !(std::abs(masses[i] - expected[i]) > 1e-6 * expected[i] + 1e-9 * total);
    }
    return agree;
}

}  // namespace leafkernel
