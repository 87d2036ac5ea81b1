// Counts the leaf collisions of each segment. They bound the entries of the segment.
#include "views.cuh"

// One warp per segment. `at_most` is the number of samples of the chunk, or larger to count all
// collisions. `more` is added to each bound.
extern "C" __global__ void count_collisions(
    const Column* columns, const Offset* row_offsets, int n_groups, const RowId* rows, Offset n_rows,
    const ListOffset* list_offsets, Offset n_leaves, int n_parts, int parts_per_chunk, int n_chunks,
    Offset at_most, int more, Offset* counts) {
    const QueryRows query{columns, row_offsets, n_groups};
    const int lane = threadIdx.x % lanes_of_warp;
    for (Offset segment = this_warp(); segment < n_rows * n_chunks; segment += all_warps()) {
        const Offset row = rows ? rows[segment / n_chunks] : segment / n_chunks;
        const int chunk = segment % n_chunks;
        const int first = chunk * parts_per_chunk, last = min(first + parts_per_chunk, n_parts);
        Offset count = 0;
        for (Offset e = query.begin(row) + lane; e < query.end(row); e += lanes_of_warp) {
            const Offset leaf = columns[e];
            if (leaf < 0) continue;
            for (int part = first; part < last; ++part) {
                const ListOffset* at = list_offsets + part * n_leaves + leaf;
                count += at[1] - at[0];
            }
        }
        for (int step = lanes_of_warp / 2; step > 0; step /= 2) {
            count += __shfl_down_sync(all_lanes, count, step);
        }
        if (lane == 0) counts[segment] = min(count + more, at_most);
    }
}
