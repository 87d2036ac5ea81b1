#define LEAFKERNEL_NAME "avx2"
#define LEAFKERNEL_KERNELS kernels_avx2
#define LEAFKERNEL_VECTOR 32
#include "plane_kernels.inc"
