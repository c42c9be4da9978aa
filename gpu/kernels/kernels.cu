// All kernels in one translation unit: what the device compilers build. The host emulation builds
// each file by itself.
#include "attend.cu"
#include "experts.cu"
#include "linear.cu"
#include "norm.cu"
#include "quantize.cu"
#include "rope.cu"
#include "route.cu"
#include "rows.cu"
#include "sample.cu"
#include "write_kv.cu"
