#include "shared/plan/links.h"

#include <algorithm>
#include <map>

#include "shared/chunk/sizes.h"
#include "shared/error.h"
#include "shared/program/sample_mask.h"
#include "shared/work/rows.h"

namespace polyphony {
namespace {

int stack_size(const Model& model, ModuleId module) {
  return static_cast<int>(layers(model.modules[module.value]).size());
}

bool is_language(const Model& model, ModuleId module) {
  return model.modules[module.value].kind == ModuleKind::language;
}

// What both sides of an edge can identify: an item's rows, or the tokens of a whole sample.
struct Source {
  std::uint32_t sample = 0;
  std::uint32_t item = kWhole;
  static constexpr std::uint32_t kWhole = 0xffffffffu;
  auto operator<=>(const Source&) const = default;
};
// Rows [begin, begin + rows) of a source lie at [row, …) of a work's own rows.
struct Piece {
  Source source;
  std::int64_t begin = 0, rows = 0;
  std::uint32_t work = 0;
  std::int64_t row = 0;
};

class Axes {
 public:
  Axes(const Model& model, const WorkTable& table, const Batch& batch)
      : model_(model), table_(table), batch_(batch) {
    for (std::size_t m = 0; m < model.modules.size(); ++m)
      for (int k = 0; k < kModalities; ++k)
        taken_.push_back(takes(model, ModuleId(m), static_cast<Modality>(k)));
  }

  // Appends the rows of a work that the first `layers_run` layers of a module produce. Class
  // tokens have rows, but belong to no item.
  void made(ModuleId module, int layers_run, const Work& work, std::uint32_t number,
            std::vector<Piece>& pieces) const {
    if (is_language(model_, module))
      tokens(work, number, pieces);
    else
      items(module, has_class_rows(model_.modules[module.value], layers_run) ? 1 : 0, work, number,
            pieces);
  }

  // Appends the rows that arrive over an edge from `source` at a module's work.
  void taken(ModuleId source, ModuleId consumer, const Work& work, std::uint32_t number,
             std::vector<Piece>& pieces) const {
    if (is_language(model_, consumer)) {
      image_tokens(source, work, number, pieces);
    } else if (is_language(model_, source)) {
      std::int64_t row = 0;  // conditioning, item by item
      each_item(consumer, work, [&](std::uint32_t sample, std::uint32_t place, const Item&) {
        const Interval read = condition_rows(model_, batch_.samples[sample], place);
        pieces.push_back({{sample, Source::kWhole}, read.begin, read.size(), number, row});
        row += read.size();
      });
    } else {
      items(source, 0, work, number, pieces);  // a projector takes what its source made
    }
  }

 private:
  template <class Visit>
  void each_item(ModuleId module, const Work& work, Visit visit) const {
    for (std::uint32_t i = work.items.begin; i < work.items.end; ++i) {
      const ItemOfWork& place = table_.items_of_works[i];
      const Item& item = batch_.samples[place.sample].items[place.item];
      if (takes_item(module, item)) visit(place.sample, place.item, item);
    }
  }

  // Before the rows of each item there are `before` rows that belong to no item.
  void items(ModuleId module, std::int64_t before, const Work& work, std::uint32_t number,
             std::vector<Piece>& pieces) const {
    std::int64_t row = 0;
    each_item(module, work, [&](std::uint32_t sample, std::uint32_t place, const Item& item) {
      const std::int64_t rows = item_rows(model_, module, item);
      row += before;
      pieces.push_back({{sample, place}, 0, rows, number, row});
      row += rows;
    });
  }

  // Calls visit(interval of the packed axis, its first row among the work's own).
  template <class Visit>
  void each_interval(const Work& work, Visit visit) const {
    std::int64_t row = 0;
    for (std::uint32_t i = work.rows.begin; i < work.rows.end; ++i) {
      visit(table_.work_rows[i], row);
      row += table_.work_rows[i].size();
    }
  }

  void tokens(const Work& work, std::uint32_t number, std::vector<Piece>& pieces) const {
    each_interval(work, [&](const Interval& interval, std::int64_t row) {
      std::int64_t first = 0;
      for (std::uint32_t i = work.samples.begin; i < work.samples.end; ++i) {
        const std::uint32_t sample = table_.work_samples[i];
        const std::int64_t rows = language_rows(model_, batch_.samples[sample]);
        const std::int64_t begin = std::max(first, interval.begin),
                           end = std::min(first + rows, interval.end);
        if (begin < end)
          pieces.push_back({{sample, Source::kWhole},
                            begin - first,
                            end - begin,
                            number,
                            row + begin - interval.begin});
        first += rows;
      }
    });
  }

  // Appends the tokens of items that `source` feeds, numbered among themselves: the rows of the
  // chunk's input are these tokens alone, in the order of the packed axis.
  void image_tokens(ModuleId source, const Work& work, std::uint32_t number,
                    std::vector<Piece>& pieces) const {
    std::int64_t row = 0;
    each_interval(work, [&](const Interval& interval, std::int64_t) {
      std::int64_t first = 0;
      for (std::uint32_t i = work.samples.begin; i < work.samples.end; ++i) {
        const std::uint32_t number_of = table_.work_samples[i];
        const std::vector<Item>& list = batch_.samples[number_of].items;
        for (std::uint32_t k = 0; k < list.size(); ++k) {
          const std::int64_t rows = language_rows(model_, list[k]);
          const std::int64_t begin = std::max(first, interval.begin),
                             end = std::min(first + rows, interval.end);
          if (begin < end && takes_item(source, list[k])) {
            pieces.push_back({{number_of, k}, begin - first, end - begin, number, row});
            row += end - begin;
          }
          first += rows;
        }
      }
    });
  }

  bool takes_item(ModuleId module, const Item& item) const {
    return taken_[module.value * kModalities + static_cast<std::size_t>(item.modality)];
  }

  static constexpr int kModalities = static_cast<int>(Modality::latent) + 1;
  const Model& model_;
  const WorkTable& table_;
  const Batch& batch_;
  std::vector<bool> taken_;  // by module, modality
};

}  // namespace

int edge_end(const Model& model, const Edge& edge) {
  if (edge.from_layer >= 0) return edge.from_layer + 1;
  return stack_size(model, edge.from) - (is_language(model, edge.from) ? 1 : 0);
}

std::vector<ChunkInput> chunk_inputs(const Model& model, const Chunk& chunk) {
  std::vector<ChunkInput> inputs;
  const Module& module = model.modules[chunk.module.value];
  if (chunk.layers.begin > 0)
    inputs.push_back(
        {-1, chunk.module, chunk.layers.begin, module.hidden, needs_backward(model, chunk.module)});
  for (std::size_t e = 0; e < model.edges.size(); ++e) {
    const Edge& edge = model.edges[e];
    if (edge.to != chunk.module) continue;
    if (edge.to_layer != chunk.layers.begin && module.kind != ModuleKind::diffusion) continue;
    const int end = edge_end(model, edge);
    const Module& source = model.modules[edge.from.value];
    inputs.push_back({static_cast<int>(e), edge.from, end,
                      end == stack_size(model, edge.from) ? output_width(source) : source.hidden,
                      needs_backward(model, edge.from)});
  }
  return inputs;
}

std::vector<ChunkLink> make_links(const Model& model, const Plan& plan) {
  std::map<std::pair<ModuleId, int>, ChunkPlace> ends;  // by module and layers that have run
  const auto each_chunk = [&](auto visit) {
    for (std::size_t b = 0; b < plan.branches.size(); ++b)
      for (std::size_t s = 0; s < plan.branches[b].stages.size(); ++s)
        for (std::size_t c = 0; c < plan.branches[b].stages[s].chunks.size(); ++c)
          visit(ChunkPlace{b, s, c}, plan.branches[b].stages[s].chunks[c]);
  };
  each_chunk([&](const ChunkPlace& place, const Chunk& chunk) {
    ends[{chunk.module, chunk.layers.end}] = place;
  });
  std::vector<ChunkLink> links;
  each_chunk([&](const ChunkPlace& place, const Chunk& chunk) {
    const std::vector<ChunkInput> inputs = chunk_inputs(model, chunk);
    for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
      const ChunkInput& input = inputs[slot];
      const auto producer = ends.find({input.source, input.source_end});
      POLYPHONY_CHECK(producer != ends.end(), "no chunk ends after layer "
                                                  << input.source_end << " of "
                                                  << model.modules[input.source.value].name);
      const ChunkPlace& from = producer->second;
      const Branch& branch = plan.branches[place.branch];
      // Encoders divide items over context-parallel ranks, the language module divides tokens, so
      // that with several of them rows change ranks at an edge. A diffusion module takes the
      // language module's tokens of those samples that it works on.
      const bool makes_tokens = is_language(model, input.source),
                 takes_tokens = is_language(model, chunk.module);
      const bool drops_rows =
          input.edge >= 0 && has_class_rows(model.modules[input.source.value], input.source_end);
      const bool same_rows =
          !drops_rows && (makes_tokens == takes_tokens || (takes_tokens && branch.grid.cp == 1));
      links.push_back({from, place, static_cast<std::uint8_t>(slot), input,
                       from.branch == place.branch && from.stage == place.stage && same_rows});
    }
  });
  return links;
}

RowRuns make_runs(const Model& model, const Plan& plan, const ChunkLink& link,
                  const WorkTable& table, const Batch& batch) {
  RowRuns result;
  std::vector<RowRun>& runs = result.runs;
  const std::size_t from_branch = link.producer.branch, to_branch = link.consumer.branch;
  const Chunk& consumer =
      plan.branches[to_branch].stages[link.consumer.stage].chunks[link.consumer.chunk];
  const auto work = [&](std::size_t branch, std::uint32_t w) -> const Work& {
    return table.works[table.first_work[branch] + w];
  };
  const std::uint32_t to_works = table.of_branch(to_branch).size();
  result.taken.resize(to_works);
  if (link.input.edge < 0) {
    for (std::uint32_t w = 0; w < to_works; ++w) {
      const std::int64_t rows =
          rows_leaving(model.modules[consumer.module.value], consumer.layers.begin,
                       work_size(model, consumer.module, batch, table, work(to_branch, w)));
      result.taken[w] = rows;
      if (rows > 0) runs.push_back({w, w, 0, 0, rows});
    }
    return result;
  }
  const Axes axes(model, table, batch);
  std::vector<Piece> pieces;
  for (std::uint32_t w = 0; w < table.of_branch(from_branch).size(); ++w)
    axes.made(link.input.source, link.input.source_end, work(from_branch, w), w, pieces);
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::pair(a.source, a.begin) < std::pair(b.source, b.begin);
  });
  std::vector<Piece> wanted;
  for (std::uint32_t w = 0; w < to_works; ++w)
    axes.taken(link.input.source, consumer.module, work(to_branch, w), w, wanted);
  // Of copies, a rank takes the one of its own context, which is its own where ranks are shared.
  const ModuleLayout& from_grid = plan.branches[from_branch].grid;
  const auto is_source = [&](const Piece& made, const Piece& want) {
    return !from_grid.copies_items() ||
           work(from_branch, made.work).context ==
               work(to_branch, want.work).context % static_cast<std::uint32_t>(from_grid.cp);
  };
  for (const Piece& want : wanted) {
    result.taken[want.work] = std::max(result.taken[want.work], want.row + want.rows);
    auto piece = std::lower_bound(pieces.begin(), pieces.end(), want.source,
                                  [](const Piece& p, const Source& s) { return p.source < s; });
    std::int64_t found = 0;
    for (; piece != pieces.end() && piece->source == want.source; ++piece) {
      const std::int64_t begin = std::max(piece->begin, want.begin),
                         end = std::min(piece->begin + piece->rows, want.begin + want.rows);
      if (begin >= end || !is_source(*piece, want)) continue;
      found += end - begin;
      const RowRun run{piece->work, want.work, piece->row + begin - piece->begin,
                       want.row + begin - want.begin, end - begin};
      RowRun* last = runs.empty() ? nullptr : &runs.back();
      if (last && last->consumer_work == run.consumer_work &&
          last->producer_work == run.producer_work && last->from + last->rows == run.from &&
          last->to + last->rows == run.to)
        last->rows += run.rows;
      else
        runs.push_back(run);
    }
    POLYPHONY_CHECK(found == want.rows || table.part, "sample " << want.source.sample << ": "
                                                                << found << " of " << want.rows
                                                                << " rows are made");
  }
  return result;
}

}  // namespace polyphony
