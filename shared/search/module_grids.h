// Lists the grids of one module on its ranks that a search may use, one coordinate after another
// (shared/search/space.h states the values where the search has no list). Used by Space alone.
#pragma once

#include <vector>

#include "shared/search/space.h"

namespace polyphony {

// Returns the choices for tp_pieces.
std::vector<int> piece_choices(const ModuleSearch& search, const ModuleLayout& grid);

class ModuleGrids {
 public:
  // `blocks`: number of blocks of all modules in the grid's pipeline. All arguments must outlive
  // it.
  ModuleGrids(const Scenario& scenario, const Module& module, int blocks,
              const ModuleSearch& search, Placement placement, bool virtual_stages, bool pipelined,
              Rejections& rejections);
  // Returns the grids that are legal by themselves; the others are added to the rejections. May be
  // called once.
  std::vector<ModuleLayout> on(const RankRange& ranks);

 private:
  void pipelines(ModuleLayout grid);
  void experts(ModuleLayout grid);
  void shards(ModuleLayout grid);
  void context_parallelism(ModuleLayout grid);
  void keep(const ModuleLayout& grid);
  void refuse(const std::string& why);

  const Cluster& cluster_;
  const Module& module_;
  const int blocks_;
  const ModuleSearch& search_;
  Placement placement_;
  bool virtual_stages_, pipelined_;
  TokenAssignment even_tokens_;
  Rejections& rejections_;
  std::vector<ModuleLayout> found_;
};

}  // namespace polyphony
