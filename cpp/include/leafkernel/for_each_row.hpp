// The main loop. It computes rows of P and passes them to a reducer, which builds the result (matrix,
// neighbors, sums, counts).
//
//     leaves of row i      leaf lists                       row i of P
//     (leaf, q) ...        leaf -> (place, w) ...           (place, value) ...
//         |                    |                                |
//         +-- for each leaf ---+-- for each member: add --> RowAccumulator --> reducer
//
// One thread sums a row, in the order of the trees. The result therefore does not depend on the number
// of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "leafkernel/memory.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/prefetch.hpp"
#include "leafkernel/row_accumulator.hpp"
#include "leafkernel/row_plan.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

// Consecutive rows of P: places and values of the nonzero entries, unordered within a row.
template <class Value>
struct RowBuffer {
    Buffer<SampleId> places;
    Buffer<Value> values;
    Offset used = 0;
};

namespace detail {

// The lists of a row's leaves are short and far apart in memory. Without prefetching, the loop would
// wait for memory most of the time.
constexpr std::size_t lookahead = 8;

// Computes one row at a time. Holds the scratch memory of one thread.
template <class Value>
class RowComputer {
public:
    virtual ~RowComputer() = default;

    // Announces the two rows after the next one, to prefetch their data.
    virtual void prepare(Offset next, Offset after_next) = 0;

    // Appends a row to the buffer and returns its size.
    virtual Offset compute(Offset row, RowBuffer<Value>& buffer) = 0;
};

struct NoWeights {};

// Infinite and NaN values cannot be ranked or added, so they must not reach a reducer.
template <class Value>
void require_finite(bool finite) {
    if (finite) return;
    throw std::overflow_error(std::is_same_v<Value, float>
                                  ? "a proximity is too large for float32; use dtype=np.float64, or "
                                    "smaller weights"
                                  : "a proximity is too large for float64; use smaller weights");
}

// The existing entries of a row. Which entries exist cannot be predicted, so each one is written, and
// the size grows only if it exists. This needs no branch.
struct RowEntries {
    explicit RowEntries(Offset longest)
        : leaves(static_cast<std::size_t>(longest) + 1),
          groups(leaves.size()),
          weights(leaves.size()) {}

    void find(const WeighedRows& query, Offset row_) {
        row = row_;
        const auto& columns = query.incidence.columns;
        columns.wide.empty() ? find_in(query, columns.narrow.data())
                             : find_in(query, columns.wide.data());
    }

    Offset row = -1;
    std::size_t size = 0;
    std::vector<Offset> leaves;
    std::vector<Offset> groups;   // positions in the row
    std::vector<double> weights;  // only if the query has weights

private:
    template <class ColumnId>
    void find_in(const WeighedRows& query, const ColumnId* ids) {
        const Offset first = query.incidence.begin(row);
        const Offset n_entries = query.incidence.end(row) - first;
        const std::uint8_t* present = query.present.empty() ? nullptr : query.present.data() + first;
        const bool weighs = !query.weights.all_one();
        Offset* to = leaves.data();
        std::size_t n = 0;
        for (Offset e = 0; e < n_entries; ++e) {
            to[n] = ids[first + e];
            groups[n] = e;
            bool is_there = present == nullptr || present[e] != 0;
            if (weighs) {
                weights[n] = query.weights[first + e];
                is_there &= weights[n] != 0.0;
            }
            n += is_there;
        }
        size = n;
    }
};

// Slot: the type of a sum, a count or a double. Weight: the type of the member weights. Sums: the
// accumulator.
template <class Value, class Slot, class Weight, template <class> class Sums>
class RowComputerOf final : public RowComputer<Value> {
    static constexpr bool counts = !std::is_same_v<Slot, double>;
    static constexpr bool weighs = !std::is_same_v<Weight, NoWeights>;
    static constexpr bool is_full = std::is_same_v<Sums<Slot>, FullRowAccumulator<Slot>>;

public:
    RowComputerOf(const Product& product, const RowPlan& plan, std::span<const Weight> member_weights)
        : product_(product),
          plan_(plan),
          member_weights_(member_weights),
          sums_(product.reference.n_samples()),
          entries_(product.query.incidence.longest),
          next_entries_(product.query.incidence.longest),
          visits_(static_cast<std::size_t>(product.query.incidence.longest)) {
        if constexpr (is_full && counts) {
            bitmap_sums_ = BitmapSums(plan.bitmaps ? product.reference.n_samples() : 0);
            if (plan.oob) shared_ = FullRowAccumulator<std::uint16_t>(product.reference.n_samples());
        }
    }

    void prepare(Offset next, Offset after_next) override {
        next_entries_.find(product_.query, next);
        for (std::size_t v = 0; v < next_entries_.size; ++v) {
            const Offset leaf = next_entries_.leaves[v];
            prefetch(&product_.reference.offsets[leaf]);
            if (!product_.by_leaf.empty()) prefetch(&product_.by_leaf[leaf]);
        }
        prefetch_row(product_.query.incidence, after_next);
    }

    Offset compute(Offset row, RowBuffer<Value>& buffer) override {
        if (entries_.row != row) entries_.find(product_.query, row);
        add_lists(look_up_leaves());
        std::swap(entries_, next_entries_);
        const Offset at_most = buffer.used + sums_.n_used() + 1;  // one more for the diagonal
        buffer.places.reserve(at_most);
        buffer.values.reserve(at_most);
        SampleId* places = buffer.places.data() + buffer.used;
        Value* values = buffer.values.data() + buffer.used;
        Offset size = to_values(row, places, values);
        if (!product_.diagonal.empty()) size = put_diagonal(row, places, values, size);
        buffer.used += size;
        return size;
    }

private:
    struct Visit {
        Offset begin, end;  // the leaf's members
        double weight;      // q · g
        const Word* map;    // bitmap of the members; null to add them one by one
    };

    // Returns the number of leaves left to add from lists. Counts from bitmaps are added here.
    std::size_t look_up_leaves() {
        const auto& reference = product_.reference;
        const bool has_weights = !product_.query.weights.all_one();
        std::size_t n_lists = 0;
        maps_.clear();
        for (std::size_t v = 0; v < entries_.size; ++v) {
            const Offset leaf = entries_.leaves[v];
            if constexpr (is_full && counts) {
                if (plan_.bitmaps && plan_.bitmaps->has(leaf)) {
                    maps_.push_back(plan_.bitmaps->of(leaf, 0));
                    continue;
                }
            }
            Visit& visit = visits_[n_lists++];
            visit.map = nullptr;
            if constexpr (is_full && !weighs) {
                if (plan_.bitmaps && plan_.bitmaps->has(leaf)) visit.map = plan_.bitmaps->of(leaf, 0);
            }
            visit.begin = reference.offsets[leaf];
            visit.end = reference.offsets[leaf + 1];
            if constexpr (!counts) {
                const double q = has_weights ? entries_.weights[v] : 1.0;
                visit.weight = q * (product_.by_leaf.empty() ? 1.0 : product_.by_leaf[leaf]);
            }
        }
        if constexpr (is_full && counts) {
            if (!maps_.empty()) bitmap_sums_.write(maps_, sums_.slots());
        }
        return n_lists;
    }

    void ask_for(std::size_t visit) const {
        const Offset begin = visits_[visit].begin;
        prefetch(product_.reference.members.data() + begin);
        prefetch(product_.reference.members.data() + std::min(begin + 16, visits_[visit].end));
        if constexpr (weighs) prefetch(member_weights_.data() + begin);
    }

    void add_lists(std::size_t n_visits) {
        const SampleId* members = product_.reference.members.data();
        for (std::size_t v = 0; v < std::min(lookahead, n_visits); ++v) ask_for(v);
        for (std::size_t v = 0; v < n_visits; ++v) {
            if (v + lookahead < n_visits) ask_for(v + lookahead);
            const auto [begin, end, weight, map] = visits_[v];
            if constexpr (is_full && !counts && !weighs) {
                if (map != nullptr) {
                    maps_.push_back(map);
                    map_weights_.push_back(weight);
                    continue;
                }
                add_maps();
            }
            if constexpr (counts) {
                sums_.add(members, begin, end, [](Offset) { return Slot{1}; });
            } else if constexpr (weighs) {
                const Weight* weights = member_weights_.data();
                sums_.add(members, begin, end,
                          [=, q = weight](Offset m) { return q * static_cast<double>(weights[m]); });
            } else {
                sums_.add(members, begin, end, [q = weight](Offset) { return q; });
            }
        }
        if constexpr (is_full && !counts && !weighs) add_maps();
    }

    // Adds the pending bitmaps. All leaves are added in the order of the trees, so the sums are
    // bit-for-bit those of the lists.
    void add_maps() {
        if (maps_.empty()) return;
        sums_.add(maps_, map_weights_);
        maps_.clear();
        map_weights_.clear();
    }

    // Converts sums to proximities. Entries that are zero in the result type are dropped.
    Offset to_values(Offset row, SampleId* places, Value* values) {
        const auto& reference = product_.reference;
        const double factor =
            product_.scale * (product_.query.by_row.empty() ? 1.0 : product_.query.by_row[row]);
        Offset size = 0;
        bool finite = true;
        const auto keep = [&](SampleId id, double value) {  // always written, kept if not zero
            places[size] = id;
            values[size] = static_cast<Value>(value);
            finite &= is_finite(values[size]);
            size += values[size] != Value{0};
        };
        // Computing a·b first makes entry (i, j) equal to (j, i) to the last bit.
        const auto weighed = [&](SampleId place, Slot sum) {
            const double b = reference.by_place.empty() ? 1.0 : reference.by_place[place];
            return (factor * b) * static_cast<double>(sum);
        };
        if (plan_.oob) {
            const std::uint16_t* shared = count_shared_oob(row);
            drain([&](SampleId place, SampleId id, Slot sum) {
                keep(id, shared[place] > 0 ? weighed(place, sum) / shared[place] : 0.0);
            });
        } else if (product_.divides_by_shared_oob()) {
            const auto* mine = product_.query_oob.of(row);
            const auto& theirs = product_.reference_oob;
            drain([&](SampleId place, SampleId id, Slot sum) {
                const int shared = shared_oob_trees(mine, theirs.of(place), theirs.words_per_sample);
                keep(id, shared > 0 ? weighed(place, sum) / shared : 0.0);
            });
        } else {
            drain([&](SampleId place, SampleId id, Slot sum) { keep(id, weighed(place, sum)); });
        }
        require_finite<Value>(finite);
        return size;
    }

    // Calls visit(place, id, sum) for the sums of the row. The id is a sample if the plan is ascending,
    // else a place.
    template <class Visit>
    void drain(Visit&& visit) {
        if constexpr (!is_full) {
            if (plan_.ascending) {
                return sums_.drain_in_order(product_.reference.sample_at, plan_.place_of, visit);
            }
        }
        sums_.drain([&](SampleId place, Slot sum) { visit(place, place, sum); });
    }

    // Counts, for each sample, the trees in which both it and the row are out of bag.
    const std::uint16_t* count_shared_oob(Offset row) {
        maps_.clear();
        for (Offset w = 0; w < product_.query_oob.words_per_sample; ++w) {
            for (Word left = product_.query_oob.of(row)[w]; left != 0; left &= left - 1) {
                maps_.push_back(plan_.oob->of(w * bits_per_word + std::countr_zero(left)));
            }
        }
        bitmap_sums_.write(maps_, shared_.slots());
        return shared_.slots();
    }

    static bool is_finite(Value value) {  // false for NaN too
        return std::abs(value) <= std::numeric_limits<Value>::max();
    }

    Offset put_diagonal(Offset row, SampleId* places, Value* values, Offset size) {
        if (product_.own[row] < 0) return size;
        const bool in_order = is_full || plan_.ascending;
        const SampleId own = plan_.place_of.empty() ? product_.own[row]
                                                    : product_.reference.sample_at[product_.own[row]];
        const auto value = static_cast<Value>(product_.diagonal[row]);
        require_finite<Value>(is_finite(value));
        // Sorted entries stay sorted. Otherwise the last entry fills the gap.
        const Offset at = in_order ? std::lower_bound(places, places + size, own) - places
                                   : std::find(places, places + size, own) - places;
        const bool is_there = at < size && places[at] == own;
        if (value == Value{0}) {
            if (!is_there) return size;
            --size;
            if (in_order) {
                std::copy(places + at + 1, places + size + 1, places + at);
                std::copy(values + at + 1, values + size + 1, values + at);
            } else {
                places[at] = places[size];
                values[at] = values[size];
            }
            return size;
        }
        if (!is_there) {
            std::copy_backward(places + at, places + size, places + size + 1);
            std::copy_backward(values + at, values + size, values + size + 1);
            ++size;
        }
        places[at] = own;
        values[at] = value;
        return size;
    }

    const Product& product_;
    const RowPlan& plan_;
    std::span<const Weight> member_weights_;
    Sums<Slot> sums_;
    RowEntries entries_, next_entries_;
    std::vector<Visit> visits_;
    std::vector<const Word*> maps_;
    std::vector<double> map_weights_;
    BitmapSums bitmap_sums_{0};
    FullRowAccumulator<std::uint16_t> shared_{0};
};

template <class Value>
std::unique_ptr<RowComputer<Value>> make_row_computer(const Product& product, const RowPlan& plan) {
    using Made = std::unique_ptr<RowComputer<Value>>;
    const auto make = [&]<class Slot, class Weight>(Slot, std::span<const Weight> weights) -> Made {
        if (plan.full) {
            return std::make_unique<RowComputerOf<Value, Slot, Weight, FullRowAccumulator>>(
                product, plan, weights);
        }
        return std::make_unique<RowComputerOf<Value, Slot, Weight, RowAccumulator>>(product, plan,
                                                                                    weights);
    };
    const auto& weights = product.reference.weights;
    const std::span<const NoWeights> none;
    if (product.counts()) {
        if (product.query.incidence.longest <= std::numeric_limits<std::uint16_t>::max()) {
            return make(std::uint16_t{}, none);
        }
    }
    if (!weights.counts.empty()) return make(double{}, weights.counts);
    if (!weights.floats.empty()) return make(double{}, weights.floats);
    if (!weights.doubles.empty()) return make(double{}, weights.doubles);
    return make(double{}, none);
}

// Blocks of about this many collisions take milliseconds. They are short enough to balance the load,
// and long enough to make scheduling costs negligible.
constexpr Offset collisions_per_block = 1 << 20;

inline Offset choose_block_size(const Product& product) {
    const Offset per_row = std::max<Offset>(1, mean_collisions(product));
    return std::clamp<Offset>(collisions_per_block / per_row, 1, 4096);
}

}  // namespace detail

// Calls reducer(row, places, values) for every row. `make_reducer()` is called once per thread.
template <class Value, class MakeReducer>
void for_each_row(const Product& product, Loop loop, int n_threads, const Monitor& monitor,
                  MakeReducer&& make_reducer) {
    const auto plan = RowPlan::of(product, loop, false, n_threads, monitor);
    auto make_worker = [&] {
        return [&, reducer = make_reducer(), computer = detail::make_row_computer<Value>(product, plan),
                buffer = RowBuffer<Value>()](Offset begin, Offset end, const auto& poll) mutable {
            const auto& order = product.row_order;
            for (Offset i = begin; i < end; ++i) {
                poll();
                if (i + 1 < end) computer->prepare(order[i + 1], order[std::min(i + 2, end - 1)]);
                buffer.used = 0;
                const auto size = static_cast<std::size_t>(computer->compute(order[i], buffer));
                reducer(order[i], std::span<const SampleId>(buffer.places.data(), size),
                        std::span<const Value>(buffer.values.data(), size));
            }
        };
    };
    for_each_block(static_cast<Offset>(product.row_order.size()), detail::choose_block_size(product),
                   n_threads, monitor, make_worker);
}

}  // namespace leafkernel
