// polyphony scan: the samples of a data set on disk, as a recorded data source reads them.
#include <algorithm>
#include <iostream>
#include <map>

#include "shared/data/batch_json.h"
#include "shared/model/data_modules.h"
#include "shared/program/work.h"
#include "sim/cli/command.h"
#include "sim/console/console.h"
#include "sim/datasets/count.h"
#include "sim/datasets/pack.h"

namespace polyphony::sim {
namespace {

// One line of the summary: of every sample that has any.
struct Spread {
  const char* what;
  std::vector<std::int64_t> values;
  std::int64_t at(double share) const {
    return values.empty()
               ? 0
               : values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  }
};

std::vector<Spread> spreads_of(const Model& model, const std::vector<Sample>& samples) {
  std::vector<Spread> all{{"pictures", {}},       {"patches of one", {}},
                          {"sounds", {}},         {"clip tokens of one", {}},
                          {"text tokens", {}},    {"of them labels", {}},
                          {"language tokens", {}}};
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
  Table table({"a sample's", "least", "median", "90 %", "99 %", "most"});
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
    json["spread"][spread.what] = {{"least", spread.at(0)},
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
      "Counts what a scenario's model would see of a data set: one JSON line a sample, which a "
      "scenario "
      "reads as data.source {\"recorded\": FILE}.\nDATASET: a folder of pictures with a text and "
      "perhaps a "
      "sound of the same name, WebDataset tar shards (one, or a folder of them), or JSON lines of "
      "conversations with paths of pictures. Of pictures the headers are read, no pixel.",
      "SCENARIO DATASET",
      "  polyphony scan scenarios/easy_vqa.json photos/ --native --out mix.jsonl\n  polyphony "
      "simulate "
      "my.json --set data.source='{\"recorded\": \"mix.jsonl\"}' --batches 40");
  args.add()("scenario", "whose model: patch, image size, merge, audio tokens",
             cxxopts::value<std::string>())("dataset", "what is scanned",
                                            cxxopts::value<std::string>())(
      "out", "file for the samples; the summary then goes to stdout",
      cxxopts::value<std::string>())(
      "native",
      "pictures keep their size, as near as a square of whole cells comes, up to the model's image "
      "size; without: all are scaled to it")(
      "tokenizer", "tokenizer.json of a byte-level BPE tokenizer", cxxopts::value<std::string>())(
      "bytes-per-token", "of text, without a tokenizer",
      cxxopts::value<double>()->default_value("4"))("clip-tokens", "of sound, a second",
                                                    cxxopts::value<double>()->default_value("50"))(
      "pictures", "folder that the paths in JSON lines are from",
      cxxopts::value<std::string>()->default_value(""))(
      "pack",
      "put samples side by side into sequences of so many language tokens (mask documents keeps "
      "them apart); 0: not",
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
    std::cerr << "left out: " << times << ", " << why << " (first: " << first_left_out[why]
              << ")\n";
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
    talk << counted(static_cast<std::int64_t>(found), "sample", "samples") << " of " << path;
    if (args.integer("pack") > 0)
      talk << ", in "
           << counted(static_cast<std::int64_t>(samples.size()), "sequence", "sequences");
    talk << "\n";
    print_table(spreads, talk);
  }
  return 0;
}

}  // namespace polyphony::sim
