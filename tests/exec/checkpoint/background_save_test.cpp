// Checkpoints that are written while training goes on.
#include "exec/checkpoint/background_save.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>

#include <thread>

#include "tests/exec/checkpoint/checkpoint_run.h"

namespace polyphony::exec {
namespace {

using namespace testing;

std::unique_ptr<CheckpointWriter> writer(Run& run, const std::string& folder, std::int64_t step,
                                         const KeptCheckpoints& keep = {}) {
  return std::make_unique<CheckpointWriter>(
      folder, step, run.transport.rank(),
      runner_state(run.runner, run.transport.rank(), run.structure, run_record(run.scenario)),
      run.structure, keep);
}

}  // namespace

TEST_SUITE("checkpoint") {
  TEST_CASE("a checkpoint has the state of its step, though training went on meanwhile") {
    const TempFolder at_once, beside;
    for (const Layout& layout : {homogeneous(2, 1, 1), homogeneous(1, 2, 2)}) {
      on_ranks(layout, tiny(), [&](Run& run) {
        BackgroundSave save(run.transport);
        run.before_update = [&] { save.wait_for_copy(); };
        run.train(0);
        run.train(1);
        run.save(at_once.path(), 2);
        CHECK_FALSE(save.begun());
        save.begin(writer(run, beside.path(), 2));
        CHECK(save.begun());
        run.train(2);  // changes the state
        run.train(3);
        save.finish();
        CHECK_FALSE(save.begun());
      });
      CHECK(entries(beside.path()) == std::vector<std::string>{"step-2"});
      CHECK(entries(beside / "step-2") == entries(at_once / "step-2"));
      for (const std::string& file : entries(at_once / "step-2"))
        CHECK(slurp((beside / "step-2") + "/" + file) == slurp((at_once / "step-2") + "/" + file));
    }
  }

  TEST_CASE("steps go on while ranks write, and a later one publishes") {
    const TempFolder folder;
    on_ranks(homogeneous(2, 1, 1), tiny(), [&](Run& run) {
      BackgroundSave save(run.transport);
      run.before_update = [&] { save.wait_for_copy(); };
      std::uint64_t step = 0;
      run.train(step++);
      for (const std::int64_t due : {1, 2, 3}) {
        save.begin(writer(run, folder.path(), due, {.newest = 2}));
        int went_on = 0;
        while (save.begun()) {
          run.train(step++);
          // Ranks agree, as the training loop does.
          const auto busy = gather(run.transport, {save.works() ? 1 : 0, 0});
          torch::Tensor any = torch::tensor({0}, torch::kInt64);
          if (run.transport.rank() == Rank(0)) {
            for (const auto& [works, unused] : busy) any[0] += works;
            run.transport.send(any, Rank(1), 1);
          } else {
            run.transport.receive(any, Rank(0), 1);
          }
          if (any.item<std::int64_t>() == 0) save.go_on(), ++went_on;
        }
        CHECK(went_on == 2);  // all have written; rank 0 has published
      }
    });
    CHECK(entries(folder.path()) == std::vector<std::string>{"step-2", "step-3"});
    CHECK(newest_checkpoint(folder.path()) == 3);
  }

  TEST_CASE("a rank that cannot write fails all, and the checkpoint before stays") {
    const TempFolder folder;
    save_one(folder.path());
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{4096, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    std::atomic<int> failures{0};
    CHECK_THROWS(on_ranks(homogeneous(2, 1, 1), tiny(), [&](Run& run) {
      BackgroundSave save(run.transport);
      run.before_update = [&] { save.wait_for_copy(); };
      run.train(0);
      run.transport.barrier();
      if (run.transport.rank() == Rank(0)) setrlimit(RLIMIT_FSIZE, &small);
      run.transport.barrier();
      save.begin(writer(run, folder.path(), 3));
      run.train(1);
      try {
        save.finish();
      } catch (const std::exception& error) {
        ++failures;
        throw;
      }
    }));
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK(failures > 0);
    CHECK(entries(folder.path()) == std::vector<std::string>{"step-2"});
    CHECK(newest_checkpoint(folder.path()) == 2);
  }

  TEST_CASE("a checkpoint that is given up leaves nothing behind") {
    const TempFolder folder;
    on_ranks(homogeneous(1, 1, 1), tiny(), [&](Run& run) {
      run.train(0);
      BackgroundSave save(run.transport);
      save.begin(writer(run, folder.path(), 1));
    });
    CHECK(entries(folder.path()).empty());
  }
}

}  // namespace polyphony::exec
