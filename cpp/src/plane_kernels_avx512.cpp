#define LEAFKERNEL_NAME "avx512"
#define LEAFKERNEL_KERNELS kernels_avx512
#define LEAFKERNEL_VECTOR 64
#include "plane_kernels.inc"
