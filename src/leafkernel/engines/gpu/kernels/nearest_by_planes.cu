// Finds the k nearest samples if leaves are large and sums are counts. Leaves are bitmaps over the samples,
// and a row is the sum of its bitmaps in bit planes, as in cpp/include/leafkernel/nearest_by_planes.hpp.
//
// One thread block per row. A thread adds the bitmaps of 128 samples. The block then has the counts of
// 32,768 samples at a time and merges the k largest of them with the best so far. Samples are processed in
// ascending order, which breaks ties correctly.
//
// N_PLANES: the bits of the largest count.
#include "views.cuh"

constexpr int n_threads = 256;
constexpr int words_per_thread = 4;
constexpr int samples_per_thread = 32 * words_per_thread;
constexpr int samples_per_chunk = n_threads * samples_per_thread;
constexpr int maps_at_once = 8;

// Sets the bits of the members of each leaf. One warp per leaf.
extern "C" __global__ void fill_bitmaps(const ListOffset* list_offsets, const Member* members,
                                        Offset n_leaves, int n_parts, int part_size, Offset words_per_leaf,
                                        Word* bitmaps) {
    const int lane = threadIdx.x % lanes_of_warp;
    for (Offset leaf = this_warp(); leaf < n_leaves; leaf += all_warps()) {
        for (int part = 0; part < n_parts; ++part) {
            const ListOffset* at = list_offsets + part * n_leaves + leaf;
            const Offset end = at[1];
            for (Offset m = at[0] + lane; m < end; m += lanes_of_warp) {
                const Offset sample = (Offset)part * part_size + members[m];
                atomicOr(bitmaps + leaf * words_per_leaf + sample / 32, 1u << sample % 32);
            }
        }
    }
}

// In every bit: a + b + c = 2 carry + sum.
__device__ inline void full_add(Word& carry, Word& sum, Word a, Word b, Word c) {
    carry = (a & b) | ((a | b) & c);
    sum = a ^ b ^ c;
}

// The counts of 32 samples in bit planes.
struct Counts {
    Word planes[N_PLANES];

    __device__ void carry_into(int plane, Word carry) {
#pragma unroll
        for (int p = 0; p < N_PLANES; ++p) {
            if (p < plane) continue;
            const Word both = planes[p] & carry;
            planes[p] ^= carry;
            carry = both;
        }
    }

    // Adds eight bitmaps (Harley-Seal counter). Needs at least four planes.
    __device__ void add(const Word (&maps)[maps_at_once]) {
        Word twos[4], fours[2], eight;
        full_add(twos[0], planes[0], planes[0], maps[0], maps[1]);
        full_add(twos[1], planes[0], planes[0], maps[2], maps[3]);
        full_add(twos[2], planes[0], planes[0], maps[4], maps[5]);
        full_add(twos[3], planes[0], planes[0], maps[6], maps[7]);
        full_add(fours[0], planes[1], planes[1], twos[0], twos[1]);
        full_add(fours[1], planes[1], planes[1], twos[2], twos[3]);
        full_add(eight, planes[2], planes[2], fours[0], fours[1]);
        carry_into(3, eight);
    }

    __device__ int of(int bit) const {
        int count = 0;
#pragma unroll
        for (int p = 0; p < N_PLANES; ++p) count |= (planes[p] >> bit & 1) << p;
        return count;
    }

    // Returns the samples whose count exceeds a number.
    __device__ Word above(int number) const {
        Word equal = ~0u, larger = 0;
#pragma unroll
        for (int p = N_PLANES - 1; p >= 0; --p) {
            if (number >> p & 1) {
                equal &= planes[p];
            } else {
                larger |= equal & planes[p];
                equal &= ~planes[p];
            }
        }
        return larger;
    }
};

// Sums over the threads of a block.
struct BlockSum {
    int* of_warp;  // twice the number of warps; the halves alternate
    int turn;

    // Returns the sum over the lower threads. `total` becomes the sum over all threads.
    __device__ int of_lower(int n, int& total) {
        const int lane = threadIdx.x % lanes_of_warp, warp = threadIdx.x / lanes_of_warp;
        constexpr int n_warps = n_threads / lanes_of_warp;
        int* sums = of_warp + turn * n_warps;
        turn ^= 1;
        int of_this_warp = 0;
        const int lower = sum_of_lower_lanes(n, of_this_warp);
        if (lane == 0) sums[warp] = of_this_warp;
        __syncthreads();
        const int other = lane < n_warps ? sums[lane] : 0;
        total = __reduce_add_sync(all_lanes, other);
        return lower + __reduce_add_sync(all_lanes, lane < warp ? other : 0);
    }

    __device__ int of_all(int n) {
        int total = 0;
        of_lower(n, total);
        return total;
    }
};

extern "C" __global__ void __launch_bounds__(n_threads) nearest_by_planes(
    const Column* columns, int n_groups, const RowId* rows, RowId n_rows, const uint4* bitmaps,
    Offset vectors_per_leaf, Offset n_leaves, SampleId n_samples, const SampleId* own, double scale,
    SampleId k, Value* out_values, Offset* out_samples) {
    extern __shared__ int shared[];
    __shared__ int sums[2 * n_threads / lanes_of_warp];
    __shared__ int n_visits;
    int* leaves = shared;  // rounded up to a multiple of eight
    const int most_visits = (n_groups + maps_at_once - 1) / maps_at_once * maps_at_once;
    int* counts = leaves + most_visits;  // of the best so far, then of the new candidates
    SampleId* samples = counts + 2 * k;
    int* sorted_counts = samples + 2 * k;
    SampleId* sorted_samples = sorted_counts + k;
    BlockSum block{sums, 0};

    for (RowId place = blockIdx.x; place < n_rows; place += gridDim.x) {
        const RowId row = rows[place];
        const SampleId self = own ? own[row] : -1;
        if (threadIdx.x == 0) n_visits = 0;
        __syncthreads();
        for (int g = threadIdx.x; g < n_groups; g += n_threads) {
            const Column leaf = columns[(Offset)row * n_groups + g];
            if (leaf >= 0) leaves[atomicAdd(&n_visits, 1)] = leaf;
        }
        __syncthreads();
        const int n_padded = (n_visits + maps_at_once - 1) / maps_at_once * maps_at_once;
        // An empty bitmap follows those of the leaves.
        for (int v = n_visits + threadIdx.x; v < n_padded; v += n_threads) leaves[v] = n_leaves;
        __syncthreads();

        int n_best = 0, least = -1;
        for (SampleId first = 0; first < n_samples; first += samples_per_chunk) {
            const SampleId mine = first + threadIdx.x * samples_per_thread;
            Counts found[words_per_thread] = {};
            if (mine < n_samples) {
                const Offset vector = mine / samples_per_thread;
                for (int v = 0; v < n_padded; v += maps_at_once) {
                    Word maps[words_per_thread][maps_at_once];
#pragma unroll
                    for (int m = 0; m < maps_at_once; ++m) {
                        const uint4 map = bitmaps[leaves[v + m] * vectors_per_leaf + vector];
                        maps[0][m] = map.x, maps[1][m] = map.y, maps[2][m] = map.z, maps[3][m] = map.w;
                    }
#pragma unroll
                    for (int w = 0; w < words_per_thread; ++w) found[w].add(maps[w]);
                }
            }
            Word equal[words_per_thread], larger[words_per_thread];
            int n_mine = 0;
#pragma unroll
            for (int w = 0; w < words_per_thread; ++w) {
                const SampleId sample = mine + 32 * w;
                const SampleId n_left = n_samples - sample;
                Word valid = n_left >= 32 ? ~0u : n_left > 0 ? (1u << n_left) - 1 : 0;
                if (self >= sample && self < sample + 32) valid &= ~(1u << (self - sample));
                larger[w] = n_best == k ? valid & found[w].above(least) : valid;
                equal[w] = 0;
                n_mine += __popc(larger[w]);
            }
            const int n_candidates = block.of_all(n_mine);
            if (n_candidates == 0) continue;
            int left = 0;  // how many of the candidates that equal the k-th are taken
            if (n_candidates > k) {
                left = k;
#pragma unroll
                for (int w = 0; w < words_per_thread; ++w) equal[w] = larger[w], larger[w] = 0;
#pragma unroll
                for (int p = N_PLANES - 1; p >= 0; --p) {
                    int n_set = 0;
#pragma unroll
                    for (int w = 0; w < words_per_thread; ++w) n_set += __popc(equal[w] & found[w].planes[p]);
                    n_set = block.of_all(n_set);
                    const bool keep = n_set >= left;
                    if (!keep) left -= n_set;
#pragma unroll
                    for (int w = 0; w < words_per_thread; ++w) {
                        if (!keep) larger[w] |= equal[w] & found[w].planes[p];
                        equal[w] &= keep ? found[w].planes[p] : ~found[w].planes[p];
                    }
                }
            }
            int n_larger = 0, n_equal = 0;
#pragma unroll
            for (int w = 0; w < words_per_thread; ++w) {
                n_larger += __popc(larger[w]);
                n_equal += __popc(equal[w]);
            }
            int all_larger = 0, all_equal = 0;
            int to_larger = n_best + block.of_lower(n_larger, all_larger);
            int before_equal = block.of_lower(n_equal, all_equal);
            const int to_equal = n_best + all_larger;
#pragma unroll
            for (int w = 0; w < words_per_thread; ++w) {
                for (Word bits = larger[w]; bits != 0; bits &= bits - 1, ++to_larger) {
                    const int bit = __ffs(bits) - 1;
                    counts[to_larger] = found[w].of(bit);
                    samples[to_larger] = mine + 32 * w + bit;
                }
                for (Word bits = equal[w]; bits != 0 && before_equal < left; bits &= bits - 1, ++before_equal) {
                    const int bit = __ffs(bits) - 1;
                    counts[to_equal + before_equal] = found[w].of(bit);
                    samples[to_equal + before_equal] = mine + 32 * w + bit;
                }
            }
            __syncthreads();
            // Sort by position: the number of entries that come before.
            const int n_all = to_equal + min(left, all_equal);
            for (int i = threadIdx.x; i < n_all; i += n_threads) {
                int position = 0;
                for (int j = 0; j < n_all; ++j) {
                    position += counts[j] > counts[i] || (counts[j] == counts[i] && samples[j] < samples[i]);
                }
                if (position < k) {
                    sorted_counts[position] = counts[i];
                    sorted_samples[position] = samples[i];
                }
            }
            __syncthreads();
            n_best = min(n_all, k);
            for (int i = threadIdx.x; i < n_best; i += n_threads) {
                counts[i] = sorted_counts[i];
                samples[i] = sorted_samples[i];
            }
            least = n_best == k ? sorted_counts[k - 1] : -1;
            __syncthreads();
        }
        for (int i = threadIdx.x; i < k; i += n_threads) {
            out_values[(Offset)row * k + i] = (Value)(scale * (double)counts[i]);
            out_samples[(Offset)row * k + i] = samples[i];
        }
        __syncthreads();
    }
}
