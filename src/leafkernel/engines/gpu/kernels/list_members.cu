// Lists the members of each leaf in each part, given the leaves of each sample.
//
// The members of all leaves are counted, the counts are added up outside, and the samples are written to
// their lists. Threads write in any order, so each list is sorted at the end. No sort of all entries is
// needed, and no memory besides the lists and the counts.
#include "views.cuh"

struct Entry {
    Offset sample, leaf;
    int group;
};

// Calls visit(entry) for all entries that count. One thread per entry.
template <class Visit>
__device__ inline void each_entry(const Column* columns, Offset n_samples, int n_groups, const Visit& visit) {
    const Offset n_entries = n_samples * n_groups, step = (Offset)gridDim.x * blockDim.x;
    for (Offset e = (Offset)blockIdx.x * blockDim.x + threadIdx.x; e < n_entries; e += step) {
        const Offset leaf = columns[e];
        if (leaf >= 0) visit(Entry{e / n_groups, leaf, (int)(e % n_groups)});
    }
}

// `counts`: one for each part and leaf, zero before.
extern "C" __global__ void count_members(const Column* columns, Offset n_samples, int n_groups, Offset n_leaves,
                                         int part_size, unsigned int* counts) {
    each_entry(columns, n_samples, n_groups, [&](const Entry& entry) {
        atomicAdd(counts + entry.sample / part_size * n_leaves + entry.leaf, 1u);
    });
}

// `n_left`: the counts, which become zero. A list is filled from its end.
extern "C" __global__ void scatter_members(const Column* columns, Offset n_samples, int n_groups, Offset n_leaves,
                                           int part_size, const ListOffset* list_offsets, unsigned int* n_left,
                                           Member* members) {
    each_entry(columns, n_samples, n_groups, [&](const Entry& entry) {
        const Offset list = entry.sample / part_size * n_leaves + entry.leaf;
        const unsigned int before = atomicAdd(n_left + list, 0u - 1u);
        members[list_offsets[list] + before - 1] = (Member)(entry.sample % part_size);
    });
}

constexpr int short_list = 64;  // sorted by counting smaller members; longer lists through a bitmap
constexpr int words_of_part = 65536 / 32;

// Sorts each list. One warp per list. Shared memory has a bitmap of a part for each warp.
extern "C" __global__ void sort_members(const ListOffset* list_offsets, Offset n_lists, Member* members) {
    extern __shared__ Word shared_words[];
    const int lane = threadIdx.x % lanes_of_warp;
    Word* bitmap = shared_words + threadIdx.x / lanes_of_warp * words_of_part;
    for (int w = lane; w < words_of_part; w += lanes_of_warp) bitmap[w] = 0;
    __syncwarp();
    for (Offset list = this_warp(); list < n_lists; list += all_warps()) {
        const Offset begin = list_offsets[list];
        const int size = (int)(list_offsets[list + 1] - begin);
        Member* mine = members + begin;
        if (size < 2) continue;
        if (size <= short_list) {
            Member found[2] = {0, 0};
            int place[2] = {0, 0};
            for (int i = 0; i < 2; ++i) {
                const int m = lane + i * lanes_of_warp;
                if (m >= size) continue;
                found[i] = mine[m];
                for (int other = 0; other < size; ++other) place[i] += mine[other] < found[i];
            }
            __syncwarp();
            for (int i = 0; i < 2; ++i) {
                if (lane + i * lanes_of_warp < size) mine[place[i]] = found[i];
            }
            __syncwarp();
            continue;
        }
        for (int m = lane; m < size; m += lanes_of_warp) atomicOr(bitmap + mine[m] / 32, 1u << mine[m] % 32);
        __syncwarp();
        int n_before = 0;
        for (int w = lane; w < words_of_part; w += lanes_of_warp) {
            int n_here = 0;
            int to = n_before + sum_of_lower_lanes(__popc(bitmap[w]), n_here);
            for (Word left = bitmap[w]; left != 0; left &= left - 1) {
                mine[to++] = (Member)(w * 32 + __ffs(left) - 1);
            }
            bitmap[w] = 0;
            n_before += n_here;
        }
        __syncwarp();
    }
}

// Copies the weight of each member to its place in the lists. One warp per list.
extern "C" __global__ void gather_weights(const ListOffset* list_offsets, const Member* members, Offset n_leaves,
                                          Offset n_lists, int part_size, const Offset* first_leaf, int n_groups,
                                          const MemberWeight* weights, MemberWeight* member_weights) {
    const int lane = threadIdx.x % lanes_of_warp;
    for (Offset list = this_warp(); list < n_lists; list += all_warps()) {
        const Offset first = list / n_leaves * part_size, end = list_offsets[list + 1];
        const int group = group_of(list % n_leaves, first_leaf, n_groups);
        for (Offset m = list_offsets[list] + lane; m < end; m += lanes_of_warp) {
            member_weights[m] = weights[(first + members[m]) * n_groups + group];
        }
    }
}

// Adds up the number of samples and their weights in each leaf. Weights are counts, so sums are exact in any
// order.
extern "C" __global__ void sum_leaf_weights(const Column* columns, Offset n_samples, int n_groups,
                                            const unsigned char* weights, unsigned long long* sizes,
                                            unsigned long long* sums) {
    each_entry(columns, n_samples, n_groups, [&](const Entry& entry) {
        atomicAdd(sizes + entry.leaf, 1ull);
        const unsigned long long weight = weights ? weights[entry.sample * n_groups + entry.group] : 0;
        if (weight != 0) atomicAdd(sums + entry.leaf, weight);
    });
}
