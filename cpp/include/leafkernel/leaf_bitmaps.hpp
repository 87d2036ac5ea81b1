// Leaves as bitmaps over the samples: bit j says whether sample j is in the leaf.
#pragma once

#include <algorithm>
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

// Bitmaps of the leaves with at least `least_size` members, over the samples [first, last). If members
// have counts, there is one bitmap for each bit of the count.
class LeafBitmaps {
public:
    LeafBitmaps(const LeafLists& lists, Offset first, Offset last, int depth, Offset least_size,
                int n_threads, const Monitor& monitor)
        : depth_(depth),
          n_words_(words_for(last - first)),
          stride_(n_words_ % 64 == 0 ? n_words_ + 8 : n_words_),  // avoids cache conflicts
          number_(static_cast<std::size_t>(lists.n_leaves())) {
        Offset n_maps = 0;
        for (Offset leaf = 0; leaf < lists.n_leaves(); ++leaf) {
            number_[leaf] = lists.leaf_size(leaf) >= least_size ? n_maps++ : -1;
        }
        bits_ = Words(n_maps * depth * stride_);
        for_each_block(lists.n_leaves(), 64, n_threads, monitor, [&] {
            return [&](Offset begin, Offset end, const auto&) {
                for (Offset leaf = begin; leaf < end; ++leaf) {
                    if (has(leaf)) fill(lists, leaf, first, last);
                }
            };
        });
    }

    int depth() const { return depth_; }
    Offset n_words() const { return n_words_; }
    bool has(Offset leaf) const { return number_[leaf] >= 0; }
    const Word* of(Offset leaf, int bit) const {
        return bits_.data() + (number_[leaf] * depth_ + bit) * stride_;
    }

private:
    void fill(const LeafLists& lists, Offset leaf, Offset first, Offset last) {
        Word* maps = bits_.data() + number_[leaf] * depth_ * stride_;
        std::fill_n(maps, depth_ * stride_, Word{0});
        for (Offset m = lists.offsets[leaf]; m < lists.offsets[leaf + 1]; ++m) {
            const Offset sample = lists.sample_at[lists.members[m]];
            if (sample < first || sample >= last) continue;
            const unsigned count = lists.weights.counts.empty() ? 1u : lists.weights.counts[m];
            for (int bit = 0; bit < depth_; ++bit) {
                set_bit(maps + bit * stride_, sample - first, Word{count >> bit & 1u});
            }
        }
    }

    int depth_;
    Offset n_words_, stride_;
    std::vector<Offset> number_;  // number of each leaf's first map; -1 if it has none
    Words bits_;
};

}  // namespace leafkernel::detail
