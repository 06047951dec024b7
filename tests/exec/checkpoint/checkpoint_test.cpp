#include "exec/checkpoint/checkpoint.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>

#include "tests/exec/checkpoint/checkpoint_run.h"
#include "tests/shared/support/manifests.h"

namespace polyphony::exec {
namespace {

namespace fs = std::filesystem;
using namespace testing;

std::string load_refusal(const std::string& folder, const Scenario& scenario = tiny()) {
  return refusal([&] {
    on_ranks(homogeneous(1, 1, 1), scenario, [&](Run& run) {
      const auto newest = newest_checkpoint(folder);
      REQUIRE(newest.has_value());
      run.load(folder, *newest);
    });
  });
}
using Names = std::vector<std::string>;

}  // namespace

TEST_SUITE("checkpoint") {
  TEST_CASE("a checkpoint of one layout is loaded bit for bit by other layouts") {
    const TempFolder folder;
    const Scenario scenario = tiny();
    Gathered saved;
    on_ranks(homogeneous(2, 1, 2), scenario, [&](Run& run) {
      for (std::uint64_t step = 0; step < 3; ++step) run.train(step);
      run.save(folder.path(), 3);
      saved.add(run);
    });
    CHECK(saved.steps == 3);
    CHECK(saved.whole.at("language.block0.qkv.weight.v").abs().sum().item<double>() > 0);
    // Data-parallel replica 0 is ranks 0 and 1; the others write nothing.
    CHECK(entries(folder / "step-3") ==
          Names{"manifest.json", "rank-0.safetensors", "rank-1.safetensors"});
    ModuleLayout vision, language;
    vision.tp = vision.ranks = 2;
    language.pp = language.ranks = 2;
    for (const Layout& layout : {homogeneous(1, 1, 1), homogeneous(4, 2, 1), homogeneous(1, 4, 2),
                                 homogeneous(2, 1, 2), non_colocated(vision, language)}) {
      CAPTURE(world_size(layout));
      Gathered loaded;
      on_ranks(layout, scenario, [&](Run& run) {
        run.load(folder.path(), newest_checkpoint(folder.path()).value());
        loaded.add(run);
      });
      check_equal(saved, loaded);
    }
  }

  TEST_CASE("a resumed run continues with the same losses") {
    const TempFolder folder;
    std::vector<double> losses, resumed;
    const auto note = [](Run& run, std::vector<double>& list, std::uint64_t step) {
      const double loss = run.train(step);
      if (run.transport.rank().value == 0) list.push_back(loss);
    };
    on_ranks(homogeneous(2, 1, 1), tiny(), [&](Run& run) {
      for (std::uint64_t step = 0; step < 6; ++step) {
        if (step == 3) run.save(folder.path(), 3);
        note(run, losses, step);
      }
    });
    on_ranks(homogeneous(2, 1, 1), tiny(), [&](Run& run) {
      run.load(folder.path(), 3);
      for (std::uint64_t step = 3; step < 6; ++step) note(run, resumed, step);
    });
    CHECK(resumed == std::vector<double>(losses.begin() + 3, losses.end()));
  }

  TEST_CASE("frozen modules are saved without optimizer state") {
    const TempFolder folder;
    Scenario frozen = tiny();
    frozen.model.modules[0].trainable = Trainable::frozen;
    Gathered saved, loaded;
    on_ranks(homogeneous(2, 1, 1), frozen, [&](Run& run) {
      run.train(0);
      run.save(folder.path(), 1);
      saved.add(run);
    });
    CHECK(saved.whole.count("vision.norm.weight.m") == 0);
    on_ranks(homogeneous(1, 2, 1), frozen, [&](Run& run) {
      run.load(folder.path(), 1);
      loaded.add(run);
    });
    check_equal(saved, loaded);
    CHECK(load_refusal(folder.path()) ==
          folder / "step-1/manifest.json" +
              ": /parameters: vision.patch_embedding.weight was frozen when it was saved "
              "and has no optimizer state (resume with the scenario of the run that saved it)");
  }

  TEST_CASE("the newest checkpoints are kept; leftovers of a killed save are ignored and removed") {
    const TempFolder folder;
    CHECK_FALSE(newest_checkpoint(folder / "none").has_value());
    CHECK_FALSE(newest_checkpoint(folder.path()).has_value());
    spill(folder / "step-99.partial/rank-0.safetensors", "half");
    spill(folder / "notes.txt", "mine");
    CHECK_FALSE(newest_checkpoint(folder.path()).has_value());
    on_ranks(homogeneous(2, 1, 1), tiny(), [&](Run& run) {
      for (const int step : {1, 2, 10, 9}) run.save(folder.path(), step);
    });
    // 1 was removed when 10 was saved. 9 was saved after 10, which it leaves alone, and 2 is then
    // second.
    CHECK(entries(folder.path()) == Names{"notes.txt", "step-10", "step-2", "step-9"});
    CHECK(newest_checkpoint(folder.path()) == 10);
  }

  TEST_CASE("the best checkpoint stays besides the newest ones") {
    const TempFolder folder;
    on_ranks(homogeneous(2, 1, 1), tiny(), [&](Run& run) {
      for (const int step : {1, 2, 3}) run.save(folder.path(), step, {.newest = 1, .best = 1});
    });
    CHECK(entries(folder.path()) == Names{"step-1", "step-3"});
    on_ranks(homogeneous(2, 1, 1), tiny(),
             [&](Run& run) { run.save(folder.path(), 4, {.newest = 2, .best = 4}); });
    CHECK(entries(folder.path()) == Names{"step-3", "step-4"});
  }

  TEST_CASE("saving removes no files of others") {
    const TempFolder folder;
    spill(folder / "draft.partial/thesis.txt", "mine");
    on_ranks(homogeneous(1, 1, 1), tiny(), [&](Run& run) {
      run.save(folder.path(), 1);
      spill(folder / "step-1/notes.txt", "mine");
      for (const int step : {2, 3}) run.save(folder.path(), step);
    });
    CHECK(entries(folder.path()) == Names{"draft.partial", "step-1.partial", "step-2", "step-3"});
    CHECK(entries(folder / "step-1.partial") == Names{"notes.txt"});
    CHECK(slurp(folder / "draft.partial/thesis.txt") == "mine");
  }

  TEST_CASE("saving a step again replaces its checkpoint") {
    const TempFolder folder;
    Gathered saved, loaded;
    on_ranks(homogeneous(1, 1, 1), tiny(), [&](Run& run) {
      run.save(folder.path(), 5);
      run.train(0);
      run.save(folder.path(), 5);
      saved.add(run);
    });
    CHECK(entries(folder.path()) == Names{"step-5"});
    on_ranks(homogeneous(1, 1, 1), tiny(), [&](Run& run) {
      run.load(folder.path(), 5);
      loaded.add(run);
    });
    check_equal(saved, loaded);
  }

  TEST_CASE("a full disk leaves the previous checkpoint intact") {
    const TempFolder folder;
    save_one(folder.path());
    // A limit on the file size of the process simulates a small disk.
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const auto old_handler = signal(SIGXFSZ, SIG_IGN);
    const auto save_with = [&](rlim_t bytes) {
      return refusal([&] {
        on_ranks(homogeneous(2, 1, 1), tiny(), [&](Run& run) {
          run.train(0);
          if (run.transport.rank().value == 0) {
            const rlimit small{bytes, before.rlim_max};
            setrlimit(RLIMIT_FSIZE, &small);
          }
          run.save(folder.path(), 3);
        });
      });
    };
    const std::string in_a_file = save_with(100'000), at_once = save_with(0);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, old_handler);
    for (const std::string& message : {in_a_file, at_once}) {
      CAPTURE(message);
      CHECK(message.find(folder / "step-3.partial/rank-") == 0);
      CHECK(message.find(": cannot be written: File too large (free some disk space, or choose a "
                         "folder on another disk)") != std::string::npos);
    }
    CHECK(entries(folder.path()) == Names{"step-2"});
    CHECK(newest_checkpoint(folder.path()) == 2);
    CHECK(load_refusal(folder.path()).empty());
  }

  TEST_CASE("damaged checkpoints are rejected with file, reason and remedy") {
    const TempFolder folder;
    save_one(folder.path());
    REQUIRE(load_refusal(folder.path()).empty());
    const std::string step = folder / "step-2", manifest = step + "/manifest.json",
                      file = step + "/rank-1.safetensors";
    const std::string remedy = " (remove " + step + " to resume from the checkpoint before it)";
    const std::string good_manifest = slurp(manifest), good_file = slurp(file);

    spill(file, good_file.substr(0, good_file.size() - 1));
    CHECK(load_refusal(folder.path()) == file + ": has " + std::to_string(good_file.size() - 1) +
                                             " bytes, but must have " +
                                             std::to_string(good_file.size()) + remedy);
    std::string bent = good_file;
    bent[bent.size() - 100] = static_cast<char>(bent[bent.size() - 100] ^ 4);
    spill(file, bent);
    CHECK(load_refusal(folder.path()) ==
          file + ": is damaged: its checksum differs from the manifest's" + remedy);
    fs::remove(file);
    CHECK(load_refusal(folder.path()) == file + ": is missing: No such file or directory" + remedy);
    spill(file, good_file);

    fs::remove(manifest);
    CHECK(load_refusal(folder.path()) == manifest + ": cannot be read" + remedy);
    spill(manifest, good_manifest.substr(0, good_manifest.size() / 2));
    CHECK(load_refusal(folder.path()).find(manifest + ": not JSON: ") == 0);
    const auto edited = [&](const std::string& from, const std::string& to) {
      std::string text = good_manifest;
      text.replace(text.find(from), from.size(), to);
      spill(manifest, test::resealed_manifest(text));  // with a valid checksum
      return load_refusal(folder.path());
    };
    CHECK(edited("\"step\": 2", "\"step\": 3") ==
          manifest + ": /step: is 3, but the folder is of step 2" + remedy);
    CHECK(edited("\"rows 2/2\"", "\"rows 1/2\"").find(": /files: names 1 of 2 slices of ") !=
          std::string::npos);
    CHECK(edited("\"rows 2/2\"", "\"rows 3/2\"").find("\"rows 3/2\" is not a slice of ") !=
          std::string::npos);
    CHECK(edited("\"whole\"", "\"/\"").find("\"/\" is not a slice of ") != std::string::npos);
    CHECK(edited("rank-1.safetensors", "../rank-1.safetensors")
              .find("/files/1/name: must be a file name without a folder (restore the manifest)") !=
          std::string::npos);
    CHECK(edited("\"F32\"", "\"F64\"") ==
          manifest +
              ": /format: is F64, but this run trains in F32 (resume "
              "with the scenario of the run that saved it)");
    // 2 is "2", 6 is "6": one bit of the count of updates.
    std::string turned = good_manifest;
    const std::string updates = "\"optimizer_steps\": 2";
    turned.replace(turned.find(updates), updates.size(), "\"optimizer_steps\": 6");
    spill(manifest, turned);
    CHECK(load_refusal(folder.path()) ==
          manifest +
              ": /checksum: does not match: the manifest is damaged (restore the manifest, or "
              "use another checkpoint)");
    spill(manifest, good_manifest);
    CHECK(load_refusal(folder.path()).empty());
  }

  TEST_CASE("changed settings of a scenario are reported; a changed model is rejected") {
    const TempFolder folder;
    save_one(folder.path());
    Scenario other = tiny();
    other.data.seed = 7;
    other.training.learning_rate = 0.5;
    std::vector<std::string> changed;
    on_ranks(homogeneous(1, 1, 1), other, [&](Run& run) {
      run.load(folder.path(), 2);
      changed = run.changed;
    });
    CHECK(changed == Names{"data.seed was 1, is 7", "training.learning_rate was 0.001, is 0.5"});
    other = tiny();
    other.model.modules.back().rope_theta = 5e5;  // the same shapes
    CHECK(load_refusal(folder.path(), other)
              .find("step-2/manifest.json: /run: is of another model: model.language.rope_theta "
                    "was ") != std::string::npos);
  }

  TEST_CASE("a checkpoint of another model is rejected") {
    const TempFolder folder;
    save_one(folder.path());
    const std::string manifest =
        folder / "step-2/manifest.json: /parameters: is of another model: ";
    const std::string hint = " (resume with the scenario of the run that saved it)";
    Scenario other = tiny();
    other.model.modules.back().vocab = 128;
    CHECK(load_refusal(folder.path(), other) ==
          manifest +
              "language.embedding.weight is 64 × 32 in the checkpoint, 128 × 32 in this model" +
              hint);
    other = tiny();
    other.model.modules.back().layers = 5;
    CHECK(load_refusal(folder.path(), other) ==
          manifest + "it has no language.block4.norm1.weight" + hint);
    other.model.modules.back().layers = 3;
    CHECK(load_refusal(folder.path(), other) ==
          manifest + "this model has no language.block3.down.weight" + hint);
  }

  TEST_CASE("ranks that see different disks are reported") {
    const TempFolder folder;
    save_one(folder.path());
    const std::string steps = refusal([&] {
      on_ranks(homogeneous(2, 1, 1), tiny(), [&](Run& run) {
        run.load(folder.path(), 2 + static_cast<std::int64_t>(run.transport.rank().value));
      });
    });
    INFO(steps);
    CHECK(steps.find("rank 1 sees step 3 as the newest checkpoint, rank 0 step 2") !=
          std::string::npos);
    // Rank 0 or rank 1 reports first: "rank 1 does not see it", "rank 1 could not write its part".
    const TempFolder elsewhere;
    const std::string message = refusal([&] {
      on_ranks(homogeneous(2, 1, 1), tiny(), [&](Run& run) {
        run.save(run.transport.rank().value == 0 ? folder.path() : elsewhere.path(), 3);
      });
    });
    CAPTURE(message);
    CHECK(message.find("step-3.partial: ") != std::string::npos);
    CHECK(message.find("rank 1 ") != std::string::npos);
    CHECK(entries(folder.path()) == Names{"step-2"});
  }
}

}  // namespace polyphony::exec
