// Event files of a run: which lines a resumed run writes again, and who writes.
#include "exec/worker/event_metrics.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "shared/files/run_paths.h"
#include "tests/exec/support/temp_folder.h"

namespace polyphony::exec {
namespace {

using testing::slurp;
using testing::TempFolder;

std::vector<std::string> event_files(const std::string& folder) {
  std::vector<std::string> paths = RunPaths{folder}.present();
  std::erase_if(paths, [](const std::string& path) {
    return path.find("/events.out.tfevents.") == std::string::npos;
  });
  return paths;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size())
    ++found;
  return found;
}

}  // namespace

TEST_SUITE("event metrics") {
  TEST_CASE("rank 0 writes all lines, other ranks and runs without a folder none") {
    const TempFolder folder;
    for (const std::uint32_t rank : {1u, 0u}) {
      EventMetrics events(folder.path(), Rank(rank), 0, {});
      events.write(traces::StepMetrics{.step = 0, .loss = 2});
      events.write(traces::Accuracy{1, 0.5, 8, 0.25});
      events.write(traces::Rewind{1, 1, 3, 3, "loss"});
      events.flush();
      CHECK(event_files(folder.path()).size() == (rank == 0 ? 1 : 0));
    }
    const std::string text = slurp(event_files(folder.path()).at(0));
    CHECK(count(text, "train/loss") == 1);
    CHECK(count(text, "train/data_wait_seconds") == 1);
    CHECK(count(text, "train/skipped") == 1);
    CHECK(count(text, "train/rewinds") == 1);
    CHECK(count(text, "eval/accuracy") == 1);
    CHECK(count(text, "eval/loss") == 1);
    EventMetrics nowhere("", Rank(0), 0, {});
    nowhere.write(traces::Accuracy{1, 0.5, 8, {}});
    nowhere.flush();
  }

  TEST_CASE("a resumed run has a file of its own, with the evaluation at its first step") {
    const TempFolder folder;
    const std::vector<traces::MetricsLine> kept{traces::StepMetrics{.step = 1, .loss = 2},
                                                traces::Accuracy{1, 0.25, 8, {}},
                                                traces::Accuracy{2, 0.5, 8, {}}};
    EventMetrics(folder.path(), Rank(0), 0, {}).flush();
    EventMetrics(folder.path(), Rank(0), 2, kept).flush();
    const std::vector<std::string> files = event_files(folder.path());
    REQUIRE(files.size() == 2);
    const std::string both = slurp(files[0]) + slurp(files[1]);
    CHECK(count(both, "eval/accuracy") == 1);
    CHECK(count(both, "train/loss") == 0);
  }
}

}  // namespace polyphony::exec
