// Computes the values of pending segments if rows have any number of leaves. The leaves of the row and
// of the sample are both ascending and are merged. Slower than pull_values.cu.
#include "views.cuh"

extern "C" __global__ void pull_ragged(
    const Column* columns, const Offset* row_offsets, int n_groups, const QueryWeight* query_weights,
    const double* by_leaf, const RowId* rows, Offset n_rows, const Offset* reference_offsets,
    const Column* reference_columns, const MemberWeight* member_weights, const unsigned char* is_pending,
    int n_chunks, const double* by_row, const double* by_sample, double scale, const OobWord* query_oob,
    const OobWord* reference_oob, int oob_words, const SampleId* own, const double* diagonal, int* status,
    const Offset* starts, SampleId* sizes, SampleId* out_columns, Value* out_values) {
    const QueryRows query{columns, row_offsets, n_groups};
    const Finish finish{by_row, by_sample, scale, query_oob, reference_oob, oob_words, own, diagonal, status};
    const Segments segments{starts, sizes, out_columns, out_values, n_chunks};
    for (Offset item = blockIdx.x; item < n_rows * n_chunks; item += gridDim.x) {
        const Offset place = item / n_chunks, row = rows[place];
        const Offset segment = segments.of(place, item % n_chunks);
        if (!is_pending[segment]) continue;
        const double factor = finish.factor(row);
        const SampleId self = diagonal ? finish.own_of(row) : -1;
        const Offset start = starts[segment], end = start + sizes[segment];
        for (Offset e = start + threadIdx.x; e < end; e += blockDim.x) {
            const SampleId sample = out_columns[e];
            Offset q = query.begin(row), r = reference_offsets[sample];
            const Offset q_end = query.end(row), r_end = reference_offsets[sample + 1];
            double sum = 0.0;
            while (q < q_end && r < r_end) {
                const Column mine = columns[q], theirs = reference_columns[r];
                if (mine == theirs) {
#if QUERY_WEIGHTS
                    const double weight = query_weights[q];
#else
                    const double weight = 1.0;
#endif
                    const double both = weight * (by_leaf ? by_leaf[mine] : 1.0);
#if MEMBER_WEIGHTS
                    sum += both * (double)member_weights[r];
#else
                    sum += both;
#endif
                }
                q += mine <= theirs;  // a missing entry is -1 and comes before every leaf
                r += theirs <= mine;
            }
            out_values[e] = sample == self ? finish.checked(diagonal[row])
                                           : finish.value(factor, row, sample, sum);
        }
    }
}
