// Leaf members grouped by their count. All members of a level have the same weight, so levels are added
// without reading weights, and a level with a large count before the other levels of its leaf.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "leafkernel/memory.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/prefetch.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel::detail {

// The members of one leaf with one count.
struct Level {
    Offset begin, end;  // in LeafLevels::members()
    unsigned count;

    Offset size() const { return end - begin; }
};

// The levels of each leaf, from the largest count to the smallest, and the level of each sample in each
// tree. Members without counts form a single level.
class LeafLevels {
public:
    // The number of a level within its tree, or group of leaves.
    using Code = std::uint16_t;
    static constexpr Code none = std::numeric_limits<Code>::max();
    // The memory limit for codes and members.
    static constexpr Offset most_bytes = Offset{1} << 30;

    // `first_leaves` holds the first leaf of each group, then the number of leaves.
    LeafLevels(const LeafLists& lists, std::span<const Offset> first_leaves, int n_threads,
               const Monitor& monitor)
        : lists_(lists), n_groups_(static_cast<Offset>(first_leaves.size()) - 1) {
        const Offset n = lists.n_samples();
        const Offset n_copied =
            lists.weights.counts.empty() ? 0 : static_cast<Offset>(lists.members.size());
        fits_ =
            n * n_groups_ * Offset{sizeof(Code)} + n_copied * Offset{sizeof(SampleId)} <= most_bytes;
        if (!fits_) return;
        for (Offset leaf = 0; leaf < lists.n_leaves(); ++leaf) {
            first_.push_back(static_cast<Offset>(levels_.size()));
            find_levels(leaf);
        }
        first_.push_back(static_cast<Offset>(levels_.size()));
        for (const Offset leaf : first_leaves) base_.push_back(first_[leaf]);
        for (Offset g = 0; g < n_groups_; ++g) fits_ &= base_[g + 1] - base_[g] < none;
        if (!fits_) return;
        ordered_.resize(n_copied);
        codes_.resize(n * n_groups_);
        // The codes of a place are next to each other. Groups that share cache lines go to one thread.
        for_each_block(n_groups_, 32, n_threads, monitor, [&] {
            return [&](Offset begin, Offset end, const auto&) {
                for (Offset place = 0; place < n; ++place) {
                    std::fill_n(codes_.data() + place * n_groups_ + begin, end - begin, none);
                }
                for (Offset g = begin; g < end; ++g) {
                    for (Offset leaf = first_leaves[g]; leaf < first_leaves[g + 1]; ++leaf) {
                        fill(leaf, g);
                    }
                }
            };
        });
    }

    // False if there is not enough memory, or a group has too many levels. Call nothing else then.
    bool fits() const { return fits_; }

    const SampleId* members() const {
        return lists_.weights.counts.empty() ? lists_.members.data() : ordered_.data();
    }
    std::span<const Level> of(Offset leaf) const {
        return {levels_.data() + first_[leaf], levels_.data() + first_[leaf + 1]};
    }
    // The code of the first level of a leaf.
    unsigned first_code(Offset group, Offset leaf) const {
        return static_cast<unsigned>(first_[leaf] - base_[group]);
    }
    // The codes of a place, one for each group.
    const Code* codes(SampleId place) const { return codes_.data() + place * n_groups_; }

    void ask_for(Offset leaf) const {
        prefetch(levels_.data() + first_[leaf], levels_.data() + first_[leaf + 1]);
    }
    void ask_for_codes(SampleId place) const { prefetch(codes(place), codes(place) + n_groups_); }

private:
    void find_levels(Offset leaf) {
        const Offset begin = lists_.offsets[leaf], end = lists_.offsets[leaf + 1];
        const auto& counts = lists_.weights.counts;
        if (begin == end) return;
        if (counts.empty()) {
            levels_.push_back({begin, end, 1});
            return;
        }
        std::array<Offset, 256> sizes{};
        unsigned most = 0;
        for (Offset m = begin; m < end; ++m) {
            ++sizes[counts[m]];
            most = std::max<unsigned>(most, counts[m]);
        }
        Offset at = begin;
        for (unsigned count = most; count > 0; --count) {
            if (sizes[count] == 0) continue;
            levels_.push_back({at, at + sizes[count], count});
            at += sizes[count];
        }
    }

    void fill(Offset leaf, Offset group) {
        const auto levels = of(leaf);
        const auto& counts = lists_.weights.counts;
        std::array<Offset, 256> next;
        std::array<Code, 256> code;
        for (std::size_t l = 0; l < levels.size(); ++l) {
            next[levels[l].count] = levels[l].begin;
            code[levels[l].count] = static_cast<Code>(first_code(group, leaf) + l);
        }
        for (Offset m = lists_.offsets[leaf]; m < lists_.offsets[leaf + 1]; ++m) {
            const SampleId place = lists_.members[m];
            const unsigned count = counts.empty() ? 1 : counts[m];
            if (count == 0) continue;
            codes_[place * n_groups_ + group] = code[count];
            if (!counts.empty()) ordered_[next[count]++] = place;
        }
    }

    const LeafLists& lists_;
    Offset n_groups_;
    std::vector<Level> levels_;
    std::vector<Offset> first_;  // the first level of each leaf, then the number of levels
    std::vector<Offset> base_;   // the first level of each group, then the number of levels
    Buffer<SampleId> ordered_;   // members level by level, if they have counts
    Buffer<Code> codes_;         // place by place
    bool fits_ = true;
};

}  // namespace leafkernel::detail
