#define LEAFKERNEL_NAME "neon"
#define LEAFKERNEL_KERNELS kernels_neon
#define LEAFKERNEL_VECTOR 16
#include "plane_kernels.inc"
