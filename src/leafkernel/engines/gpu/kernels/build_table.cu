// Stores the leaves of each reference sample in a row, given the members of each leaf. One warp per leaf.
#include "views.cuh"

template <class Visit>
__device__ void each_member(const ListOffset* list_offsets, const Member* members, Offset n_leaves,
                            int n_parts, int part_size, const Offset* first_leaf, int n_groups,
                            const Visit& visit) {
    const int lane = threadIdx.x % lanes_of_warp;
    for (Offset leaf = this_warp(); leaf < n_leaves; leaf += all_warps()) {
        const int group = group_of(leaf, first_leaf, n_groups);
        for (int part = 0; part < n_parts; ++part) {
            const ListOffset* at = list_offsets + part * n_leaves + leaf;
            const Offset end = at[1];
            for (Offset m = at[0] + lane; m < end; m += lanes_of_warp) {
                visit((Offset)part * part_size + members[m], group, (LeafId)(leaf - first_leaf[group]), m);
            }
        }
    }
}

extern "C" __global__ void scatter_leaves(const ListOffset* list_offsets, const Member* members,
                                          const MemberWeight* member_weights, Offset n_leaves, int n_parts,
                                          int part_size, const Offset* first_leaf, int n_groups, int stride,
                                          LeafId* ids, MemberWeight* weights, int* repeated) {
    each_member(list_offsets, members, n_leaves, n_parts, part_size, first_leaf, n_groups,
                [&](Offset sample, int group, LeafId leaf, Offset m) {
                    ids[sample * stride + group] = leaf;
#if MEMBER_WEIGHTS
                    weights[sample * n_groups + group] = member_weights[m];
#endif
                });
}

// Sets `repeated` if a sample has several leaves in a group. Only one of them was stored.
extern "C" __global__ void check_leaves(const ListOffset* list_offsets, const Member* members,
                                        const MemberWeight* member_weights, Offset n_leaves, int n_parts,
                                        int part_size, const Offset* first_leaf, int n_groups, int stride,
                                        const LeafId* ids, const MemberWeight* weights, int* repeated) {
    each_member(list_offsets, members, n_leaves, n_parts, part_size, first_leaf, n_groups,
                [&](Offset sample, int group, LeafId leaf, Offset m) {
                    if (ids[sample * stride + group] != leaf) *repeated = 1;
                });
}
