// Computes Q Wᵀ V through the leaves, without P, as cpp/include/leafkernel/matvec.hpp does:
//
//     u(leaf, :) = g(leaf) Σ over members of  w · b · V(member, :)
//     (P V)(i, :) = scale · a(i) Σ over the leaves of i of  q · u(leaf, :)
//
// One warp per leaf, then one warp per row. Sums are computed in double, in a fixed order.
#include "views.cuh"

__device__ inline double sum_of_lanes(double sum) {
    for (int step = lanes_of_warp / 2; step > 0; step /= 2) sum += __shfl_xor_sync(all_lanes, sum, step);
    return sum;
}

extern "C" __global__ void sum_leaves(const ListOffset* list_offsets, const Member* members,
                                      const MemberWeight* member_weights, Offset n_leaves, int n_parts,
                                      int part_size, const double* by_leaf, const double* by_sample,
                                      const double* values, int n_columns, Value* of_leaf) {
    const int lane = threadIdx.x % lanes_of_warp;
    for (Offset leaf = this_warp(); leaf < n_leaves; leaf += all_warps()) {
        for (int c = 0; c < n_columns; ++c) {
            double sum = 0.0;
            for (int part = 0; part < n_parts; ++part) {
                const ListOffset* at = list_offsets + part * n_leaves + leaf;
                const Offset first = (Offset)part * part_size, end = at[1];
                for (Offset m = at[0] + lane; m < end; m += lanes_of_warp) {
                    const Offset sample = first + members[m];
                    const double b = by_sample ? by_sample[sample] : 1.0;
                    const double value = (Value)(b * values[sample * n_columns + c]);
#if MEMBER_WEIGHTS
                    sum += (double)member_weights[m] * value;
#else
                    sum += value;
#endif
                }
            }
            sum = sum_of_lanes(sum);
            if (lane == 0) of_leaf[leaf * n_columns + c] = (Value)((by_leaf ? by_leaf[leaf] : 1.0) * sum);
        }
    }
}

extern "C" __global__ void sum_rows(const Column* columns, const Offset* row_offsets, int n_groups,
                                    const QueryWeight* query_weights, const double* by_row, double scale,
                                    Offset n_rows, const Value* of_leaf, int n_columns, double* out) {
    const QueryRows query{columns, row_offsets, n_groups};
    const int lane = threadIdx.x % lanes_of_warp;
    for (Offset row = this_warp(); row < n_rows; row += all_warps()) {
        const double factor = scale * (by_row ? by_row[row] : 1.0);
        for (int c = 0; c < n_columns; ++c) {
            double sum = 0.0;
            for (Offset e = query.begin(row) + lane; e < query.end(row); e += lanes_of_warp) {
                const Offset leaf = columns[e];
                if (leaf < 0) continue;
                const double value = of_leaf[leaf * n_columns + c];
#if QUERY_WEIGHTS
                sum += (double)query_weights[e] * value;
#else
                sum += value;
#endif
            }
            sum = sum_of_lanes(sum);
            if (lane == 0) out[row * n_columns + c] = factor * sum;
        }
    }
}
