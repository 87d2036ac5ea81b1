// Moves the entries of segments: without zeros, into a CSR matrix, or into a dense matrix. One warp per
// segment or row, unless noted otherwise.
#include "views.cuh"

// Removes zeros within each segment and keeps the order.
extern "C" __global__ void drop_zeros(Offset n_segments, const Offset* starts, SampleId* sizes,
                                      SampleId* columns, Value* values) {
    const int lane = threadIdx.x % lanes_of_warp;
    for (Offset segment = this_warp(); segment < n_segments; segment += all_warps()) {
        const Offset start = starts[segment];
        const SampleId size = sizes[segment];
        SampleId kept = 0;
        for (SampleId e = 0; e < size; e += lanes_of_warp) {
            const bool is_there = e + lane < size;
            const SampleId column = is_there ? columns[start + e + lane] : 0;
            const Value value = is_there ? values[start + e + lane] : (Value)0;
            int total = 0;
            const int before = sum_of_lower_lanes(value != (Value)0, total);
            __syncwarp();
            if (value != (Value)0) {
                columns[start + kept + before] = column;
                values[start + kept + before] = value;
            }
            __syncwarp();
            kept += total;
        }
        if (lane == 0) sizes[segment] = kept;
    }
}

// Adds up the sizes of the segments of each row, in the order of rows. One thread per row.
extern "C" __global__ void row_sizes(Offset n_rows, int n_chunks, const RowId* rows, Offset first,
                                     const SampleId* sizes, Offset* out) {
    const Offset step = (Offset)gridDim.x * blockDim.x;
    for (Offset place = (Offset)blockIdx.x * blockDim.x + threadIdx.x; place < n_rows; place += step) {
        Offset size = 0;
        for (int chunk = 0; chunk < n_chunks; ++chunk) size += sizes[place * n_chunks + chunk];
        out[rows[place] - first] = size;
    }
}

// Copies segments to their places in a CSR matrix. The segments of place p belong to row rows[p] - first.
extern "C" __global__ void to_csr(Offset n_rows, int n_chunks, const RowId* rows, Offset first,
                                  const Offset* starts, const SampleId* sizes, const SampleId* columns,
                                  const Value* values, const Offset* row_starts, SampleId* out_columns,
                                  Value* out_values) {
    const int lane = threadIdx.x % lanes_of_warp;
    for (Offset place = this_warp(); place < n_rows; place += all_warps()) {
        Offset to = row_starts[rows[place] - first];
        for (int chunk = 0; chunk < n_chunks; ++chunk) {
            const Offset segment = place * n_chunks + chunk, start = starts[segment];
            const SampleId size = sizes[segment];
            for (SampleId e = lane; e < size; e += lanes_of_warp) {
                out_columns[to + e] = columns[start + e];
                out_values[to + e] = values[start + e];
            }
            to += size;
        }
    }
}

extern "C" __global__ void to_dense(Offset n_rows, int n_chunks, const RowId* rows, Offset first,
                                    const Offset* starts, const SampleId* sizes, const SampleId* columns,
                                    const Value* values, Offset n_samples, Value* out) {
    const int lane = threadIdx.x % lanes_of_warp;
    for (Offset place = this_warp(); place < n_rows; place += all_warps()) {
        Value* to = out + (rows[place] - first) * n_samples;
        for (int chunk = 0; chunk < n_chunks; ++chunk) {
            const Offset segment = place * n_chunks + chunk, start = starts[segment];
            for (SampleId e = lane; e < sizes[segment]; e += lanes_of_warp) {
                to[columns[start + e]] = values[start + e];
            }
        }
    }
}

// Multiplies rows of P with the columns of a dense matrix, in double.
extern "C" __global__ void times_dense(Offset n_rows, int n_chunks, const RowId* rows,
                                       const Offset* starts, const SampleId* sizes,
                                       const SampleId* columns, const Value* values, const double* dense,
                                       int n_columns, double* out) {
    const int lane = threadIdx.x % lanes_of_warp;
    for (Offset place = this_warp(); place < n_rows; place += all_warps()) {
        for (int c = 0; c < n_columns; ++c) {
            double sum = 0.0;
            for (int chunk = 0; chunk < n_chunks; ++chunk) {
                const Offset segment = place * n_chunks + chunk, start = starts[segment];
                for (SampleId e = lane; e < sizes[segment]; e += lanes_of_warp) {
                    sum += (double)values[start + e] * dense[(Offset)columns[start + e] * n_columns + c];
                }
            }
            for (int step = lanes_of_warp / 2; step > 0; step /= 2) {
                sum += __shfl_down_sync(all_lanes, sum, step);
            }
            if (lane == 0) out[(Offset)rows[place] * n_columns + c] = sum;
        }
    }
}
