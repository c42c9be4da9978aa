// Runs the cases: all of them, or those whose names contain an argument, each with the threads of a
// block in order and in reverse. Prints a line a case, "ok name" or "FAIL name: why". A case that
// does not end is one that failed: it has so much processor time. With OSSRUN_PTX, a file of PTX,
// or OSSRUN_AMD, what LLVM's tools say of a code object, its kernels are interpreted in the place
// of the sources'. With OSSRUN_AMD_BREAK, a number, so many instructions of the image are broken
// afterwards, one at a time, and the cases of their kernels are run again: one should fail.
#include "amd.h"
#include "check.h"
#include "ptx.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <random>

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
  const itimerval most = {
      {0, 0}, {getenv("OSSRUN_PTX") || getenv("OSSRUN_AMD") ? 60 * kSeconds : kSeconds, 0}};
  setitimer(ITIMER_PROF, &most, nullptr);
  try {
    c.run();
    return true;
  } catch (const Failure& f) {
    why = f.what + (reverse ? " (threads in reverse)" : "");
    return false;
  }
}

// Of a kernel, the shortest first.
typedef std::map<const amd::Program*, std::multimap<double, const Case*>> Cases;

// What the cases of a kernel notice, each break in a process of its own: it may destroy anything.
static void break_instructions(const std::vector<amd::Program*>& images, const Cases& of,
                               int count) {
  std::vector<amd::Program*> run;
  for (amd::Program* p : images)
    if (of.count(p)) run.push_back(p);
  std::vector<size_t> sizes;  // a kernel is chosen as often as it has instructions
  for (const amd::Program* p : run)
    sizes.push_back(static_cast<size_t>(
        std::count_if(p->code.begin(), p->code.end(), [](const auto& i) { return i.run; })));
  std::mt19937 random(20);
  std::discrete_distribution<size_t> any(sizes.begin(), sizes.end());
  int noticed = 0;
  for (int n = 0; n < count; n++) {
    amd::Program& p = *run[any(random)];
    const unsigned number = random();
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      std::string why;
      const std::string what = amd::broken(p, number);
      const char* by = nullptr;
      const rlimit most = {60, 60};
      setrlimit(RLIMIT_CPU, &most);
      printf("break: %s: %s: ", p.name.c_str(), what.c_str());
      fflush(stdout);
      for (const auto& c : of.at(&p)) {
        if (by || (run_one(*c.second, false, why) && run_one(*c.second, true, why))) continue;
        by = c.second->name;
      }
      printf("%s\n", by ? by : "NOT NOTICED");
      fflush(stdout);
      _exit(by ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status)) printf("ended\n");
    noticed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }
  printf("BREAKS: %d of %d noticed\n", noticed, count);
}

int main(int argc, char** argv) {
  signal(SIGPROF, does_not_end);
  std::vector<Case*> cases;
  for (Case* c = Case::first(); c; c = c->next) cases.push_back(c);
  std::sort(cases.begin(), cases.end(),
            [](Case* a, Case* b) { return strcmp(a->name, b->name) < 0; });
  std::vector<ptx::Program*> texts;
  std::vector<amd::Program*> images;
  try {
    if (const char* path = getenv("OSSRUN_PTX")) texts = ptx::take_over(path);
    if (const char* path = getenv("OSSRUN_AMD")) images = amd::take_over(path);
  } catch (const std::exception& e) {
    printf("FAIL text: %s\n", e.what());
    return 1;
  }
  int failed = 0;
  Cases cases_of;
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
    else if (!images.empty() && why.find("there is no kernel") == 0)
      printf("none %s: %s\n", c->name, why.c_str());
    else
      printf("FAIL %s: %s\n", c->name, why.c_str()), failed++;
    for (amd::Program* p : images) {
      if (p->launched) cases_of[p].insert({ms, c});
      p->launched = false;
    }
    fflush(stdout);
  }
  if (!texts.empty()) printf("PTX: %s\n", ptx::coverage(texts).c_str());
  if (!images.empty()) printf("AMD: %s\n", amd::coverage(images).c_str());
  if (const char* count = getenv("OSSRUN_AMD_BREAK"))
    break_instructions(images, cases_of, atoi(count));
  return failed != 0;
}
