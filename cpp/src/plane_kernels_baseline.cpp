#define LEAFKERNEL_NAME "baseline"
#define LEAFKERNEL_KERNELS kernels_baseline
#define LEAFKERNEL_VECTOR 16
#include "plane_kernels.inc"
