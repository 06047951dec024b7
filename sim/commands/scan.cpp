// polyphony scan: counts the samples of a data set on disk, for a recorded data source.
#include <algorithm>
#include <iostream>
#include <map>

#include "shared/data/batch_json.h"
#include "shared/model/data_modules.h"
#include "shared/program/work.h"
#include "sim/cli/command.h"
#include "sim/console/console.h"
#include "sim/datasets/count.h"
#include "sim/datasets/found.h"
#include "sim/datasets/pack.h"

namespace polyphony::sim {
namespace {

// One line of the summary: a count by sample, ascending.
struct Spread {
  const char* key;   // in JSON
  const char* what;  // in the table
  std::vector<std::int64_t> values;
  std::int64_t at(double share) const {
    return values.empty()
               ? 0
               : values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  }
};

std::vector<Spread> spreads_of(const Model& model, const std::vector<Sample>& samples) {
  std::vector<Spread> all{{"pictures", "images", {}},
                          {"patches of one", "patches of an image", {}},
                          {"sounds", "audio clips", {}},
                          {"clip tokens of one", "tokens of a clip", {}},
                          {"text tokens", "text tokens", {}},
                          {"of them labels", "text tokens with loss", {}},
                          {"language tokens", "language tokens", {}}};
  for (const Sample& sample : samples) {
    std::int64_t pictures = 0, sounds = 0;
    for (const Item& item : sample.items) {
      if (item.modality == Modality::image) all[1].values.push_back(item.tokens);
      if (item.modality == Modality::audio) all[3].values.push_back(item.tokens);
      pictures += item.modality == Modality::image;
      sounds += item.modality == Modality::audio;
      if (item.modality != Modality::text) continue;
      all[4].values.push_back(item.tokens);
      all[5].values.push_back(item.loss_tokens);
    }
    all[0].values.push_back(pictures);
    all[2].values.push_back(sounds);
    all[6].values.push_back(language_rows(model, sample));
  }
  for (Spread& spread : all) std::sort(spread.values.begin(), spread.values.end());
  return all;
}

void print_table(const std::vector<Spread>& spreads, std::ostream& out) {
  Table table({"of a sample", "least", "median", "90 %", "99 %", "most"});
  for (const Spread& spread : spreads)
    if (spread.at(1) > 0) {
      std::vector<std::string> row{spread.what};
      for (const double share : {0.0, 0.5, 0.9, 0.99, 1.0})
        row.push_back(count_text(spread.at(share)));
      table.add(row);
    }
  out << table.text();
}

nlohmann::ordered_json summary(const std::vector<Spread>& spreads, std::size_t samples,
                               const std::map<std::string, int>& left_out) {
  nlohmann::ordered_json json = {{"samples", samples}};
  for (const Spread& spread : spreads)
    json["spread"][spread.key] = {{"least", spread.at(0)},
                                  {"median", spread.at(0.5)},
                                  {"p90", spread.at(0.9)},
                                  {"p99", spread.at(0.99)},
                                  {"most", spread.at(1)}};
  json["left_out"] = left_out;
  return json;
}

}  // namespace

int scan_command(int argc, char** argv) {
  Arguments args(
      "scan",
      "Counts the tokens that a scenario's model would see of each sample of a data set, and "
      "writes "
      "one JSON line a sample. A scenario reads them as data.source {\"recorded\": FILE}: their "
      "shapes, `run` trains on random content.\n"
      "DATASET: a folder of images with a text and perhaps an audio file of the same name, "
      "WebDataset "
      "tar shards (one, or a folder of them), or JSON lines of conversations with paths of images "
      "(LLaVA). Only the headers of images are read.",
      "SCENARIO DATASET",
      "  polyphony scan my.json photos/ --native --out mix.jsonl\n"
      "  polyphony simulate my.json --set data.source='{\"recorded\": \"mix.jsonl\"}' --set "
      "data.images=null --set data.text=null --batches 40\n"
      "                             my.json has a layout; null removes its synthetic images and "
      "texts");
  args.add()("scenario",
             "scenario file: its model gives patch size, image size, merge, audio tokens",
             cxxopts::value<std::string>())("dataset", "folder, tar shards or JSON lines to count",
                                            cxxopts::value<std::string>())(
      "out", "file for the samples; the summary then goes to stdout",
      cxxopts::value<std::string>())(
      "native",
      "images keep their size (rounded to whole cells of patches, at most the model's image size); "
      "without it all are scaled to the model's image size")(
      "tokenizer", "tokenizer.json of a byte-level BPE tokenizer", cxxopts::value<std::string>())(
      "bytes-per-token", "bytes of text counted as a token, without --tokenizer",
      cxxopts::value<double>()->default_value("4"))("clip-tokens", "tokens of a second of audio",
                                                    cxxopts::value<double>()->default_value("50"))(
      "pictures", "folder that image paths in JSON lines start from; default: that of the file",
      cxxopts::value<std::string>()->default_value(""))(
      "pack",
      "pack samples into sequences of so many language tokens (mask documents keeps their "
      "attention "
      "separate); 0: no packing",
      cxxopts::value<int>()->default_value("0"))("limit", "stop after so many samples; 0: all",
                                                 cxxopts::value<int>()->default_value("0"));
  args.add_overrides();
  args.positional({"scenario", "dataset"});
  if (args.parse(argc, argv)) return 0;
  const Scenario scenario = read_scenario_file(args.require("scenario"), args.overrides());
  const std::string path = args.require("dataset");
  const auto positive = [&](const char* option) {
    if (!(args.real(option) > 0))
      throw InputError("polyphony scan", "", std::string("--") + option + " must be more than 0",
                       "leave it out");
    return args.real(option);
  };
  const Counting by{args.has("native"), positive("clip-tokens"),
                    args.has("tokenizer") ? Tokenizer::from_file(args.text("tokenizer"))
                                          : Tokenizer(positive("bytes-per-token"))};

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
                              Sample sample = count(scenario.model, found, by);
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
              << (why.starts_with(kMissingPicture) && !args.has("pictures")
                      ? "; --pictures names the folder that image paths start from"
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
    talk << summary(spreads, samples.size(), left_out).dump(2) << "\n";
  } else {
    talk << counted(static_cast<std::int64_t>(found), "sample", "samples") << " of " << path
         << (args.has("tokenizer")
                 ? std::string()
                 : "; text counted as " + number_text(args.real("bytes-per-token"), 1) +
                       " bytes a token (--tokenizer counts exactly)");
    if (args.integer("pack") > 0)
      talk << ", in "
           << counted(static_cast<std::int64_t>(samples.size()), "sequence", "sequences");
    talk << "\n";
    print_table(spreads, talk);
  }
  return 0;
}

}  // namespace polyphony::sim
