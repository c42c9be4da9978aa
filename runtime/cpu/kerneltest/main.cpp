// Tests every kernel of every table that this machine can run; exit status 1 when one misses.
//
//   kernel_test          all tables
//   kernel_test avx2     one
//   kernel_test list     the names of those that this machine can run
#include "check.h"

namespace {

// A table that only tests have; null where the program is linked without it.
const Kernels* linked(const Kernels* (*table)()) { return table != nullptr ? table() : nullptr; }

// The table that another is made of; null for one of its own.
const Kernels* table_below(const Kernels& k) {
  if (&k == linked(kernels_portable_amx)) return kernels_portable16();
  const bool above =
      &k == linked(kernels_emulated_amx) || &k == kernels_amx() || &k == kernels_vbmi();
  if (&k == kernels_amx() && kernels_vbmi() != nullptr) return kernels_vbmi();
  return above ? kernels_avx512() : nullptr;
}

// Such a table: its products; all else is that of the table below it.
void test_above(const Kernels& below, const Kernels& table, Checker& check) {
  Kernels rest = table;
  rest.name = below.name;
  if (table.matmul_mxfp4_tiles != nullptr) {
    rest.matmul_mxfp4_tiles = below.matmul_mxfp4_tiles;
    rest.matmul_bf16_tiles = below.matmul_bf16_tiles;
    rest.multiply_peak = below.multiply_peak;
    // The order of sums within a product is the processor's, so its bits need not be the model's.
    const bool model = &table == linked(kernels_emulated_amx);
    test_tiles(table, model ? linked(kernels_portable_amx) : nullptr, check);
  } else {
    rest.matmul_mxfp4_q8 = below.matmul_mxfp4_q8;
    test_matmul_q8(table, check);
    test_same_bits(below, table, check);
  }
  check.that(memcmp(&rest, &below, sizeof rest) == 0, "the same functions", 0, 1);
}

}  // namespace

int main(int argc, char** argv) {
  const struct {
    const char* name;
    const Kernels* kernels;
  } tables[] = {
      {"scalar", kernels_scalar()},
      {"portable16", linked(kernels_portable16)},
      {"avx2", kernels_avx2()},
      {"emulated vnni", linked(kernels_emulated_vnni)},
      {"avxvnni", kernels_avxvnni()},
      {"avx512", kernels_avx512()},
      {"vbmi", kernels_vbmi()},
      {"neon", kernels_neon()},
      {"i8mm", kernels_i8mm()},
      {"bf16", kernels_bf16()},
      {"portable amx", linked(kernels_portable_amx)},
      {"emulated amx", linked(kernels_emulated_amx)},
      {"amx", kernels_amx()},
  };
  int64_t failures = 0;
  if (argc == 1) {
    Checker check("schedule");
    test_schedule(check);
    failures += check.failures();
  }
  for (const auto& table : tables) {
    if (argc > 1 && strcmp(argv[1], "list") == 0) {
      if (table.kernels != nullptr) printf("%s\n", table.name);
      continue;
    }
    if (argc > 1 && strcmp(argv[1], table.name) != 0) continue;
    if (table.kernels == nullptr) {
      printf("SKIP %s: not for this CPU, or not in this program\n", table.name);
      continue;
    }
    Checker check(table.name);
    const Kernels* below = table_below(*table.kernels);
    if (below != nullptr) {
      test_above(*below, *table.kernels, check);
    } else if (table.kernels == kernels_bf16()) {
      Kernels rest = *table.kernels;  // all else is that of the table below it
      rest.name = kernels_i8mm()->name;
      rest.matmul_bf16_halves = nullptr;
      check.that(memcmp(&rest, kernels_i8mm(), sizeof rest) == 0, "the same functions", 0, 1);
      test_halves(*table.kernels, check);
    } else {
      test_matmul(*table.kernels, check);
      test_rows(*table.kernels, check);
      test_attention(*table.kernels, check);
    }
    if (table.kernels == kernels_i8mm()) test_same_bits(*kernels_neon(), *table.kernels, check);
    printf("%s %s: %lld checks, %lld failures\n", check.failures() ? "FAIL" : "ok", table.name,
           static_cast<long long>(check.checks()), static_cast<long long>(check.failures()));
    failures += check.failures();
  }
  return failures == 0 ? 0 : 1;
}
