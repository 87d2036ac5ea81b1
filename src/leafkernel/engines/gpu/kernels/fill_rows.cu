// Finds the entries of rows of P, in ascending order of samples, and their values.
//
// A thread block handles one segment at a time: one row in one chunk of the samples. Shared memory has a
// flag for each sample of the chunk, which says whether it shares a leaf with the row. A few lanes walk the
// list of a leaf in a part, eight members each at a time. Longer lists are cut into pieces, so that all lanes
// have work. Then the block reads the flags in order and writes the entries.
//
// If sums are counts, shared memory also has a counter for each sample.
//
// Sums of weights must be added in the order of the trees. The block therefore walks the lists again and
// sets a bit for each entry and tree. Then a thread per entry adds the weights of its trees in order. If
// the bits of a segment do not fit in shared memory, it stays pending: see pull_values.cu.
//
// Finding the members of a leaf takes three loads that depend on each other. They are issued while the
// block works on earlier segments.
//
// COUNTER_BITS: 8 or 16 bits per counter, or 0 if sums are not counts. N_THREADS: threads of a block.
// BLOCKS_PER_UNIT: blocks that run on a multiprocessor at the same time. LANES_OF_LEAF: 1, 2, 4, 8 or 16.
#include "views.cuh"

constexpr int n_threads = N_THREADS;
constexpr int n_warps = n_threads / lanes_of_warp;
constexpr int lanes_of_leaf = LANES_OF_LEAF;
constexpr int n_teams = n_threads / lanes_of_leaf;  // teams of lanes, each on one list
constexpr int members_per_vector = sizeof(uint4) / sizeof(Member);
constexpr int vectors_per_piece = lanes_of_leaf;
constexpr int most_pieces = 64;    // leaves with more pieces are walked by the whole block
constexpr int most_waiting = 512;  // pieces that wait for free lanes
constexpr int most_large = 64;     // leaves that wait for the whole block

// A piece of a list that waits: the entry of the row, the part and the piece, in one word.
constexpr int piece_bits = 6, part_bits = 8, most_entries = 1 << (32 - piece_bits - part_bits);

#if COUNTER_BITS == 8
typedef unsigned char Counter;
#elif COUNTER_BITS == 16
typedef unsigned short Counter;
#endif

struct Chunk {
    Word* is_used;
    Word* counters;

#if COUNTER_BITS
    static constexpr int counters_per_word = 32 / COUNTER_BITS;
    static constexpr Word counter_mask = (1u << COUNTER_BITS) - 1;

    __device__ static int shift_of(int sample) { return COUNTER_BITS * (sample % counters_per_word); }

    __device__ Counter& counter(int sample) const { return ((Counter*)counters)[sample]; }
#endif

    __device__ void add(int sample) const {
        Word* flags = is_used + sample / 32;
        const Word bit = 1u << sample % 32;
#if COUNTER_BITS
        const int shift = shift_of(sample);
        const Word before = atomicAdd(counters + sample / counters_per_word, 1u << shift);
        if ((before >> shift & counter_mask) == 0) atomicOr(flags, bit);
#else
        if ((*(volatile Word*)flags & bit) == 0) atomicOr(flags, bit);
#endif
    }
};

// The members [begin, end) of a leaf in a part. They are read in vectors, which may start before and end
// after the list.
struct List {
    ListOffset begin, end;

    __device__ ListOffset first_vector() const { return begin / members_per_vector; }
    __device__ int n_pieces() const {
        constexpr int per_piece = vectors_per_piece * members_per_vector;
        return (end - first_vector() * members_per_vector + per_piece - 1) / per_piece;
    }

    template <class Visit>
    __device__ void each_of(const uint4* vectors, ListOffset vector, const Visit& visit) const {
        const ListOffset base = vector * members_per_vector;
        if (base >= end) return;
        const int low = begin > base ? (int)(begin - base) : 0;
        const int high = end - base < members_per_vector ? (int)(end - base) : members_per_vector;
        const uint4 found = vectors[vector];
        const Word words[4] = {found.x, found.y, found.z, found.w};
#pragma unroll
        for (int i = 0; i < members_per_vector; ++i) {
            if (i >= low && i < high) visit(words[i / 2] >> 16 * (i % 2) & 0xffffu);
        }
    }
};

// One segment after another, as a thread block handles them. All rows of a chunk come before those of
// the next, so that blocks that run at the same time share its lists.
struct Cursor {
    RowId place;
    int chunk;

    __device__ Cursor next(RowId n_rows) const {
        Cursor other{place + (RowId)gridDim.x, chunk};
        while (other.place >= n_rows) {
            other.place -= n_rows;
            ++other.chunk;
        }
        return other;
    }
};

// Lists of the leaves of query rows.
struct RowLists {
    QueryRows query;
    const ListOffset* list_offsets;
    const uint4* members;
    Offset n_leaves;
    int part_size;

    __device__ int size_of(RowId row) const {
        return query.offsets ? (int)(query.offsets[row + 1] - query.offsets[row]) : query.n_groups;
    }
    __device__ Column leaf_of(RowId row, int entry) const {
        return row >= 0 && entry < size_of(row) ? query.columns[query.begin(row) + entry] : (Column)-1;
    }
    __device__ List list_of(Column leaf, int part) const {
        if (leaf < 0) return {0, 0};
        const ListOffset* from = list_offsets + part * n_leaves + leaf;
        return {from[0], from[1]};
    }
};

// Lists that wait for free lanes, in shared memory. Empty before and after each walk.
struct Queue {
    Word waiting[most_waiting];
    Word large[most_large];
    int n_waiting, n_large;
};

// Calls visit(sample of the chunk, entry) for all members of the lists of a row. `list` is the first list
// of the team. All threads of the block take part, and wait for each other at the end.
template <class Visit>
__device__ inline void walk(const RowLists& lists, Queue& queue, RowId row, List list, int first_part,
                            int parts, const Visit& visit) {
    const int team = threadIdx.x / lanes_of_leaf, lane_of_leaf = threadIdx.x % lanes_of_leaf;
    const int n_entries = lists.size_of(row);
    const auto each_of = [&](const List& one, ListOffset vector, int entry, int part) {
        const int first = part * lists.part_size;
        one.each_of(lists.members, vector, [&](int member) { visit(first + member, entry); });
    };
    for (int part = 0; part < parts; ++part) {
        for (int entry = team; entry < n_entries; entry += n_teams) {
            if (part != 0 || entry != team) {
                list = lists.list_of(lists.leaf_of(row, entry), first_part + part);
            }
            if (list.begin >= list.end) continue;
            const int n_pieces = list.n_pieces();
            int n_here = n_pieces;
            if (n_pieces > 1 && n_entries <= most_entries) {
                constexpr Word first_lanes = (1u << lanes_of_leaf) - 1;
                const Word lanes = first_lanes << (threadIdx.x % lanes_of_warp & ~(lanes_of_leaf - 1));
                const Word name = ((Word)entry << part_bits | part) << piece_bits;
                const bool is_large = n_pieces > most_pieces;
                int place = 0;
                if (lane_of_leaf == 0) {
                    place = is_large ? atomicAdd(&queue.n_large, 1)
                                     : atomicAdd(&queue.n_waiting, n_pieces - 1);
                }
                place = __shfl_sync(lanes, place, 0, lanes_of_leaf);
                if (is_large && place < most_large) {
                    if (lane_of_leaf == 0) queue.large[place] = name;
                    n_here = 0;
                } else if (!is_large) {
                    // Pieces for which no place is left are walked here.
                    const int n_left = min(n_pieces - 1, max(most_waiting - place, 0));
                    n_here = n_pieces - n_left;
                    for (int p = lane_of_leaf; p < n_left; p += lanes_of_leaf) {
                        queue.waiting[place + p] = name | (n_here + p);
                    }
                }
            }
            for (int p = 0; p < n_here; ++p) {
                each_of(list, list.first_vector() + p * vectors_per_piece + lane_of_leaf, entry, part);
            }
        }
    }
    __syncthreads();
    const int n_waiting = min(queue.n_waiting, most_waiting), n_large = min(queue.n_large, most_large);
    constexpr Word part_mask = (1u << part_bits) - 1, piece_mask = (1u << piece_bits) - 1;
    for (int w = team; w < n_waiting; w += n_teams) {
        const Word name = queue.waiting[w];
        const int part = name >> piece_bits & part_mask, entry = name >> (piece_bits + part_bits);
        const List one = lists.list_of(lists.leaf_of(row, entry), first_part + part);
        const ListOffset first = one.first_vector() + (name & piece_mask) * vectors_per_piece;
        each_of(one, first + lane_of_leaf, entry, part);
    }
    for (int v = 0; v < n_large; ++v) {
        const Word name = queue.large[v];
        const int part = name >> piece_bits & part_mask, entry = name >> (piece_bits + part_bits);
        const List one = lists.list_of(lists.leaf_of(row, entry), first_part + part);
        const ListOffset last = (one.end + members_per_vector - 1) / members_per_vector;
        for (ListOffset vector = one.first_vector() + threadIdx.x; vector < last; vector += n_threads) {
            each_of(one, vector, entry, part);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) queue.n_waiting = queue.n_large = 0;
}

extern "C" __global__ void __launch_bounds__(n_threads, BLOCKS_PER_UNIT) fill_rows(
    const Column* columns, const Offset* row_offsets, int n_groups, const QueryWeight* query_weights,
    const double* by_leaf, const RowId* rows, RowId n_rows, const ListOffset* list_offsets,
    const uint4* members, const MemberWeight* weights_of_samples, Offset n_leaves, int n_parts,
    int parts_per_chunk, int part_size, int most_mask_words, unsigned char* is_pending, int n_chunks,
    const double* by_row, const double* by_sample, double scale, const OobWord* query_oob,
    const OobWord* reference_oob, int oob_words, const SampleId* own, const double* diagonal, int* status,
    const Offset* starts, SampleId* sizes, SampleId* out_columns, Value* out_values) {
    extern __shared__ uint4 shared_vectors[];
    __shared__ int used_by_warp[n_warps];
    __shared__ Queue queue;
    const RowLists lists{{columns, row_offsets, n_groups}, list_offsets, members, n_leaves, part_size};
    const int n_vectors = (parts_per_chunk * part_size + 127) / 128, n_words = 4 * n_vectors;
    Word* is_used = (Word*)shared_vectors;
    const Chunk sums{is_used, is_used + n_words};
    const int warp = threadIdx.x / lanes_of_warp, lane = threadIdx.x % lanes_of_warp;
    const int team = threadIdx.x / lanes_of_leaf;
#if !COUNTER_BITS
    double* weights = (double*)(is_used + n_words);            // of the entries of the row
    int* entries_before = (int*)(weights + (most_mask_words ? n_groups : 0));  // of each vector of flags
    Word* masks = (Word*)(entries_before + n_vectors);         // a bit for each entry and tree
    const int mask_words = (n_groups + 31) / 32;
#endif

    for (int w = threadIdx.x; w < n_words + n_words * COUNTER_BITS; w += n_threads) is_used[w] = 0;
    if (threadIdx.x == 0) queue.n_waiting = queue.n_large = 0;
    __syncthreads();

    const auto row_at = [&](Cursor at) -> RowId { return at.chunk < n_chunks ? rows[at.place] : -1; };
    // The first list of this team is loaded ahead, in three steps for three later segments.
    Cursor at{(RowId)blockIdx.x, 0};
    if (at.place >= n_rows) return;
    Cursor at_next = at.next(n_rows), at_third = at_next.next(n_rows).next(n_rows);
    RowId row = rows[at.place], row_next = row_at(at_next), row_second = row_at(at_next.next(n_rows));
    List list = lists.list_of(lists.leaf_of(row, team), 0);
    Column leaf_next = lists.leaf_of(row_next, team);

    while (at.chunk < n_chunks) {
        const List list_next = lists.list_of(leaf_next, at_next.chunk * parts_per_chunk);
        const Column leaf_second = lists.leaf_of(row_second, team);
        const RowId row_third = row_at(at_third);
        const int first_part = at.chunk * parts_per_chunk;
        const int parts = min(parts_per_chunk, n_parts - first_part);
        walk(lists, queue, row, list, first_part, parts, [&](int sample, int) { sums.add(sample); });

        const SampleId first_sample = first_part * part_size;
        const int self = own ? own[row] - first_sample : -1;
        const bool sets_own = diagonal && self >= 0 && self < parts * part_size;
        if (sets_own) {
            if (threadIdx.x == 0) {
                const Word bit = 1u << self % 32;
                const bool is_there = (Value)diagonal[row] != (Value)0;
                is_used[self / 32] = is_there ? is_used[self / 32] | bit : is_used[self / 32] & ~bit;
#if COUNTER_BITS
                if (!is_there) sums.counter(self) = 0;
#endif
            }
            __syncthreads();
        }

        // A lane reads 128 flags at a time.
        const int per_warp = ((n_vectors + n_warps - 1) / n_warps + 31) / 32 * 32;
        const int from = warp * per_warp, to = min(from + per_warp, n_vectors);
        int n_used = 0;
        for (int v = from + lane; v < to; v += lanes_of_warp) {
            const uint4 flags = shared_vectors[v];
            n_used += __popc(flags.x) + __popc(flags.y) + __popc(flags.z) + __popc(flags.w);
        }
        n_used = __reduce_add_sync(all_lanes, n_used);
        if (lane == 0) used_by_warp[warp] = n_used;
        __syncthreads();

        const Offset segment = (Offset)at.place * n_chunks + at.chunk;
        const int of_warp = lane < n_warps ? used_by_warp[lane] : 0;
        const int size = __reduce_add_sync(all_lanes, of_warp);
        if (threadIdx.x == 0) sizes[segment] = size;
        SampleId* to_columns = out_columns + starts[segment];
        Value* to_values = out_values + starts[segment];
        int next = __reduce_add_sync(all_lanes, lane < warp ? of_warp : 0);
        for (int v = from; v < to; v += lanes_of_warp) {
            const int mine = v + lane;
            const uint4 flags = mine < to ? shared_vectors[mine] : uint4{0, 0, 0, 0};
            const Word words[4] = {flags.x, flags.y, flags.z, flags.w};
            int n_here = 0;
            const int n_mine = __popc(flags.x) + __popc(flags.y) + __popc(flags.z) + __popc(flags.w);
            int entry = next + sum_of_lower_lanes(n_mine, n_here);
            next += n_here;
            if (n_mine == 0) continue;
#if COUNTER_BITS
            shared_vectors[mine] = uint4{0, 0, 0, 0};
#else
            entries_before[mine] = entry;
#endif
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                const SampleId first = first_sample + mine * 128 + w * 32 - 1;
                for (Word left = words[w]; left != 0; left &= left - 1) {
                    to_columns[entry++] = first + __ffs(left);
                }
            }
        }
        const Finish finish{by_row, by_sample, scale, query_oob, reference_oob, oob_words, own, diagonal, status};
#if COUNTER_BITS
        __syncthreads();
        // Now every lane has the same number of entries.
        const double factor = finish.factor(row);
        for (int e = threadIdx.x; e < size; e += n_threads) {
            const SampleId j = to_columns[e];
            Counter& counter = sums.counter(j - first_sample);
            to_values[e] = sets_own && j - first_sample == self ? finish.checked(diagonal[row])
                                                                : finish.value(factor, row, j, counter);
            counter = 0;
        }
#else
        const bool fits = (Offset)size * mask_words <= most_mask_words;
        if (threadIdx.x == 0) is_pending[segment] = !fits;
        if (!fits && threadIdx.x == 0) atomicOr(status, found_pending);
        if (fits && size > 0) {
            for (int w = threadIdx.x; w < size * mask_words; w += n_threads) masks[w] = 0;
            for (int t = threadIdx.x; t < n_groups; t += n_threads) {
                const Column leaf = lists.leaf_of(row, t);
                if (leaf < 0) continue;
#if QUERY_WEIGHTS
                const double q = query_weights[(Offset)row * n_groups + t];
#else
                const double q = 1.0;
#endif
                weights[t] = q * (by_leaf ? by_leaf[leaf] : 1.0);
            }
            __syncthreads();
            list = lists.list_of(lists.leaf_of(row, team), first_part);
            walk(lists, queue, row, list, first_part, parts, [&](int sample, int t) {
                const uint4 flags = shared_vectors[sample / 128];
                const int word = sample / 32 % 4;
                int entry = entries_before[sample / 128];
                entry += word > 0 ? __popc(flags.x) : 0;
                entry += word > 1 ? __popc(flags.y) : 0;
                entry += word > 2 ? __popc(flags.z) : 0;
                const Word mine = word == 0 ? flags.x : word == 1 ? flags.y : word == 2 ? flags.z : flags.w;
                if ((mine >> sample % 32 & 1) == 0) return;  // the own sample, if it was removed
                entry += __popc(mine & ((1u << sample % 32) - 1));
                atomicOr(masks + entry * mask_words + t / 32, 1u << t % 32);
            });
            const double factor = finish.factor(row);
            for (int e = threadIdx.x; e < size; e += n_threads) {
                const SampleId j = to_columns[e];
                double sum = 0.0;
                for (int w = 0; w < mask_words; ++w) {
                    for (Word left = masks[e * mask_words + w]; left != 0; left &= left - 1) {
                        const int t = 32 * w + __ffs(left) - 1;
#if MEMBER_WEIGHTS
                        sum += weights[t] * (double)weights_of_samples[(Offset)j * n_groups + t];
#else
                        sum += weights[t];
#endif
                    }
                }
                to_values[e] = sets_own && j - first_sample == self ? finish.checked(diagonal[row])
                                                                    : finish.value(factor, row, j, sum);
            }
        }
        __syncthreads();
        for (int v = threadIdx.x; v < n_vectors; v += n_threads) shared_vectors[v] = uint4{0, 0, 0, 0};
#endif
        __syncthreads();
        at = at_next, at_next = at_next.next(n_rows), at_third = at_third.next(n_rows);
        row = row_next, row_next = row_second, row_second = row_third;
        list = list_next, leaf_next = leaf_second;
    }
}
