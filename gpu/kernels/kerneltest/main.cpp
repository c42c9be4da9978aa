// Runs the cases: all of them, or those whose names contain an argument, each with the threads of a
// block in order and in reverse. Prints a line a case, "ok name" or "FAIL name: why". A case that
// does not end is one that failed: it has so much processor time. With OSSRUN_PTX, a file of PTX,
// its kernels are interpreted in the place of the sources'.
#include "check.h"
#include "ptx.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <exception>

#if defined(__SANITIZE_ADDRESS__)
constexpr int kSeconds = 1200;
#else
constexpr int kSeconds = 40;
#endif

static const char* running;

static void does_not_end(int) {
  for (const char* part : {"FAIL ", running, ": has not ended in its processor time\n"})
    if (write(STDOUT_FILENO, part, strlen(part)) < 0) break;
  _exit(1);
}

static bool run_one(const Case& c, bool reverse, std::string& why) {
  rng().seed(1);
  emulator_reverse(reverse);
  emulator_blocks(kInTurn, 0);
  running = c.name;
  const itimerval most = {{0, 0}, {getenv("OSSRUN_PTX") ? 60 * kSeconds : kSeconds, 0}};
  setitimer(ITIMER_PROF, &most, nullptr);
  try {
    c.run();
    return true;
  } catch (const Failure& f) {
    why = f.what + (reverse ? " (threads in reverse)" : "");
    return false;
  }
}

int main(int argc, char** argv) {
  signal(SIGPROF, does_not_end);
  std::vector<Case*> cases;
  for (Case* c = Case::first(); c; c = c->next) cases.push_back(c);
  std::sort(cases.begin(), cases.end(),
            [](Case* a, Case* b) { return strcmp(a->name, b->name) < 0; });
  std::vector<ptx::Program*> texts;
  try {
    if (const char* path = getenv("OSSRUN_PTX")) texts = ptx::take_over(path);
  } catch (const std::exception& e) {
    printf("FAIL text: %s\n", e.what());
    return 1;
  }
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
  if (!texts.empty()) printf("PTX: %s\n", ptx::coverage(texts).c_str());
  return failed != 0;
}
