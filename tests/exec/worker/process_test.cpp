#include "exec/system/process.h"

#include <doctest/doctest.h>
#include <sched.h>

#include "exec/torch_pch.h"

using namespace polyphony::exec;

TEST_CASE("a process bound to one core computes with one thread") {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  const int threads = at::get_num_threads();
  int core = 0;
  while (!CPU_ISSET(core, &before)) ++core;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  share_cores(1);
  CHECK(at::get_num_threads() == 1);
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
  share_cores(1);
  CHECK(at::get_num_threads() == CPU_COUNT(&before));
  at::set_num_threads(threads);
}
