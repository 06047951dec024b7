// What became of every setting of a framework: the report of `polyphony import`.
#pragma once

#include <string>
#include <vector>

namespace polyphony::sim {

struct ImportReport {
  struct Line {
    std::string setting;  // as written: "--tensor-model-parallel-size 8"; empty: of no setting
    std::string place;    // "train.sh:12"
    std::string text;     // what it became, or why it does not matter
  };
  std::vector<Line> used;            // part of the scenario
  std::vector<Line> approximated;    // the scenario has the nearest that can be said
  std::vector<Line> not_modeled;     // changes time or memory, and no prediction knows it
  std::vector<Line> ignored;         // changes neither
  std::vector<Line> unknown;         // not understood
  std::vector<Line> contradictions;  // settings that exclude each other
  std::vector<Line> assumed;         // what no setting states
  // Arguments that a run printed and that are off or empty.
  int off = 0;
};

}  // namespace polyphony::sim
