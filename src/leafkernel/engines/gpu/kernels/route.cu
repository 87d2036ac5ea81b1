// Finds the leaf of each sample in each packed tree, as cpp/include/leafkernel/route.hpp does. One thread
// per sample and tree. The threads of a block share a tree.
#include "views.cuh"

// Returns integers in the order of floats. CuPy compiles with -ftz=true, which makes comparisons treat tiny
// floats as zero. XGBoost's x < 0 is stored as x <= the largest negative float.
__device__ inline int ordered(Word bits) {
    return bits >> 31 ? -(int)(bits & 0x7fffffffu) : (int)bits;
}

// `nodes`: threshold in x, feature and left child in y. A leaf is its own left child.
extern "C" __global__ void route(const uint2* nodes, const Offset* tree_offsets,
                                 const unsigned char* missing_go_left, const int* leaf_of_node,
                                 const Offset* leaf_offsets, int n_trees, int left_bits, const float* X,
                                 Offset n_rows, Offset n_features, Column* leaves) {
    const Word left_mask = (1u << left_bits) - 1;
    const Offset n_tiles = (n_rows + blockDim.x - 1) / blockDim.x;
    // All rows of a tree come before those of the next, so that its nodes stay in the cache.
    for (Offset item = blockIdx.x; item < n_tiles * n_trees; item += gridDim.x) {
        const int tree = item / n_tiles;
        const Offset row = item % n_tiles * blockDim.x + threadIdx.x;
        const Offset first = tree_offsets[tree];
        if (row < n_rows) {
            const float* x = X + row * n_features;
            Word at = 0;
            while (true) {
                const uint2 node = nodes[first + at];
                const Word left = node.y & left_mask;
                if (left == at) break;
                const float value = x[node.y >> left_bits];
                const bool goes_left = isnan(value) ? missing_go_left[first + at] != 0
                                                    : ordered(__float_as_uint(value)) <= ordered(node.x);
                at = left + !goes_left;
            }
            leaves[row * n_trees + tree] = (Column)(leaf_offsets[tree] + leaf_of_node[first + at]);
        }
    }
}
