// Chooses how to sum the rows of a product. If leaves are large, rows are nearly full, and large leaves
// are added as bitmaps. All methods give the same numbers.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "leafkernel/leaf_bitmaps.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/plane_kernels.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

// The loop to use: over the member lists of leaves, with bit planes where possible, with upper bounds
// per leaf (for neighbors only), or the one that is expected to be fastest.
enum class Loop { automatic, lists, planes, bounds };

inline Loop find_loop(std::string_view name) {
    if (name == "auto") return Loop::automatic;
    if (name == "lists") return Loop::lists;
    if (name == "planes") return Loop::planes;
    if (name == "bounds") return Loop::bounds;
    throw std::invalid_argument("loop must be \"auto\", \"lists\", \"planes\" or \"bounds\"");
}

namespace detail {

// Sums of more bitmaps do not fit in the available planes.
constexpr Offset most_visits = 4096;
// Columns processed at once. Their planes stay in the L1 cache.
constexpr Offset words_per_tile = 64;
// The memory limit for all bitmaps of a product.
constexpr Offset most_bitmap_bytes = Offset{1} << 27;

// The mean number of leaf collisions per row, over a sample of the rows.
inline Offset mean_collisions(const Product& product) {
    const Offset n_rows = product.query.n_rows();
    const Offset n_probes = std::min<Offset>(n_rows, 64);
    Offset collisions = 0;
    for (Offset i = 0; i < n_probes; ++i) collisions += product.collisions(i * n_rows / n_probes);
    return n_probes > 0 ? collisions / n_probes : 0;
}

// Out-of-bag flags as one bitmap over the reference samples per tree.
class OobBitmaps {
public:
    explicit OobBitmaps(const OobBits& flags, Offset n_samples, int n_threads, const Monitor& monitor)
        : n_words_(words_for(n_samples)),
          n_maps_(flags.words_per_sample * bits_per_word),
          bits_(n_maps_ * n_words_) {
        for_each_block(n_maps_, 1, n_threads, monitor, [&] {
            return [&](Offset begin, Offset end, const auto&) {
                std::fill_n(bits_.data() + begin * n_words_, (end - begin) * n_words_, Word{0});
                for (Offset tree = begin; tree < end; ++tree) {
                    for (Offset i = 0; i < n_samples; ++i) {
                        const Word word = flags.of(i)[tree / bits_per_word];
                        set_bit(bits_.data() + tree * n_words_, i, word >> tree % bits_per_word & 1u);
                    }
                }
            };
        });
    }
    const Word* of(Offset tree) const { return bits_.data() + tree * n_words_; }

private:
    Offset n_words_, n_maps_;
    Words bits_;
};

// Sums bitmaps over all samples. Holds the scratch memory of one thread.
class BitmapSums {
public:
    explicit BitmapSums(Offset n_samples)
        : n_words_(words_for(n_samples)), planes_(most_planes * words_per_tile) {}

    // Overwrites `sums`, whose size is rounded up to whole vectors of bits.
    void write(const std::vector<const Word*>& maps, std::uint16_t* sums) {
        const auto& kernels = plane_kernels();
        const auto n_maps = static_cast<int>(maps.size());
        const int n_planes = std::max(1, static_cast<int>(std::bit_width(maps.size())));
        for (Offset tile = 0; tile < n_words_; tile += words_per_tile) {
            const Offset width = std::min(words_per_tile, n_words_ - tile);
            moved_.resize(maps.size());
            for (std::size_t m = 0; m < maps.size(); ++m) moved_[m] = maps[m] + tile;
            kernels.add(moved_.data(), &n_maps, 1, n_planes, width, planes_.data(), words_per_tile);
            kernels.read(planes_.data(), words_per_tile, n_planes, width, sums + tile * bits_per_word);
        }
    }

private:
    static constexpr int most_planes = 16;

    Offset n_words_;
    std::vector<const Word*> moved_;
    Words planes_;
};

// Returns the size of the smallest leaf that gets a bitmap. All larger leaves get one too. The limit is
// the size at which a bitmap becomes faster than a list, or a larger size if memory would not suffice.
inline Offset smallest_bitmap(const Product& product) {
    const LeafLists& lists = product.reference;
    const Offset n = lists.n_samples();
    // Counts are added in planes, hundreds at a time. Weights are added as doubles, one vector at a
    // time.
    const Offset worthwhile = product.counts() ? n / 256 : 2 * n / (3 * plane_kernels().doubles);
    const Offset most_maps = most_bitmap_bytes / (8 * words_for(n));
    std::vector<Offset> sizes;
    for (Offset leaf = 0; leaf < lists.n_leaves(); ++leaf) {
        const Offset size = lists.leaf_size(leaf);
        if (size > worthwhile) sizes.push_back(size);
    }
    if (static_cast<Offset>(sizes.size()) <= most_maps) return worthwhile + 1;
    std::nth_element(sizes.begin(), sizes.begin() + most_maps, sizes.end(), std::greater<>());
    return sizes[static_cast<std::size_t>(most_maps)] + 1;
}

}  // namespace detail

// Created once and shared by all threads.
struct RowPlan {
    bool full = false;               // nearly all samples have an entry, so every place is visited
    bool ascending = false;          // entries are samples in ascending order, not unordered places
    std::vector<SampleId> place_of;  // only if places must be sorted by sample
    std::unique_ptr<detail::LeafBitmaps> bitmaps;  // bitmaps of large leaves
    std::unique_ptr<detail::OobBitmaps> oob;

    static RowPlan of(const Product& product, Loop loop, bool sorted, int n_threads,
                      const Monitor& monitor) {
        RowPlan plan;
        const auto& lists = product.reference;
        plan.full = are_full(product, loop);
        if (!plan.full) {
            plan.ascending = sorted && have_many(product);
            if (plan.ascending) plan.place_of = places(lists);
            return plan;
        }
        plan.ascending = is_in_order(lists);
        const Monitor quiet = [&](Offset) {
            if (monitor) monitor(0);
        };
        if (!takes_bitmaps(product)) return plan;
        plan.bitmaps = std::make_unique<detail::LeafBitmaps>(
            lists, 0, lists.n_samples(), 1, detail::smallest_bitmap(product), n_threads, quiet);
        if (product.divides_by_shared_oob() && product.counts()) {
            plan.oob = std::make_unique<detail::OobBitmaps>(product.reference_oob, lists.n_samples(),
                                                            n_threads, quiet);
        }
        return plan;
    }

    // The memory that the bitmaps take.
    static Offset bytes(const Product& product, Loop loop) {
        if (!are_full(product, loop) || !takes_bitmaps(product)) return 0;
        const auto& lists = product.reference;
        const Offset least = detail::smallest_bitmap(product);
        Offset n_maps = 0;
        if (product.counts()) n_maps += product.reference_oob.words_per_sample * detail::bits_per_word;
        for (Offset leaf = 0; leaf < lists.n_leaves(); ++leaf) n_maps += lists.leaf_size(leaf) >= least;
        return n_maps * detail::words_for(lists.n_samples()) * Offset{sizeof(Word)};
    }

private:
    static bool is_in_order(const LeafLists& lists) {
        return std::is_sorted(lists.sample_at.begin(), lists.sample_at.end());
    }

    static std::vector<SampleId> places(const LeafLists& lists) {
        std::vector<SampleId> place_of(lists.sample_at.size());
        for (SampleId place = 0; place < lists.n_samples(); ++place) {
            place_of[lists.sample_at[place]] = place;
        }
        return place_of;
    }

    static bool takes_bitmaps(const Product& product) {
        return product.reference.weights.all_one() &&
               product.query.incidence.longest <= detail::most_visits && is_in_order(product.reference);
    }

    // Whether rows have enough entries for a scan of a bitmap, 64 samples at a time.
    static bool have_many(const Product& product) {
        return 64 * detail::mean_collisions(product) > product.reference.n_samples();
    }

    // Whether rows have so many collisions that visiting every slot is cheaper than listing the used
    // ones.
    static bool are_full(const Product& product, Loop loop) {
        if (loop == Loop::lists || loop == Loop::planes) return loop == Loop::planes;
        return 5 * detail::mean_collisions(product) > 2 * product.reference.n_samples();
    }
};

}  // namespace leafkernel
