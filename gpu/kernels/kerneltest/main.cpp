// Runs the cases: all of them, or those whose names contain an argument, each with the threads of a
// block in order and in reverse. Prints a line a case, "ok name" or "FAIL name: why".
#include "check.h"

#include <algorithm>
#include <chrono>

static bool run_one(const Case& c, bool reverse, std::string& why) {
  rng().seed(1);
  emulator_reverse(reverse);
  try {
    c.run();
    return true;
  } catch (const Failure& f) {
    why = f.what + (reverse ? " (threads in reverse)" : "");
    return false;
  }
}

int main(int argc, char** argv) {
  std::vector<Case*> cases;
  for (Case* c = Case::first(); c; c = c->next) cases.push_back(c);
  std::sort(cases.begin(), cases.end(),
            [](Case* a, Case* b) { return strcmp(a->name, b->name) < 0; });
  int failed = 0;
  for (Case* c : cases) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; i++) wanted = wanted || strstr(c->name, argv[i]);
    if (!wanted) continue;
    const auto start = std::chrono::steady_clock::now();
    std::string why;
    const bool ok = run_one(*c, false, why) && run_one(*c, true, why);
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (ok)
      printf("ok %s %.0f ms\n", c->name, ms);
    else
      printf("FAIL %s: %s\n", c->name, why.c_str()), failed++;
    fflush(stdout);
  }
  return failed != 0;
}
