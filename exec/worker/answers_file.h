// Writes answers.jsonl of a run: what the model predicted for each label of the held-out samples of
// the last evaluation.
//
//   {"step": 40, "sample": 17, "right": false, "labels": [2163, 0], "predicted": [1770, 0],
//    "wanted": " yes<|endoftext|>", "answer": " no<|endoftext|>"}
//
// One line for each sample, in order. `sample` counts the held-out samples from 0; each token is
// predicted from the true tokens before it. `wanted` and `answer` are the texts of `labels` and
// `predicted`, if the data set has texts.
#pragma once

#include <cstdint>
#include <string>

#include "exec/data/dataset.h"
#include "exec/worker/evaluation.h"

namespace polyphony::exec {

// `answers`: of an evaluation that kept its labels. Throws as write_file() does.
void write_answers(const std::string& path, std::int64_t step, const Answers& answers,
                   const Dataset& dataset);

}  // namespace polyphony::exec
