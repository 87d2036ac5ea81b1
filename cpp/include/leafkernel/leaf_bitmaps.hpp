// Leaves as bitmaps over the samples: bit j says whether sample j is in the leaf.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "leafkernel/memory.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/plane_kernels.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel::detail {

constexpr Offset bits_per_word = 64;

// Rounds up to whole vectors of every instruction set.
inline Offset padded(Offset n_words) { return (n_words + 7) / 8 * 8; }

inline Offset words_for(Offset n_samples) {
    return padded((n_samples + bits_per_word - 1) / bits_per_word);
}

inline void set_bit(Word* map, Offset at, Word bit = 1) {
    map[at / bits_per_word] |= bit << at % bits_per_word;
}

inline bool has_bit(const Word* map, Offset at) {
    return (map[at / bits_per_word] >> at % bits_per_word & 1u) != 0;
}

// An array of words, aligned for vectors of every instruction set.
class Words {
public:
    explicit Words(Offset n = 0) : memory_(n + 8) {
        const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
        first_ = memory_.data() + (64 - address % 64) % 64 / sizeof(Word);
    }
    Word* data() { return first_; }
    const Word* data() const { return first_; }

private:
    Buffer<Word> memory_;
    Word* first_;
};

// Bitmaps of the leaves over the samples [first, last). If members have counts, a leaf may have one
// bitmap for each bit of the count. A bitmap exists if at least `least_size` members, over all samples,
// have its bit.
class LeafBitmaps {
public:
    LeafBitmaps(const LeafLists& lists, Offset first, Offset last, int depth, Offset least_size,
                int n_threads, const Monitor& monitor)
        : depth_(depth),
          n_words_(words_for(last - first)),
          stride_(n_words_ % 64 == 0 ? n_words_ + 8 : n_words_),  // avoids cache conflicts
          number_(static_cast<std::size_t>(lists.n_leaves() * depth)) {
        const auto each_leaf = [&](const auto& run) {
            for_each_block(lists.n_leaves(), 64, n_threads, monitor, [&] {
                return [&](Offset begin, Offset end, const auto&) {
                    for (Offset leaf = begin; leaf < end; ++leaf) run(leaf);
                };
            });
        };
        each_leaf([&](Offset leaf) {
            const auto sizes = sizes_of_bits(lists, leaf);
            for (int bit = 0; bit < depth; ++bit) {
                number_[leaf * depth + bit] = sizes[bit] >= least_size ? 0 : -1;
            }
        });
        Offset n_maps = 0;
        for (Offset& number : number_) {
            if (number == 0) number = n_maps++;
        }
        bits_ = Words(n_maps * stride_);
        each_leaf([&](Offset leaf) { fill(lists, leaf, first, last); });
    }

    int depth() const { return depth_; }
    Offset n_words() const { return n_words_; }
    bool has(Offset leaf, int bit = 0) const { return number_[leaf * depth_ + bit] >= 0; }
    const Word* of(Offset leaf, int bit) const {
        return bits_.data() + number_[leaf * depth_ + bit] * stride_;
    }
    // The bits of a count that have bitmaps.
    unsigned bits(Offset leaf) const {
        unsigned found = 0;
        for (int bit = 0; bit < depth_; ++bit) found |= unsigned{has(leaf, bit)} << bit;
        return found;
    }

private:
    // The number of members that have each bit of the count.
    std::array<Offset, 8> sizes_of_bits(const LeafLists& lists, Offset leaf) const {
        std::array<Offset, 8> sizes{};
        if (depth_ == 1) {
            sizes[0] = lists.leaf_size(leaf);
            return sizes;
        }
        for (Offset m = lists.offsets[leaf]; m < lists.offsets[leaf + 1]; ++m) {
            for (int bit = 0; bit < depth_; ++bit) sizes[bit] += lists.weights.counts[m] >> bit & 1u;
        }
        return sizes;
    }

    void fill(const LeafLists& lists, Offset leaf, Offset first, Offset last) {
        for (int bit = 0; bit < depth_; ++bit) {
            if (!has(leaf, bit)) continue;
            Word* map = bits_.data() + number_[leaf * depth_ + bit] * stride_;
            std::fill_n(map, stride_, Word{0});
            for (Offset m = lists.offsets[leaf]; m < lists.offsets[leaf + 1]; ++m) {
                const Offset sample = lists.sample_at[lists.members[m]];
                if (sample < first || sample >= last) continue;
                const unsigned count = lists.weights.counts.empty() ? 1u : lists.weights.counts[m];
                set_bit(map, sample - first, Word{count >> bit & 1u});
            }
        }
    }

    int depth_;
    Offset n_words_, stride_;
    std::vector<Offset> number_;  // of each leaf's maps, bit by bit; -1 if there is none
    Words bits_;
};

}  // namespace leafkernel::detail
