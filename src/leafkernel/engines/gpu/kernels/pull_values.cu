// Computes the values of pending segments, whose entries are known. One thread per entry.
//
// The leaves of each reference sample are stored in a row, one id per tree. The thread compares them with
// those of the query row and adds the weights of equal leaves in the order of the trees. Pending segments
// have many entries, so the samples of neighboring threads are close in memory.
//
// LeafId: the type of a leaf id within its tree. The largest two ids mark missing entries of query and
// reference rows, which never match.
#include "views.cuh"

constexpr LeafId no_query = (LeafId)-2;  // missing entries of reference rows are (LeafId)-1
constexpr int ids_per_vector = sizeof(uint4) / sizeof(LeafId);

extern "C" __global__ void pull_values(
    const Column* columns, int n_groups, const Offset* first_leaf, const QueryWeight* query_weights,
    const double* by_leaf, const RowId* rows, Offset n_rows, const uint4* reference_ids,
    int vectors_per_sample, const MemberWeight* member_weights, const unsigned char* is_pending,
    int n_chunks, const double* by_row,
    const double* by_sample, double scale, const OobWord* query_oob, const OobWord* reference_oob,
    int oob_words, const SampleId* own, const double* diagonal, int* status, const Offset* starts,
    SampleId* sizes, SampleId* out_columns, Value* out_values) {
    extern __shared__ uint4 shared_vectors[];
    LeafId* query_ids = (LeafId*)shared_vectors;
    double* weights = (double*)(shared_vectors + vectors_per_sample);
    const Finish finish{by_row, by_sample, scale, query_oob, reference_oob, oob_words, own, diagonal, status};
    const Segments segments{starts, sizes, out_columns, out_values, n_chunks};

    for (Offset place = blockIdx.x; place < n_rows; place += gridDim.x) {
        const Offset row = rows[place];
        for (int t = threadIdx.x; t < vectors_per_sample * ids_per_vector; t += blockDim.x) {
            const Offset leaf = t < n_groups ? (Offset)columns[row * n_groups + t] : -1;
            query_ids[t] = leaf < 0 ? no_query : (LeafId)(leaf - first_leaf[t]);
            if (leaf >= 0) {
#if QUERY_WEIGHTS
                const double q = query_weights[row * n_groups + t];
#else
                const double q = 1.0;
#endif
                weights[t] = q * (by_leaf ? by_leaf[leaf] : 1.0);
            }
        }
        __syncthreads();
        const double factor = finish.factor(row);
        const SampleId self = diagonal ? finish.own_of(row) : -1;
        for (int chunk = 0; chunk < n_chunks; ++chunk) {
            const Offset segment = segments.of(place, chunk);
            if (!is_pending[segment]) continue;
            const Offset start = starts[segment], end = start + sizes[segment];
            for (Offset e = start + threadIdx.x; e < end; e += blockDim.x) {
                const SampleId sample = out_columns[e];
                const uint4* ids = reference_ids + (Offset)sample * vectors_per_sample;
                double sum = 0.0;
                const auto add = [&](int t) {
#if MEMBER_WEIGHTS
                    sum += weights[t] * (double)member_weights[(Offset)sample * n_groups + t];
#else
                    sum += weights[t];
#endif
                };
                const auto compare = [&](Word mine, Word theirs, int t) {
                    const Word differ = mine ^ theirs;
                    if (sizeof(LeafId) == 4) {
                        if (differ == 0) add(t);
                    } else if ((differ - 0x00010001u & ~differ & 0x80008000u) != 0) {  // a half is zero
                        if ((differ & 0xffffu) == 0) add(t);
                        if (differ >> 16 == 0) add(t + 1);
                    }
                };
#pragma unroll 4
                for (int v = 0; v < vectors_per_sample; ++v) {
                    const uint4 theirs = ids[v], mine = shared_vectors[v];
                    const int t = v * ids_per_vector;
                    constexpr int step = ids_per_vector / 4;
                    compare(mine.x, theirs.x, t);
                    compare(mine.y, theirs.y, t + step);
                    compare(mine.z, theirs.z, t + 2 * step);
                    compare(mine.w, theirs.w, t + 3 * step);
                }
                out_values[e] = sample == self ? finish.checked(diagonal[row])
                                               : finish.value(factor, row, sample, sum);
            }
        }
        __syncthreads();
    }
}
