// Summaries of prediction errors on published rows: by block, by part of a block, and across
// blocks, compared with a naive baseline. Duplicates and outliers are excluded everywhere.
//
// The naive baseline is time = F / (gpus · peak · e) · (1 + (pp − 1)/(vpp · microbatches)). F per
// token is 3 · (2 · weights used + 2 · layers · hidden · seq), with causal attention, plus one
// forward of the layers under full recomputation. The efficiency e is one value per block, GPU and
// precision: the median over the other rows (leave-one-out).
#pragma once

#include "sim/judged/statistics.h"
#include "sim/published/run.h"

namespace polyphony::sim {

// Fits the naive baseline: replaces RowResult::naive, which so far is the time at efficiency 1, by
// the baseline's step time. Removes it from rows that have no other row to fit e to.
void fit_naive(std::vector<RowResult>& results);

struct Group {
  Errors ours;
  Errors naive;  // over the rows that have a baseline
};
struct BlockSummary {
  std::string block;
  bool memory = false;
  std::size_t rows = 0, skipped = 0, duplicates = 0, outliers = 0;
  Group complete, assumed;       // complete rows (PublishedRow::complete), and the others
  std::optional<double> tau;     // mean over families with at least five layouts
  std::optional<double> regret;  // mean over questions
  std::size_t families = 0, questions = 0;
};
std::vector<BlockSummary> summarize_blocks(const std::vector<RowResult>& results);

// Rows of time of one block ("mbridge"), or of one framework over all blocks, by GPU and kind
// (dense, MoE, NVFP4); and by number format if a block has several.
struct Part {
  std::string of, part;  // the block or framework; the GPU and kind, or the format
  Group all;             // complete and assumed rows
};
std::vector<Part> summarize_parts(const std::vector<RowResult>& results);

}  // namespace polyphony::sim
