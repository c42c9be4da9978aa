// Tests every kernel of every table that this machine can run; exit status 1 when one misses.
//
//   kernel_test          all tables
//   kernel_test avx2     one
#include "check.h"

int main(int argc, char** argv) {
  const struct {
    const char* name;
    const Kernels* kernels;
  } tables[] = {
      {"scalar", kernels_scalar()},   {"portable16", kernels_portable16()},
      {"avx2", kernels_avx2()},       {"emulated vnni", kernels_emulated_vnni()},
      {"avxvnni", kernels_avxvnni()}, {"avx512", kernels_avx512()},
      {"neon", kernels_neon()},
  };
  int64_t failures = 0;
  for (const auto& table : tables) {
    if (argc > 1 && strcmp(argv[1], table.name) != 0) continue;
    if (table.kernels == nullptr) {
      printf("SKIP %s: this CPU cannot execute it\n", table.name);
      continue;
    }
    Checker check(table.name);
    test_matmul(*table.kernels, check);
    test_rows(*table.kernels, check);
    test_attention(*table.kernels, check);
    printf("%s %s: %lld checks, %lld failures\n", check.failures() ? "FAIL" : "ok", table.name,
           static_cast<long long>(check.checks()), static_cast<long long>(check.failures()));
    failures += check.failures();
  }
  return failures == 0 ? 0 : 1;
}
