#include "sim/judged/smallest.h"

#include <algorithm>
#include <cmath>

#include "shared/chance/misses.h"
#include "shared/error.h"
#include "shared/statistics.h"
#include "traces/calibrate/evidence_prior.h"
#include "traces/calibrate/posterior.h"

namespace polyphony::sim {
namespace {

// Relative error of the published number itself. Runs of one layout at two sites differ by more,
// runs at one site by less.
constexpr double kMeasured = 0.01;

struct Fold {
  const char* name;
  Footing footing;
};
constexpr Fold kFolds[] = {{"family_out", Footing::known},
                           {"stack_out", Footing::foreign},
                           {"device_out", Footing::borrowed}};

struct Member {
  const RowResult* row = nullptr;
  double error = 0;             // ln(predicted / measured) by the fit without it
  std::vector<double> effects;  // that of expert GEMMs scaled to its own width
};
struct Family {
  std::string block;
  std::vector<Member> rows;
};

struct Predicted {
  double error = 0, half_width = 0, weight = 1;
};
struct Tally {
  std::size_t families = 0, evidence = 0, outliers = 0;
  std::vector<Predicted> before, after;
};

Member member_of(const RowResult& row, double error, const Widths& widths) {
  Member member{&row, error, row.belief->effects};
  for (std::size_t k = 0; k < member.effects.size(); ++k) {
    const auto& [key, stated] = *row.certainty.errors[k].begin();
    if (key == "grouped_efficiency" && stated > 0) member.effects[k] *= widths.experts / stated;
  }
  return member;
}

// What must be equal for a miss to count, as calibration asks it of scenarios: model, data,
// precision; and the device and the version of the software, which its log is of anyway.
std::string model_text(const PublishedRow& row) {
  std::string text =
      row.model + " " + row.precision + " " + row.stack + " " + row.gpu_type + " " + row.software;
  for (const auto& number : {row.layers, row.hidden, row.heads, row.kv_heads, row.ffn, row.vocab,
                             row.experts, row.moe_ffn, row.seq, row.global_batch})
    text += " " + (number ? std::to_string(*number) : "-");
  return text;
}

std::vector<double> widened(std::vector<double> effects, const std::vector<double>& by) {
  for (std::size_t k = 0; k < effects.size(); ++k) effects[k] *= by[k];
  return effects;
}

void predict_others(const Family& family, std::size_t evidence, double weight, Footing footing,
                    const Widths& widths, Tally& tally) {
  const Member& known = family.rows[evidence];
  const int freedom = known.row->belief->freedom;
  const double reach = central(kScored, freedom);
  const traces::EvidencePrior prior =
      traces::evidence_prior(known.row->certainty.errors, known.effects, footing,
                             {widths.known, widths.foreign, widths.borrowed});
  const traces::PosteriorFit fit = traces::fit_posterior(
      {{-known.error, widened(known.effects, prior.widening), std::hypot(prior.own, kMeasured)}},
      known.effects.size(), freedom);
  tally.outliers += fit.unseen.front().outlier;
  ++tally.evidence;
  const std::vector<double> known_effects = widened(known.effects, prior.widening);
  Certainty left;
  left.residual = prior.own;
  left.layout_error = widths.layout;
  left.tensor_error = widths.tensor;
  left.freedom = freedom;
  if (!fit.unseen.front().outlier)
    left.misses.push_back({known.row->row.id,
                           model_text(known.row->row),
                           known.row->layout,
                           -known.error - fit.posterior.shift(known_effects),
                           kMeasured,
                           {}});
  for (std::size_t i = 0; i < family.rows.size(); ++i) {
    if (i == evidence) continue;
    const Member& other = family.rows[i];
    tally.before.push_back({other.error, reach * scale_of(*other.row, footing, widths), weight});
    std::vector<double> effects = widened(other.effects, prior.widening);
    const double shift = fit.posterior.shift(effects);
    MissAt miss{0, prior.own, {}};
    if (const Misses misses(left, model_text(other.row->row)); misses.any()) {
      miss = misses.at(other.row->layout);
      for (std::size_t k = 0; k < effects.size(); ++k)
        effects[k] -= miss.weights.front() * known_effects[k];
    }
    tally.after.push_back({other.error + shift + miss.mean,
                           reach * std::hypot(fit.posterior.deviation(effects), miss.left),
                           weight});
  }
}

void add_family(const Family& family, Footing footing, const HeldOut& held_out, Tally& tally) {
  const auto without = held_out.without_block.find(family.block);
  const Widths& widths =
      without != held_out.without_block.end() ? without->second : *held_out.widths;
  int fewest = *family.rows.front().row->row.gpus;
  for (const Member& member : family.rows) fewest = std::min(fewest, *member.row->row.gpus);
  std::vector<std::size_t> smallest;
  for (std::size_t i = 0; i < family.rows.size(); ++i)
    if (*family.rows[i].row->row.gpus == fewest) smallest.push_back(i);
  ++tally.families;
  for (const std::size_t evidence : smallest)
    predict_others(family, evidence, 1 / static_cast<double>(smallest.size()), footing, widths,
                   tally);
}

SmallestSide side_of(std::vector<Predicted> rows) {
  SmallestSide side;
  double whole = 0;
  for (const Predicted& row : rows) {
    whole += row.weight;
    side.mean += row.weight * std::abs(row.error);
    side.inside += row.weight * (std::abs(row.error) <= row.half_width);
    side.half_width += row.weight * row.half_width;
  }
  side.mean /= whole;
  side.inside /= whole;
  side.half_width /= whole;
  std::sort(rows.begin(), rows.end(), [](const Predicted& a, const Predicted& b) {
    return std::abs(a.error) < std::abs(b.error);
  });
  double below = 0;
  for (const Predicted& row : rows) {
    side.median = std::abs(row.error);
    if ((below += row.weight) >= whole / 2) break;
  }
  return side;
}

SmallestFit fit_of(const std::string& block, Footing footing, const Tally& tally) {
  SmallestFit fit{block,          footing, tally.families,        tally.evidence,
                  tally.outliers, 0,       side_of(tally.before), side_of(tally.after)};
  for (const Predicted& row : tally.after) fit.rows += row.weight;
  return fit;
}

void append(const Tally& from, Tally& to) {
  to.families += from.families;
  to.evidence += from.evidence;
  to.outliers += from.outliers;
  to.before.insert(to.before.end(), from.before.begin(), from.before.end());
  to.after.insert(to.after.end(), from.after.begin(), from.after.end());
}

}  // namespace

std::vector<SmallestFit> fit_smallest(const std::vector<RowResult>& results,
                                      const HeldOut& held_out) {
  POLYPHONY_CHECK(held_out.widths, "held_out.json has no widths");
  std::vector<SmallestFit> table, sums;
  for (const Fold& fold : kFolds) {
    const auto unseen = held_out.unseen.find(fold.name);
    if (unseen == held_out.unseen.end()) continue;
    std::map<std::pair<std::string, std::string>, Family> families;
    for (const RowResult& row : results) {
      const auto error = unseen->second.find(row.row.id);
      if (!row.counts() || !row.belief || !row.row.gpus || error == unseen->second.end()) continue;
      const auto without = held_out.without_block.find(row.row.block);
      Family& family = families[{row.row.block, row.row.family}];
      family.block = row.row.block;
      family.rows.push_back(
          member_of(row, error->second,
                    without != held_out.without_block.end() ? without->second : *held_out.widths));
    }
    std::map<std::string, Tally> blocks;
    Tally all;
    for (const auto& [key, family] : families)
      if (family.rows.size() > 1) add_family(family, fold.footing, held_out, blocks[family.block]);
    for (const auto& [block, tally] : blocks) {
      table.push_back(fit_of(block, fold.footing, tally));
      append(tally, all);
    }
    if (all.families > 0) sums.push_back(fit_of("", fold.footing, all));
  }
  table.insert(table.end(), sums.begin(), sums.end());
  return table;
}

}  // namespace polyphony::sim
