// The grids of one module on its ranks that a search may take, one coordinate after another
// (shared/search/space.h says which where the search has no list). Used by Space alone.
#pragma once

#include <vector>

#include "shared/search/space.h"

namespace polyphony {

// Of a tensor-parallel product's rows.
std::vector<int> piece_choices(const ModuleSearch& search, const ModuleLayout& grid);

class ModuleGrids {
 public:
  // `blocks`: of all modules in the grid's pipeline. All must outlive it.
  ModuleGrids(const Scenario& scenario, const Module& module, int blocks,
              const ModuleSearch& search, Placement placement, bool virtual_stages, bool pipelined,
              Rejections& rejections);
  // Legal by themselves; the others are among the rejections. Once.
  std::vector<ModuleLayout> on(const RankRange& ranks);

 private:
  void pipelines(ModuleLayout grid);
  void experts(ModuleLayout grid);
  void shards(ModuleLayout grid);
  void deals(ModuleLayout grid);
  void keep(const ModuleLayout& grid);
  void refuse(const std::string& why);

  const Cluster& cluster_;
  const Module& module_;
  const int blocks_;
  const ModuleSearch& search_;
  Placement placement_;
  bool virtual_stages_, pipelined_;
  TokenAssignment even_deal_;
  Rejections& rejections_;
  std::vector<ModuleLayout> found_;
};

}  // namespace polyphony
