// Takes the place of kernels_avx512, kernels_vbmi, kernels_avxvnni and kernels_amx in a test
// program: the same templates, where the CPU at hand lacks the instructions. goldens.sh and
// ../asantest/run.sh link it (the linker's --wrap).
#include "check.h"

extern "C" {
const Kernels* __wrap_kernels_avx512(void) { return kernels_portable16(); }
const Kernels* __wrap_kernels_vbmi(void) { return nullptr; }
const Kernels* __wrap_kernels_avxvnni(void) { return kernels_emulated_vnni(); }
const Kernels* __wrap_kernels_amx(void) { return kernels_portable_amx(); }
}
