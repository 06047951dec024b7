// polyphony scan: counts the samples of a data set on disk, for a recorded data source.
#include <iostream>
#include <map>

#include "shared/data/batch_json.h"
#include "shared/datasets/found.h"
#include "shared/model/data_modules.h"
#include "shared/program/work.h"
#include "shared/tokenizer/unicode.h"
#include "sim/cli/command.h"
#include "sim/console/console.h"
#include "sim/datasets/count.h"
#include "sim/datasets/pack.h"
#include "sim/datasets/shown_samples.h"
#include "sim/datasets/spreads.h"
#include "sim/shown_runs/shown_samples_text.h"
#include "sim/shown_runs/spreads_text.h"

namespace polyphony::sim {
namespace {

bool is_utf8(const Found& found) {
  return !tokenizing::first_invalid_byte(found.conversation.prompts()) &&
         !tokenizing::first_invalid_byte(found.conversation.answers());
}

// Shows what a run of the scenario would train on.
int show_samples(const Scenario& scenario, const Arguments& args) {
  const int count = args.integer("show");
  if (count < 1)
    throw InputError("--show", "", "must be at least 1, got " + std::to_string(count),
                     "3 shows the first three samples");
  for (const char* other : {"out", "native", "tokenizer", "bytes-per-token", "clip-tokens",
                            "pictures", "pack", "limit"})
    if (args.has(other))
      throw InputError(std::string("--") + other, "", "does not go with --show",
                       "leave one of the two out; --show reads what the scenario states");
  if (args.has("dataset"))
    throw InputError("--show", "", "shows the samples of the scenario's own data",
                     "leave out the data set " + args.text("dataset") +
                         ", or name it in the scenario as data.source.dataset");
  const ShownSamples samples =
      shown_samples(scenario, static_cast<std::size_t>(count), setup_downloads());
  for (const std::string& remark : samples.remarks) std::cerr << message_line(remark);
  if (args.json())
    std::cout << to_json(samples).dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
              << "\n";
  else
    std::cout << shown_samples_text(samples.samples);
  return 0;
}

}  // namespace

int scan_command(int argc, char** argv) {
  Arguments args(
      "scan",
      "Counts the tokens that a scenario's model would see of each sample of a data set, and "
      "writes "
      "one JSON line a sample. A scenario reads them as data.source {\"recorded\": FILE}: their "
      "shapes, `run` trains on random content.\n"
      "DATASET: a folder of images and audio files with a text file of the same name, WebDataset "
      "tar shards (one, or a folder of them), or JSON lines of conversations with paths of images "
      "and audio (LLaVA). Only headers are read.\n"
      "--show needs no DATASET: it prints what a run would train on.",
      "SCENARIO [DATASET]",
      "  polyphony scan my.json --show 3\n"
      "  polyphony scan my.json photos/ --native --out mix.jsonl\n"
      "  polyphony simulate my.json --set data.source='{\"recorded\": \"mix.jsonl\"}' --set "
      "data.images=null --set data.text=null --batches 40\n"
      "                             my.json has a layout; null removes its synthetic images and "
      "texts");
  args.add()("scenario",
             "scenario file: its model gives patch size, image size, merge, audio tokens",
             cxxopts::value<std::string>())("dataset", "folder, tar shards or JSON lines to count",
                                            cxxopts::value<std::string>())(
      "show",
      "print the first N samples of the scenario's conversations as the model reads them, with "
      "the template's marks, and which text is trained on",
      cxxopts::value<int>(), "N")("out", "file for the samples; the summary then goes to stdout",
                                  cxxopts::value<std::string>())(
      "native",
      "images keep their size, as the image processor of the model's weights rounds it "
      "(Qwen2-VL's); "
      "of other models, squares of whole cells of patches, at most the model's image size; without "
      "it all are scaled to the model's image size")(
      "tokenizer",
      "tokenizer.json (Hugging Face): texts are counted in its tokens, exactly; without it by "
      "bytes",
      cxxopts::value<std::string>())("bytes-per-token",
                                     "bytes of text counted as a token, without --tokenizer",
                                     cxxopts::value<double>()->default_value("4"))(
      "clip-tokens", "tokens of a second of audio", cxxopts::value<double>()->default_value("50"))(
      "pictures", "folder that paths in JSON lines start from; default: that of the file",
      cxxopts::value<std::string>())(
      "pack",
      "pack samples into sequences of so many language tokens (mask documents keeps their "
      "attention "
      "separate); 0: no packing",
      cxxopts::value<int>()->default_value("0"))("limit", "stop after so many samples; 0: all",
                                                 cxxopts::value<int>()->default_value("0"));
  args.add_overrides();
  args.add_phase();
  args.positional({"scenario", "dataset"});
  if (args.parse(argc, argv)) return 0;
  const Scenario scenario =
      read_scenario_file(args.require("scenario"), args.overrides(), args.phase());
  if (args.has("show")) return show_samples(scenario, args);
  const std::string path = args.require("dataset");
  const auto positive = [&](const char* option) {
    if (!(args.real(option) > 0))
      throw InputError("polyphony scan", "", std::string("--") + option + " must be more than 0",
                       "leave it out");
    return args.real(option);
  };
  const Counting by{
      args.has("native"), args.has("native") ? native_images(scenario) : std::nullopt,
      positive("clip-tokens"),
      args.has("tokenizer") ? std::optional(Tokenizer::load(args.text("tokenizer"))) : std::nullopt,
      positive("bytes-per-token")};

  std::vector<Sample> samples;
  std::map<std::string, int> left_out;
  std::map<std::string, std::string> first_left_out;
  const auto leave_out = [&](const std::string& name, const std::string& why) {
    if (left_out[why]++ == 0) first_left_out[why] = name;
  };
  {
    Progress progress("scan");
    find_samples(path, {.pictures = args.text("pictures"),
                        .visit =
                            [&](const Found& found) {
                              if (by.tokenizer && !is_utf8(found)) {
                                leave_out(found.name, "its text is not valid UTF-8");
                                return true;
                              }
                              const std::optional<Sample> known = count(scenario.model, found, by);
                              if (!known) {
                                leave_out(found.name, kTooLongPicture);
                                return true;
                              }
                              Sample sample = *known;
                              sample.id = static_cast<std::uint32_t>(samples.size());
                              if (const int most = scenario.data.sequence;
                                  most > 0 && language_rows(scenario.model, sample) > most) {
                                leave_out(found.name, "longer than /data/sequence");
                                return true;
                              }
                              samples.push_back(std::move(sample));
                              return args.integer("limit") < 1 ||
                                     samples.size() <
                                         static_cast<std::size_t>(args.integer("limit"));
                            },
                        .leave_out = leave_out,
                        .progress = [&](double share) { progress.show(share); }});
  }
  for (const auto& [why, times] : left_out)
    std::cerr << "left out: " << times << ", " << why << " (first: " << first_left_out[why] << ")"
              << ((why == kMissingPicture || why == kMissingSound) && !args.has("pictures")
                      ? "; --pictures names the folder that paths of images and audio start from"
                      : "")
              << "\n";
  if (samples.empty())
    throw InputError(path, "", "no sample was found",
                     "polyphony scan --help says what it reads: a folder, tar shards, JSON lines");
  const std::size_t found = samples.size();
  if (args.integer("pack") > 0) samples = pack(scenario.model, samples, args.integer("pack"));
  std::string lines;
  for (const Sample& sample : samples) lines += to_json_line(sample) + "\n";
  const std::vector<Spread> spreads = spreads_of(scenario.model, samples);
  if (args.has("out"))
    write_file(args.text("out"), lines);
  else
    std::cout << lines;
  std::ostream& talk = args.has("out") ? std::cout : std::cerr;
  if (args.json()) {
    talk << to_json(spreads, samples.size(), left_out).dump(2) << "\n";
  } else {
    talk << counted(static_cast<std::int64_t>(found), "sample", "samples") << " of " << path
         << (args.has("tokenizer")
                 ? std::string()
                 : "; text counted as " + number_text(args.real("bytes-per-token"), 1) +
                       " bytes a token (--tokenizer counts exactly)");
    if (args.integer("pack") > 0)
      talk << ", in "
           << counted(static_cast<std::int64_t>(samples.size()), "sequence", "sequences");
    talk << "\n" << spreads_text(spreads);
  }
  return 0;
}

}  // namespace polyphony::sim
