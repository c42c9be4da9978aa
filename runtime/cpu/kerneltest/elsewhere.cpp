// Takes the place of kernels_avx512 and kernels_avxvnni in a test program that goldens.sh links
// (the linker's --wrap): the same templates, where the CPU at hand lacks the instructions.
#include "check.h"

extern "C" {
const Kernels* __wrap_kernels_avx512(void) { return kernels_portable16(); }
const Kernels* __wrap_kernels_avxvnni(void) { return kernels_emulated_vnni(); }
}
