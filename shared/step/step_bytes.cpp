// Converts StepPlans to bytes and back, as declared in shared/step/step_part.h and step_record.h.
#include <string_view>
#include <type_traits>

#include "shared/fnv.h"
#include "shared/step/step_record.h"

namespace polyphony {
namespace {

constexpr std::uint64_t kVersion = 4;

// Archives: each visits the fields of a structure one after another, to write, read or digest them,
// so that one list of fields serves all three.
template <class Sink>
class Out {
 public:
  explicit Out(Sink sink) : sink_(std::move(sink)) {}
  template <class T>
  void number(const T& value) {
    std::uint64_t left;
    if constexpr (std::is_signed_v<T>)
      left = (static_cast<std::uint64_t>(value) << 1) ^
             static_cast<std::uint64_t>(std::int64_t{value} >> 63);
    else
      left = static_cast<std::uint64_t>(value);
    for (; left >= 0x80; left >>= 7) sink_(static_cast<unsigned char>(left | 0x80));
    sink_(static_cast<unsigned char>(left));
  }
  template <class List, class Visit>
  void list(const List& values, Visit visit) {
    number(values.size());
    for (const auto& value : values) visit(*this, value);
  }

 private:
  Sink sink_;
};

class In {
 public:
  explicit In(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  void number(T& value) {
    std::uint64_t read = 0;
    for (int shift = 0;; shift += 7) {
      if (at_ == bytes_.size() || shift > 63) throw StepPlanError("a step plan is cut short");
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      read |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) break;
    }
    if constexpr (std::is_signed_v<T>)
      value = static_cast<T>(static_cast<std::int64_t>(read >> 1) ^
                             -static_cast<std::int64_t>(read & 1));
    else
      value = static_cast<T>(read);
  }
  template <class List, class Visit>
  void list(List& values, Visit visit) {
    std::uint64_t count = 0;
    number(count);
    if (count > bytes_.size() - at_) throw StepPlanError("a step plan is cut short");
    values.resize(count);  // an element takes a byte or more
    for (auto& value : values) visit(*this, value);
  }
  bool ended() const { return at_ == bytes_.size(); }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

// By reference; for writing, by constant reference.
template <class Archive, class Value>
void each_range(Archive& archive, Value& range) {
  archive.number(range.begin);
  archive.number(range.end);
}

template <class Archive, class Value>
void each_enum(Archive& archive, Value& value) {
  using Plain = std::remove_const_t<Value>;
  auto number = static_cast<std::uint8_t>(value);
  archive.number(number);
  if constexpr (!std::is_const_v<Value>) value = static_cast<Plain>(number);
}

template <class Archive, class Table>
void each_table(Archive& archive, Table& table) {
  archive.list(table.works, [](Archive& a, auto& work) {
    a.number(work.branch);
    a.number(work.lane);
    a.number(work.context);
    a.number(work.index);
    each_range(a, work.samples);
    each_range(a, work.items);
    each_range(a, work.rows);
  });
  archive.list(table.work_samples, [](Archive& a, auto& sample) { a.number(sample); });
  archive.list(table.items_of_works, [](Archive& a, auto& item) {
    a.number(item.sample);
    a.number(item.item);
  });
  archive.list(table.work_rows, [](Archive& a, auto& rows) { each_range(a, rows); });
  archive.list(table.first_work, [](Archive& a, auto& first) { a.number(first); });
}

template <class Archive, class Step>
void each_step(Archive& archive, Step& step) {
  each_table(archive, step.works);
  archive.number(step.totals.samples);
  archive.number(step.totals.loss_tokens);
  archive.number(step.totals.latent_tokens);
  archive.list(step.orders, [](Archive& a, auto& actions) {
    a.list(actions, [](Archive& b, auto& action) {
      each_enum(b, action.kind);
      each_enum(b, action.overlapped);
      b.number(action.branch);
      b.number(action.stage);
      b.number(action.work);
      each_enum(b, action.recipe);
    });
  });
  archive.list(step.order_of, [](Archive& a, auto& order) { a.number(order); });
  archive.number(step.receive_slots);
  archive.list(step.turns, [](Archive& a, auto& turn) { a.number(turn); });
  archive.number(step.only.value);
}

template <class Archive, class Samples>
void each_batch(Archive& archive, Samples& batch) {
  archive.list(batch.samples, [](Archive& a, auto& sample) {
    a.number(sample.id);
    a.list(sample.items, [](Archive& b, auto& item) {
      each_enum(b, item.modality);
      b.number(item.tokens);
      b.number(item.loss_tokens);
      b.number(item.columns);
    });
  });
}

template <class Archive, class Part>
void each_part(Archive& archive, Part& part) {
  archive.number(part.whole);
  each_step(archive, part.step);
  each_batch(archive, part.batch);
  archive.list(part.positions, [](Archive& a, auto& position) { a.number(position); });
}

std::uint64_t checksum(std::string_view bytes) {
  Fnv fnv;
  fnv.add(bytes);
  return fnv.value();
}

constexpr std::size_t kChecksum = 8;

}  // namespace

std::uint64_t digest(const StepPlan& step, const Batch& batch) {
  Fnv fnv;
  Out archive([&](unsigned char byte) { fnv.add(std::uint64_t{byte}); });
  each_step(archive, step);
  each_batch(archive, batch);
  return fnv.value();
}

namespace {

// The kind of the bytes, stored in the byte after the version.
enum class Of : std::uint8_t { part, letter, record };
template <class Archive>
void each_kind(Archive& archive, Of kind) {
  Of read = kind;
  each_enum(archive, read);
  if (read != kind) throw StepPlanError("the bytes are not of the expected kind");
}

// `visit` writes or reads everything between the kind and the checksum.
template <class Visit>
std::string sealed(Of kind, Visit visit) {
  std::string bytes;
  Out archive([&](unsigned char byte) { bytes.push_back(static_cast<char>(byte)); });
  archive.number(kVersion);
  each_kind(archive, kind);
  visit(archive);
  const std::uint64_t sum = checksum(bytes);
  for (std::size_t i = 0; i < kChecksum; ++i)
    bytes.push_back(static_cast<char>(sum >> (8 * i) & 0xff));
  return bytes;
}

template <class Visit>
void unseal(std::string_view bytes, Of kind, Visit visit) {
  if (bytes.size() < kChecksum) throw StepPlanError("a step plan is cut short");
  const std::string_view body = bytes.substr(0, bytes.size() - kChecksum);
  In archive(body);
  std::uint64_t version = 0, sum = 0;
  archive.number(version);
  if (version != kVersion)
    throw StepPlanError("a step plan of version " + std::to_string(version) +
                        ", but this program reads version " + std::to_string(kVersion) +
                        "; run the same build on all ranks");
  for (std::size_t i = 0; i < kChecksum; ++i)
    sum |= std::uint64_t{static_cast<unsigned char>(bytes[body.size() + i])} << (8 * i);
  if (sum != checksum(body)) throw StepPlanError("a step plan is damaged: its checksum differs");
  each_kind(archive, kind);
  visit(archive);
  if (!archive.ended()) throw StepPlanError("a step plan has extra bytes at its end");
}

template <class Archive, class Letter>
void each_letter(Archive& archive, Letter& letter) {
  archive.number(letter.step);
  each_enum(archive, letter.kind);
  if (letter.kind > StepLetter::Kind::end)
    throw StepPlanError("a step record is neither planned nor late");
  if (letter.kind == StepLetter::Kind::planned) each_part(archive, letter.part);
}

template <class Archive, class Record>
void each_record(Archive& archive, Record& record) {
  archive.number(record.step);
  archive.number(record.batch);
  each_enum(archive, record.late);
  if (!record.late) each_step(archive, record.plan);
}

}  // namespace

std::string to_bytes(const StepPart& part) {
  return sealed(Of::part, [&](auto& archive) { each_part(archive, part); });
}

StepPart read_step_part(const std::string& bytes) {
  StepPart part;
  unseal(bytes, Of::part, [&](In& archive) { each_part(archive, part); });
  part.step.works.part = true;
  return part;
}

std::string to_bytes(const StepLetter& letter) {
  return sealed(Of::letter, [&](auto& archive) { each_letter(archive, letter); });
}

StepLetter read_step_letter(std::string_view bytes) {
  StepLetter letter;
  unseal(bytes, Of::letter, [&](In& archive) { each_letter(archive, letter); });
  letter.part.step.works.part = letter.kind == StepLetter::Kind::planned;
  return letter;
}

std::string to_bytes(const StepRecord& record) {
  return sealed(Of::record, [&](auto& archive) { each_record(archive, record); });
}

StepRecord read_step_record(std::string_view bytes) {
  StepRecord record;
  unseal(bytes, Of::record, [&](In& archive) { each_record(archive, record); });
  return record;
}

}  // namespace polyphony
