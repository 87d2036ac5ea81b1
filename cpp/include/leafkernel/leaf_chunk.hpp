// The leaves within one chunk of samples. Large leaves are bitmaps, and small leaves are short lists.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "leafkernel/leaf_bitmaps.hpp"
#include "leafkernel/memory.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel::detail {

// A member of a short list. Columns are samples, counted from the first sample of the chunk.
struct ShortMember {
    std::uint32_t column : 24;
    std::uint32_t count : 8;
};

// The leaves over the samples [first, last). If members have counts, some bits of the counts of a leaf
// may be bitmaps, and the others are in its list.
class LeafChunk {
public:
    LeafChunk(const LeafLists& lists, Offset first, Offset last, int depth, Offset least_size,
              int n_threads, const Monitor& monitor)
        : lists_(lists),
          first_(first),
          last_(last),
          bitmaps_(lists, first, last, depth, least_size, n_threads, monitor),
          offsets_(static_cast<std::size_t>(lists.n_leaves()) + 1) {
        each_leaf(n_threads, monitor,
                  [&](Offset leaf) { each_short(leaf, [&](ShortMember) { ++offsets_[leaf + 1]; }); });
        for (std::size_t leaf = 1; leaf < offsets_.size(); ++leaf) offsets_[leaf] += offsets_[leaf - 1];
        members_ = Buffer<ShortMember>(offsets_.back());
        each_leaf(n_threads, monitor, [&](Offset leaf) {
            ShortMember* to = members_.data() + offsets_[leaf];
            each_short(leaf, [&](ShortMember member) { *to++ = member; });
            std::sort(members_.data() + offsets_[leaf], to,
                      [](ShortMember a, ShortMember b) { return a.column < b.column; });
        });
    }

    Offset first() const { return first_; }
    Offset last() const { return last_; }
    Offset n_words() const { return bitmaps_.n_words(); }
    int depth() const { return bitmaps_.depth(); }
    bool has_bitmap(Offset leaf, int bit) const { return bitmaps_.has(leaf, bit); }
    const Word* bitmap(Offset leaf, int bit) const { return bitmaps_.of(leaf, bit); }
    bool has_bitmaps(Offset leaf) const { return bitmaps_.bits(leaf) != 0; }

    // The members with counts that are not in bitmaps, in ascending order.
    std::span<const ShortMember> members(Offset leaf) const {
        return {members_.data() + offsets_[leaf], members_.data() + offsets_[leaf + 1]};
    }

    // How often a sample counts in a leaf; zero if it is not a member.
    unsigned count(Offset leaf, Offset column) const {
        unsigned count = 0;
        for (int bit = 0; bit < depth(); ++bit) {
            if (has_bitmap(leaf, bit)) {
                count |= unsigned{has_bit(bitmap(leaf, bit), column)} << bit;
            }
        }
        const auto found = members(leaf);
        const auto at = std::lower_bound(
            found.begin(), found.end(), column,
            [](ShortMember member, Offset c) { return static_cast<Offset>(member.column) < c; });
        const bool is_there = at != found.end() && static_cast<Offset>(at->column) == column;
        return count | (is_there ? unsigned{at->count} : 0u);
    }

private:
    template <class Do>
    void each_leaf(int n_threads, const Monitor& monitor, const Do& run) const {
        for_each_block(lists_.n_leaves(), 256, n_threads, monitor, [&] {
            return [&](Offset begin, Offset end, const auto&) {
                for (Offset leaf = begin; leaf < end; ++leaf) run(leaf);
            };
        });
    }

    template <class Do>
    void each_short(Offset leaf, const Do& run) const {
        const auto& counts = lists_.weights.counts;
        const unsigned listed = ~bitmaps_.bits(leaf) & ((1u << depth()) - 1);
        if (listed == 0) return;
        for (Offset m = lists_.offsets[leaf]; m < lists_.offsets[leaf + 1]; ++m) {
            const Offset sample = lists_.sample_at[lists_.members[m]];
            const unsigned count = (counts.empty() ? 1u : counts[m]) & listed;
            if (sample < first_ || sample >= last_ || count == 0) continue;
            run({static_cast<std::uint32_t>(sample - first_) & 0xffffffu, count & 0xffu});
        }
    }

    const LeafLists& lists_;
    Offset first_, last_;
    LeafBitmaps bitmaps_;
    std::vector<Offset> offsets_;  // of the short lists
    Buffer<ShortMember> members_;
};

// Sums over short lists, stored as bit planes to be added to the planes of the bitmaps. Holds the
// scratch memory of one thread.
class ShortListSums {
public:
    explicit ShortListSums(Offset n_words)
        : n_words_(n_words), sums_(static_cast<std::size_t>(n_words * bits_per_word)) {}

    void add(std::span<const ShortMember> members, std::uint32_t units) {
        if (touched_.size() < n_touched_ + members.size() + 1) {
            touched_.resize(2 * (n_touched_ + members.size() + 1));
        }
        std::uint32_t* touched = touched_.data();
        std::size_t n = n_touched_;
        for (const auto member : members) {
            std::uint32_t& sum = sums_[member.column];
            touched[n] = member.column;  // always written, kept if the column is new
            n += sum == 0;
            sum += units * member.count;
        }
        n_touched_ = n;
    }

    bool empty() const { return n_touched_ == 0; }

    // Returns the sums as n_planes planes, n_words apart, and clears them.
    const Word* drain(int n_planes) {
        if (size_ < n_planes * n_words_) {
            size_ = n_planes * n_words_;
            planes_ = Words(size_);
        }
        std::fill_n(planes_.data(), n_planes * n_words_, Word{0});
        for (std::size_t i = 0; i < n_touched_; ++i) {
            const Offset column = touched_[i];
            Word* const word = planes_.data() + column / bits_per_word;
            for (std::uint32_t left = sums_[column]; left != 0; left &= left - 1) {
                word[std::countr_zero(left) * n_words_] |= Word{1} << column % bits_per_word;
            }
            sums_[column] = 0;
        }
        n_touched_ = 0;
        return planes_.data();
    }

private:
    Offset n_words_;
    std::vector<std::uint32_t> sums_;  // all zero between rows
    std::vector<std::uint32_t> touched_;
    std::size_t n_touched_ = 0;
    Words planes_;
    Offset size_ = 0;
};

}  // namespace leafkernel::detail
