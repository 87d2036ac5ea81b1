// Types and functions that all kernels share. The terms are those of cpp/include/leafkernel/views.hpp:
//
//     P(i, j) = scale · a(i) · b(j) · Σ over shared leaves of  q(i, t) · g(leaf) · w(j, t)
//
// Kernels are compiled for the types of one product, given as macros:
//
//     Value         the type of proximities: float or double
//     Column        the type of leaf ids in query rows: int or long long; -1 marks a missing entry
//     ListOffset    the type of positions in the lists of members
//     QueryWeight   the type of q, if QUERY_WEIGHTS is 1
//     MemberWeight  the type of w, if MEMBER_WEIGHTS is 1
//
// The reference samples are split into parts of at most 65,536 samples, so that a member of a leaf takes
// two bytes. A *chunk* is a range of parts that one thread block handles at once. A *segment* holds the
// entries of one row in one chunk, in ascending order of samples.
//
// Floats below 1.2e-38 are zero, because CuPy compiles with -ftz=true. Doubles are not affected.
//
// Multiplications and additions are never fused. Together with sums in the order of the trees, this
// makes the results equal to those of the compiled engine, to the last bit.
#pragma once

typedef long long Offset;        // position in a long array, or a count
typedef int SampleId;            // a reference sample
typedef int RowId;               // a query row
typedef unsigned short Member;   // a reference sample, counted from the first of its part
typedef unsigned int Word;       // 32 flags
typedef unsigned long long OobWord;

constexpr int lanes_of_warp = 32;
constexpr Word all_lanes = 0xffffffffu;

// Bits of `status`, which kernels set.
constexpr int found_zero = 1;      // an entry is zero in the result type
constexpr int found_infinity = 2;  // an entry is infinite or NaN
constexpr int found_pending = 4;   // the values of a segment are still missing

struct Segments {
    const Offset* starts;  // one per segment
    SampleId* sizes;
    SampleId* columns;
    Value* values;
    int per_row;

    __device__ Offset of(Offset place, int chunk) const { return place * per_row + chunk; }
};

// The leaves of query rows. A row has n_groups entries, unless `offsets` says otherwise.
struct QueryRows {
    const Column* columns;
    const Offset* offsets;
    int n_groups;

    __device__ Offset begin(Offset row) const { return offsets ? offsets[row] : row * n_groups; }
    __device__ Offset end(Offset row) const { return begin(row + 1); }
};

// Converts the sum of a pair to its proximity.
struct Finish {
    const double* by_row;     // a
    const double* by_sample;  // b
    double scale;
    const OobWord* query_oob;      // by row
    const OobWord* reference_oob;  // by sample
    int oob_words;
    const SampleId* own;      // the reference sample that a row is, or -1
    const double* diagonal;   // its value, if it replaces that of the scheme
    int* status;

    __device__ double factor(Offset row) const { return scale * (by_row ? by_row[row] : 1.0); }

    __device__ SampleId own_of(Offset row) const { return own ? own[row] : -1; }

    __device__ Value value(double factor, Offset row, SampleId sample, double sum) const {
        double found = (factor * (by_sample ? by_sample[sample] : 1.0)) * sum;
        if (reference_oob) {
            int shared = 0;
            for (int w = 0; w < oob_words; ++w) {
                shared += __popcll(query_oob[row * oob_words + w] &
                                   reference_oob[(Offset)sample * oob_words + w]);
            }
            found = shared > 0 ? found / shared : 0.0;
        }
        return checked(found);
    }

    __device__ Value checked(double found) const {
        const Value value = (Value)found;
        if (value == (Value)0) atomicOr(status, found_zero);
        if (!(fabs((double)value) <= largest)) atomicOr(status, found_infinity);
        return value;
    }

    static constexpr double largest = sizeof(Value) == 4 ? 3.40282346638528859812e38 : 1.7976931348623157e308;
};

// The number of this warp in the grid, and the number of all warps. Kernels with one warp per item use them.
__device__ inline Offset this_warp() { return ((Offset)blockIdx.x * blockDim.x + threadIdx.x) / lanes_of_warp; }
__device__ inline Offset all_warps() { return (Offset)gridDim.x * blockDim.x / lanes_of_warp; }

// Returns the sum of n over the lower lanes. `total` becomes the sum over all lanes.
__device__ inline int sum_of_lower_lanes(int n, int& total) {
    const int lane = threadIdx.x % lanes_of_warp;
    int sum = n;
    for (int step = 1; step < lanes_of_warp; step *= 2) {
        const int other = __shfl_up_sync(all_lanes, sum, step);
        if (lane >= step) sum += other;
    }
    total = __shfl_sync(all_lanes, sum, lanes_of_warp - 1);
    return sum - n;
}

// Returns the group of a leaf.
__device__ inline int group_of(Offset leaf, const Offset* first_leaf, int n_groups) {
    int low = 0, high = n_groups - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (first_leaf[middle] <= leaf) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}
