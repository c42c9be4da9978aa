// Placeholder until the fast table lands: says that this CPU has none, so callers take the scalar
// one.
#include "kernels.h"

extern "C" const Kernels* kernels_avx512(void) { return nullptr; }
