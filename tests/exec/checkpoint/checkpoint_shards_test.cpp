#include <mutex>
#include <random>
#include <set>

#include "exec/checkpoint/safetensors.h"
#include "shared/checkpoint/checkpoint_region.h"
#include "tests/exec/checkpoint/checkpoint_run.h"
#include "tests/exec/parameters/held_parameters.h"
#include "tests/shared/support/manifests.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

struct Grid {
  Shard shard = Shard::none;
  int tp = 1, shards = 1, replicas = 1;
  int ranks() const { return tp * shards * replicas; }
};
constexpr std::int64_t kUpdates = 41;

Program program_of(const Module& module, torch::Dtype dtype, int ranks) {
  Program program;
  program.model.modules = {module};
  program.precision = dtype == torch::kBFloat16  ? NumberFormat::bf16
                      : dtype == torch::kFloat64 ? NumberFormat::fp64
                                                 : NumberFormat::fp32;
  program.ranks = static_cast<std::uint32_t>(ranks);
  return program;
}

// A possible state after training: a distinct number for every element, by its global position.
void fill(HeldParameters& store) {
  const ShardIndex& place = store.options().place;
  int kind = 0;
  for (Tensor HeldPiece::* member : {&HeldPiece::first_moment, &HeldPiece::second_moment,
                                     &HeldPiece::master, &HeldPiece::value}) {
    ++kind;
    for (HeldPiece& piece : store.pieces()) {
      if (!(piece.*member).defined()) continue;
      const Tensor all =
          drawn(piece.parameter->spec, place, kind, 0, 0, (piece.*member).scalar_type());
      (piece.*member).copy_(all.view({-1}).narrow(0, piece.elements.begin, piece.elements.size()));
    }
  }
  if (store.options().shard != Shard::full)  // gathers what other shards have updated
    for (LocalParameter* p : store.parameters())
      p->value.copy_(drawn(p->spec, place, kind, 0, 0, p->value.scalar_type()));
}

// The parameters on one rank of a grid, and its part in checkpoints.
struct Holder {
  std::vector<LocalParameter> list;
  HeldParameters store;
  RankState state;
  Holder(const Module& module, torch::Dtype dtype, const Grid& grid, int rank)
      : list(locals(module, {.tensor = grid.tp, .tensor_index = rank % grid.tp}, dtype)),
        store(pointers(list), {.place = {.tensor = grid.tp, .tensor_index = rank % grid.tp},
                               .sequence_parallel = grid.tp > 1,
                               .shard = grid.shard,
                               .shards = grid.shards,
                               .shard_index = rank / grid.tp % grid.shards}) {
    state.groups.push_back({&store, rank / (grid.tp * grid.shards) == 0});
  }
};

void on_grid(const Grid& grid, const std::function<void(Transport&, int)>& body) {
  run_in_process(grid.ranks(), [&](Transport& transport) {
    torch::set_num_threads(1);
    body(transport, static_cast<int>(transport.rank().value));
  });
}

void save(const std::string& folder, const Module& module, torch::Dtype dtype, const Grid& grid,
          Gathered& saved) {
  on_grid(grid, [&](Transport& transport, int rank) {
    Holder holder(module, dtype, grid, rank);
    fill(holder.store);
    saved.add(holder.store);
    holder.state.updates = kUpdates;
    save_checkpoint(folder, 3, transport, holder.state, program_of(module, dtype, grid.ranks()));
  });
}
void load(const std::string& folder, const Module& module, torch::Dtype dtype, const Grid& grid,
          Gathered& loaded) {
  on_grid(grid, [&](Transport& transport, int rank) {
    Holder holder(module, dtype, grid, rank);
    load_checkpoint(folder, 3, transport, holder.state, program_of(module, dtype, grid.ranks()));
    CHECK(holder.state.updates == kUpdates);
    loaded.add(holder.store);
  });
}

// Elements of every tensor over all files.
std::map<std::string, std::int64_t> written(const std::string& folder) {
  std::map<std::string, std::int64_t> elements;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const Safetensors file(entry.path().string());
    for (const auto& [name, tensor] : file.entries()) {
      std::int64_t count = 1;
      for (const std::int64_t size : tensor.shape) count *= size;
      elements[name] += count;
    }
  }
  return elements;
}

}  // namespace

TEST_SUITE("checkpoint") {
  TEST_CASE("every sharding can load every other, and each element is written once") {
    const std::vector<Grid> grids = {{Shard::none, 1, 1, 1},      {Shard::none, 4, 1, 2},
                                     {Shard::optimizer, 2, 3, 1}, {Shard::gradients, 1, 4, 2},
                                     {Shard::full, 4, 2, 1},      {Shard::full, 1, 5, 1}};
    const Module module = module_under_test();  // 4 ranks share its 2 key/value heads
    for (const Grid& from : grids) {
      const TempFolder folder;
      Gathered saved;
      save(folder.path(), module, torch::kFloat32, from, saved);
      const auto elements = written(folder / "step-3");
      CHECK(elements.size() == 3 * parameters(module).size());
      for (const Parameter& parameter : parameters(module)) {
        CAPTURE(parameter.name);
        for (const char* suffix : {"", ".m", ".v"})
          CHECK(elements.at(parameter.name + suffix) == parameter.count());
      }
      for (const Grid& to : grids) {
        CAPTURE(name(from.shard));
        CAPTURE(name(to.shard));
        Gathered loaded;
        load(folder.path(), module, torch::kFloat32, to, loaded);
        check_equal(saved, loaded);
      }
    }
  }

  TEST_CASE("bf16 keeps its master weights, LoRA its frozen base, in any sharding") {
    Module low_rank = module_under_test();
    low_rank.trainable = Trainable::lora;
    low_rank.lora_rank = 3;
    for (const Module& module : {module_under_test(), low_rank}) {
      const TempFolder folder;
      Gathered saved;
      save(folder.path(), module, torch::kBFloat16, {Shard::optimizer, 2, 2, 2}, saved);
      CHECK((saved.whole
                 .at("language.block0.qkv." + std::string(module.lora_rank ? "lora_b" : "weight") +
                     ".master")
                 .scalar_type() == torch::kFloat32));
      for (const auto& [name, count] : written(folder / "step-3"))
        CHECK(count == saved.whole.at(name).numel());
      for (const Grid& to : {Grid{Shard::full, 4, 2, 1}, Grid{Shard::none, 1, 1, 1}}) {
        Gathered loaded;
        load(folder.path(), module, torch::kBFloat16, to, loaded);
        check_equal(saved, loaded);
      }
    }
  }

  TEST_CASE("a missing slice leaves elements out and is reported") {
    const TempFolder folder;
    Gathered saved;
    const Module module = module_under_test();
    save(folder.path(), module, torch::kFloat32, {Shard::full, 1, 2, 1}, saved);
    const std::string manifest = folder / "step-3/manifest.json";
    std::string text = slurp(manifest);
    const std::string whole = "\"language.embedding.weight\": \"whole\"";
    REQUIRE(text.find(whole) != std::string::npos);
    text.replace(text.find(whole), whole.size(),
                 "\"language.embedding.weight\": \"elements 0:300\"");
    spill(manifest, test::resealed_manifest(text));
    const std::string message = refusal([&] {
      Gathered loaded;
      load(folder.path(), module, torch::kFloat32, {}, loaded);
    });
    CHECK(message == manifest +
                         ": /files: names 300 of 368 elements of language.embedding.weight "
                         "(restore the manifest, or use another checkpoint)");
  }

  TEST_CASE("regions: text round trip, shares cover a parameter once, overlaps are exact") {
    Parameter plain{"plain", 0, {7, 5}}, rows = plain, columns = plain, heads, experts;
    rows.cut = Cut::rows;
    columns.cut = Cut::columns;
    heads = {.name = "heads", .shape = {(4 + 2 * 2) * 3, 5}, .cut = Cut::heads};
    heads.key_value_heads = 2;
    heads.group_heads = 2;
    heads.head_dim = 3;
    experts = {.name = "experts", .shape = {3, 4, 5}, .cut = Cut::columns};
    experts.expert = true;
    std::mt19937 random(3);
    for (const Parameter& parameter : {plain, rows, columns, heads, experts}) {
      CAPTURE(parameter.name);
      for (const int tensor : {1, 2, 4}) {
        for (const int expert : {1, 2}) {
          if (expert > 1 && !parameter.expert) continue;
          std::vector<int> seen(static_cast<std::size_t>(parameter.count()));
          for (int t = 0; t < tensor; ++t) {
            for (int e = 0; e < expert; ++e) {
              const bool cut = parameter.cut != Cut::replicated;
              const ShardIndex place = {cut ? tensor : 1, cut ? t : 0, expert, e};
              if (!cut && t > 0) continue;
              const std::int64_t local = parameter.local_count(place);
              const std::int64_t middle =
                  std::uniform_int_distribution<std::int64_t>(0, local)(random);
              for (const Interval& part : {Interval{0, middle}, Interval{middle, local}}) {
                const Region region{place, part};
                const std::string text = region.text(parameter);
                CAPTURE(text);
                CHECK((parse_region(parameter, text) == region));
                for (const ElementRun& run : region.runs(parameter)) {
                  CHECK(run.local >= 0);
                  CHECK(run.local + run.count <= part.size());
                  for (std::int64_t i = 0; i < run.count; ++i)
                    ++seen[static_cast<std::size_t>(run.global + i)];
                }
              }
            }
          }
          // Key and value rows of a shared head are on every rank that shares it.
          const bool shared = parameter.cut == Cut::heads && tensor > parameter.key_value_heads;
          const std::set<int> counts(seen.begin(), seen.end());
          CHECK(counts == (shared ? std::set<int>{1, 2} : std::set<int>{1}));
        }
      }
    }
    // Elements 2 to 4 and 8 of one, 0 to 2 and 4 to 8 of the other.
    const std::vector<ElementCopy> both = overlap({{0, 2, 3}, {3, 8, 1}}, {{0, 0, 3}, {3, 4, 5}});
    CHECK((both == std::vector<ElementCopy>{{0, 2, 1}, {2, 3, 1}, {3, 7, 1}}));
    for (const char* text : {"", "rows 1/2", "columns 1/2", "heads 3/2", "heads 1/3", "whole ",
                             "heads 1/2, ", "elements 0:121", "elements 0:120", "heads 1/8",
                             "elements 5", "heads 1/2, heads 1/2", "experts 1/2"}) {
      CAPTURE(text);
      CHECK_FALSE(parse_region(heads, text).has_value());
    }
    CHECK(parse_region(heads, "elements 1:120").has_value());
  }

  TEST_CASE("a checkpoint of four by two ranks is assembled on one") {
    const TempFolder folder;
    Gathered saved, loaded;
    on_ranks(homogeneous(4, 2, 1), tiny(), [&](Run& run) {
      run.train(0);
      run.save(folder.path(), 1);
      saved.add(run);
    });
    const std::filesystem::directory_iterator files(folder / "step-1"), end;
    CHECK(std::distance(files, end) == 9);
    on_ranks(homogeneous(1, 1, 1), tiny(), [&](Run& run) {
      run.load(folder.path(), 1);
      loaded.add(run);
    });
    check_equal(saved, loaded);
  }
}
