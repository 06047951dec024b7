#include "shared/files/run_folder.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <set>

#include "tests/shared/support/temp_folder.h"

namespace polyphony {
namespace {

namespace fs = std::filesystem;
using test::slurp;
using test::spill;
using test::TempFolder;

std::string refused(const std::string& path, EarlierRun earlier) {
  try {
    const RunFolder claim(path, earlier, "test");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) names.insert(fs::relative(entry.path(), folder).string());
  return names;
}

// Writes the files of a run that was killed while it wrote its second checkpoint.
void leave_run(const std::string& path) {
  RunFolder claim(path, EarlierRun::refuse, "test");
  claim.begin();
  for (const char* name :
       {"scenario.json", "metrics.jsonl", "answers.jsonl", "trace/batches.jsonl",
        "trace/step-5.rank-0.json", "checkpoints/step-8/manifest.json",
        "checkpoints/step-8/rank-12.safetensors", "checkpoints/step-16.partial/rank-0.safetensors"})
    spill(path + "/" + name, "ours");
}

}  // namespace

TEST_CASE("a run folder has one owner, until the last process that holds its lock has ended") {
  const TempFolder folder;
  const std::string run = folder / "run";
  auto claim = std::make_unique<RunFolder>(run, EarlierRun::refuse, "polyphony run");
  claim->begin();
  spill(run + "/scenario.json", "{}");
  for (const EarlierRun earlier : {EarlierRun::resume, EarlierRun::remove}) {
    const std::string line = refused(run, earlier);
    CHECK(line.find("another run is using this folder: polyphony run, process " +
                    std::to_string(::getpid()) + " on ") != std::string::npos);
  }
  CHECK(slurp(run + "/scenario.json") == "{}");

  const pid_t child = ::fork();  // inherits the lock
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  {
    const RunFolder of_child(run, EarlierRun::refuse, "worker", claim->lock());
    CHECK(of_child.lock() == -1);
  }
  claim.reset();
  CHECK(refused(run, EarlierRun::resume).find("another run is using this folder") !=
        std::string::npos);
  ::kill(child, SIGKILL);
  CHECK(refused(run, EarlierRun::resume) == "");  // waits until the killed process has ended
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("only files that a run wrote are removed, and only on request") {
  const TempFolder folder;
  leave_run(folder.path());
  spill(folder / "trace/thesis.txt", "mine");
  spill(folder / "checkpoints/step-8/notes.txt", "mine");
  spill(folder / "checkpoints/best/rank-0.safetensors", "mine");
  const std::set<std::string> all = files_in(folder.path());
  CHECK(refused(folder.path(), EarlierRun::refuse)
            .find("belongs to an earlier run (`polyphony run --resume` continues it") !=
        std::string::npos);
  CHECK(refused(folder.path(), EarlierRun::remove) == "");  // claimed, but the run has not begun
  CHECK(files_in(folder.path()) == all);
  RunFolder(folder.path(), EarlierRun::remove, "test").begin();
  std::set<std::string> left = files_in(folder.path());
  left.erase("checkpoints/step-8.partial/notes.txt");
  CHECK(left == std::set<std::string>{"run.lock", "trace/thesis.txt",
                                      "checkpoints/best/rank-0.safetensors"});
  CHECK(slurp(folder / "checkpoints/step-8.partial/notes.txt") == "mine");
}

TEST_CASE("files with the names of run files stay in a folder that no run has marked") {
  for (const char* name :
       {"metrics.jsonl", "scenario.json", "trace/step-3.rank-0.json", "trace/batches.jsonl"}) {
    CAPTURE(name);
    const TempFolder folder;
    spill(folder / name, "mine");
    for (const EarlierRun earlier :
         {EarlierRun::refuse, EarlierRun::remove, EarlierRun::resume, EarlierRun::remove})
      CHECK(refused(folder.path(), earlier).find("no run has marked the folder as its own") !=
            std::string::npos);
    CHECK(files_in(folder.path()) == std::set<std::string>{name});
  }
  const TempFolder folder;  // files of other names do not matter
  spill(folder / "trace/thesis.txt", "mine");
  CHECK(refused(folder.path(), EarlierRun::refuse) == "");
  CHECK(refused(folder.path(), EarlierRun::resume).find("holds no run to continue") !=
        std::string::npos);
  CHECK(files_in(folder.path()) == std::set<std::string>{"trace/thesis.txt"});
}

TEST_CASE("a claim leaves nothing behind if the run does not begin") {
  const TempFolder folder;
  {
    const RunFolder claim(folder / "run", EarlierRun::refuse, "test");
    spill(claim.given_scenario(), "{}");
    CHECK(fs::exists(folder / "run/run.lock"));
  }
  CHECK(!fs::exists(folder / "run"));
  leave_run(folder / "run");
  const std::set<std::string> all = files_in(folder / "run");
  CHECK(refused(folder / "run", EarlierRun::resume) == "");
  CHECK(files_in(folder / "run") == all);
}

}  // namespace polyphony
