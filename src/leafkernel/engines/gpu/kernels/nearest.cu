// Finds the k largest entries of each row, given its segments. One warp per row.
//
// The order is that of the other engines: larger values first, ties by sample, the row's own sample left
// out. Samples without an entry have proximity zero. They come after positive and before negative values
// and are ordered by sample.
//
// There are two ways. For small k, a warp keeps the best entries in shared memory and compares each new
// one with the k-th best so far. Otherwise, and for rows with fewer than k positive entries, it finds the
// k-th best value digit by digit, from histograms.
#include "views.cuh"

#if VALUE_BYTES == 4
typedef unsigned int Key;
__device__ inline Key bits_of(float value) { return __float_as_uint(value); }
#else
typedef unsigned long long Key;
__device__ inline Key bits_of(double value) { return (Key)__double_as_longlong(value); }
#endif

constexpr int key_bits = 8 * sizeof(Key), digit_bits = 8, n_digits = 1 << digit_bits;
constexpr Key sign_bit = (Key)1 << (key_bits - 1);

// Maps values to unsigned integers of the same order.
__device__ inline Key key_of(Value value) {
    const Key bits = bits_of(value);
    return bits & sign_bit ? ~bits : bits | sign_bit;
}

struct RowOfSegments {
    const Offset* starts;
    const SampleId* sizes;
    const SampleId* columns;
    const Value* values;
    int n_chunks;
    SampleId own;
    bool by_magnitude;

    __device__ Value rank_of(Value value) const { return by_magnitude ? fabs(value) : value; }

    // Calls visit(entry, exists) for all entries in order. All lanes take part in every step. The row's own
    // sample is among them if `with_own`.
    template <class Visit>
    __device__ void each(const Visit& visit, bool with_own = false) const {
        const int lane = threadIdx.x % lanes_of_warp;
        for (int chunk = 0; chunk < n_chunks; ++chunk) {
            const SampleId size = sizes[chunk];
            const Offset start = starts[chunk];
            for (SampleId e = 0; e < size; e += lanes_of_warp) {
                const bool exists = e + lane < size;
                visit(start + e + lane, exists && (with_own || columns[start + e + lane] != own));
            }
        }
    }
};

// The best entries so far, in shared memory. There is room for k and one more warp of entries.
struct Best {
    Value* values;
    SampleId* samples;
    SampleId k;
    SampleId size;
    Value least;  // rank of the k-th best; later entries must exceed it

    // Sorts the entries and keeps the k best. Entries of equal rank are in the order of samples.
    __device__ void keep_best(const RowOfSegments& row) {
        const int lane = threadIdx.x % lanes_of_warp;
        constexpr int most_per_lane = 8;  // see the limit on k in __init__.py
        Value value[most_per_lane];
        SampleId sample[most_per_lane], position[most_per_lane];
        __syncwarp();
#pragma unroll
        for (int i = 0; i < most_per_lane; ++i) {
            const int mine = i * lanes_of_warp + lane;
            if (mine >= size) continue;
            value[i] = values[mine];
            sample[i] = samples[mine];
            position[i] = 0;
            const Value rank = row.rank_of(value[i]);
            for (int other = 0; other < size; ++other) {
                const Value theirs = row.rank_of(values[other]);
                position[i] += theirs > rank || (theirs == rank && samples[other] < sample[i]);
            }
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < most_per_lane; ++i) {
            if (i * lanes_of_warp + lane < size && position[i] < k) {
                values[position[i]] = value[i];
                samples[position[i]] = sample[i];
            }
        }
        __syncwarp();
        size = min(size, k);
        if (size == k) least = row.rank_of(values[k - 1]);
    }

    __device__ void offer(const RowOfSegments& row, Offset entry, bool exists) {
        const Value value = exists ? row.values[entry] : (Value)0;
        bool is_better = exists && row.rank_of(value) > least;
        if (!__any_sync(all_lanes, is_better)) return;
        // Few entries get here, so few columns are read.
        const SampleId sample = is_better ? row.columns[entry] : row.own;
        is_better &= sample != row.own;
        const Word better = __ballot_sync(all_lanes, is_better);
        if (is_better) {
            const int before = __popc(better & ((1u << threadIdx.x % lanes_of_warp) - 1));
            values[size + before] = value;
            samples[size + before] = sample;
        }
        size += __popc(better);
        if (size > k + room - lanes_of_warp) keep_best(row);
    }

    static constexpr int room = 2 * lanes_of_warp;
};

// Appends the `wanted` largest of the entries that are positive (or negative, if `below`) to the output,
// in the order of samples. There must be that many.
__device__ inline SampleId append_largest(const RowOfSegments& row, bool below, SampleId wanted,
                                          SampleId n_found, SampleId* histogram, Value* values,
                                          Offset* samples) {
    if (wanted <= 0) return n_found;
    const int lane = threadIdx.x % lanes_of_warp;
    const auto belongs = [&](Value rank) { return below ? rank < (Value)0 : rank > (Value)0; };
    Key prefix = 0, known = 0;  // the leading digits of the last key to take
    SampleId left = wanted;
    for (int shift = key_bits - digit_bits; shift >= 0; shift -= digit_bits) {
        for (int d = lane; d < n_digits; d += lanes_of_warp) histogram[d] = 0;
        __syncwarp();
        row.each([&](Offset e, bool exists) {
            const Value rank = exists ? row.rank_of(row.values[e]) : (Value)0;
            if (!belongs(rank)) return;
            const Key key = key_of(rank);
            if ((key & known) == prefix) atomicAdd(histogram + (key >> shift & (n_digits - 1)), 1);
        });
        __syncwarp();
        // Each lane adds up eight digits, from the largest down.
        constexpr int per_lane = n_digits / lanes_of_warp;
        int of_lane = 0, total = 0;
        for (int d = 0; d < per_lane; ++d) of_lane += histogram[n_digits - 1 - lane * per_lane - d];
        const int above = sum_of_lower_lanes(of_lane, total);
        const Word reached = __ballot_sync(all_lanes, above + of_lane >= left);
        const int which = __ffs(reached) - 1;
        int digit = 0, before = above;
        if (lane == which) {
            for (int d = 0; d < per_lane; ++d) {
                digit = n_digits - 1 - lane * per_lane - d;
                if (before + histogram[digit] >= left) break;
                before += histogram[digit];
            }
        }
        digit = __shfl_sync(all_lanes, digit, which);
        left -= __shfl_sync(all_lanes, before, which);
        prefix |= (Key)digit << shift;
        known |= (Key)(n_digits - 1) << shift;
        __syncwarp();
    }
    // Take all larger keys, and the first `left` of those that equal the last one.
    row.each([&](Offset e, bool exists) {
        const Value rank = exists ? row.rank_of(row.values[e]) : (Value)0;
        const Key key = key_of(rank);
        const bool is_candidate = exists && belongs(rank);
        int n_equal = 0, n_taken = 0;
        const int equal_before = sum_of_lower_lanes(is_candidate && key == prefix, n_equal);
        const bool takes = is_candidate && (key > prefix || (key == prefix && equal_before < left));
        const int place = n_found + sum_of_lower_lanes(takes, n_taken);
        if (takes) {
            values[place] = row.values[e];
            samples[place] = row.columns[e];
        }
        left = max(left - n_equal, 0);
        n_found += n_taken;
    });
    return n_found;
}

// Appends samples of proximity zero, in order.
__device__ inline SampleId append_zeros(const RowOfSegments& row, SampleId n_samples, SampleId wanted,
                                        SampleId n_found, Value* values, Offset* samples) {
    if (threadIdx.x % lanes_of_warp == 0) {
        SampleId sample = 0, n = n_found;
        const auto fill_until = [&](SampleId end) {
            for (; sample < end && n < wanted; ++sample) {
                if (sample == row.own) continue;
                values[n] = (Value)0;
                samples[n++] = sample;
            }
            sample = max(sample, end + 1);
        };
        for (int chunk = 0; chunk < row.n_chunks && n < wanted; ++chunk) {
            for (SampleId e = 0; e < row.sizes[chunk] && n < wanted; ++e) {
                fill_until(row.columns[row.starts[chunk] + e]);
            }
        }
        if (n < wanted) fill_until(n_samples);
        n_found = n;
    }
    __syncwarp();
    return __shfl_sync(all_lanes, n_found, 0);
}

// `few`: whether k is small enough for Best. If not, each row is returned in the order of samples, except
// that negative values come after zeros and zeros after positive values.
extern "C" __global__ void nearest(Offset n_rows, int n_chunks, const RowId* rows, const Offset* starts,
                                   const SampleId* sizes, const SampleId* columns, const Value* values,
                                   const SampleId* own, int by_magnitude, SampleId n_samples, SampleId k,
                                   int few, Value* out_values, Offset* out_samples) {
    extern __shared__ Key shared_keys[];
    const int lane = threadIdx.x % lanes_of_warp, warp = threadIdx.x / lanes_of_warp;
    const int per_warp = few ? max((k + Best::room) * 2, n_digits) : n_digits;
    SampleId* histogram = (SampleId*)(shared_keys + warp * per_warp);
    for (Offset place = this_warp(); place < n_rows; place += all_warps()) {
        Value* value_to = out_values + (Offset)rows[place] * k;
        Offset* sample_to = out_samples + (Offset)rows[place] * k;
        const RowOfSegments row{starts + place * n_chunks, sizes + place * n_chunks, columns, values,
                                n_chunks, own ? own[rows[place]] : -1, by_magnitude != 0};
        Best best{(Value*)histogram, (SampleId*)((Value*)histogram + k + Best::room), k, 0, (Value)0};
        if (few) {
            row.each([&](Offset e, bool exists) { best.offer(row, e, exists); }, true);
            best.keep_best(row);
            if (best.size == k) {
                for (SampleId i = lane; i < k; i += lanes_of_warp) {
                    value_to[i] = best.values[i];
                    sample_to[i] = best.samples[i];
                }
                __syncwarp();
                continue;
            }
        }
        __syncwarp();
        int n_above = 0, n_entries = 0;
        row.each([&](Offset e, bool exists) {
            n_above += exists && row.rank_of(row.values[e]) > (Value)0;
            n_entries += exists;
        });
        n_above = __reduce_add_sync(all_lanes, n_above);
        n_entries = __reduce_add_sync(all_lanes, n_entries);
        SampleId n = append_largest(row, false, min(k, n_above), 0, histogram, value_to, sample_to);
        const SampleId n_zeros = n_samples - (row.own >= 0) - n_entries;
        const SampleId with_zeros = min(k, n + n_zeros);
        if (n < with_zeros) n = append_zeros(row, n_samples, with_zeros, n, value_to, sample_to);
        if (n < k) n = append_largest(row, true, k - n, n, histogram, value_to, sample_to);
        __syncwarp();
        if (!few) continue;
        // Fewer entries than k: a lane moves each one to its position, in place.
        if (lane == 0) {
            for (SampleId i = 1; i < k; ++i) {
                const Value value = value_to[i];
                const Offset sample = sample_to[i];
                SampleId at = i;
                for (; at > 0 && row.rank_of(value_to[at - 1]) < row.rank_of(value); --at) {
                    value_to[at] = value_to[at - 1];
                    sample_to[at] = sample_to[at - 1];
                }
                value_to[at] = value;
                sample_to[at] = sample;
            }
        }
        __syncwarp();
    }
}
