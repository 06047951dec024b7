#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "shared/graph/memory.h"
#include "tests/traces/format/played_pipeline.h"

using namespace polyphony;
using namespace polyphony::traces;
using namespace polyphony::traces::test;
using nlohmann::json;

TEST_CASE("a trace is read back as it was written") {
  const Ran sample;
  const Trace back = read_trace(sample.text(), "step.json", sample.program);
  CHECK(back.timeline == sample.timeline);  // whole and quarter seconds are integer nanoseconds
  CHECK(back.info == TraceInfo{TraceKind::predicted, hash(sample.program), 7, 4, std::nullopt});
  CHECK(read_trace_info(sample.text(TraceKind::measured), "x").kind == TraceKind::measured);
  CHECK(write_trace(sample.program, back.timeline, TraceKind::predicted, 7) == sample.text());
  const std::string late =
      write_trace(sample.program, sample.timeline, TraceKind::measured, 7, {.late_plan = true});
  CHECK(read_trace(late, "step.json", sample.program).info.late_plan);
  CHECK(late.find("\"labels\": \"late plan\"") != std::string::npos);
  CHECK(message_of(replaced(late, "\"late_plan\": true", "\"late_plan\": 1"), sample.program)
            .find("/polyphony/late_plan: true or false is expected") != std::string::npos);
}

TEST_CASE("a trace contains the rank's clock and its wait for data in addition to its ops") {
  Ran sample;
  Timeline own{{}, sample.timeline.makespan};
  for (const OpTime& time : sample.timeline.ops)
    if (sample.program.rank_of(sample.program.ops[time.op.value]) == Rank(1))
      own.ops.push_back(time);
  const TraceNotes notes{false, ClockNote{Seconds(-7.5), Seconds(2e-5), 3e-6}, Seconds(2e-5),
                         DataWait{Seconds(1), Seconds(1.25)}};
  const std::string text = write_trace(sample.program, own, TraceKind::measured, 7, notes);
  const Trace back = read_trace(text, "step.json", sample.program);
  REQUIRE(back.info.clock.has_value());
  CHECK(back.info.clock->offset.count() == doctest::Approx(-7.5));
  CHECK(back.info.clock->error.count() == doctest::Approx(2e-5));
  CHECK(back.info.clock->drift == doctest::Approx(3e-6));
  CHECK(back.timeline.ops.size() == own.ops.size());  // the wait is not an op
  CHECK(text.find("\"wait for data\", \"cat\": \"data\"") != std::string::npos);
  CHECK(text.find("\"recorded_in_ns\": 20000,") != std::string::npos);
  CHECK(text.find("\"ts\": 1000000.000, \"dur\": 250000.000") != std::string::npos);
  CHECK(message_of(replaced(text, "\"error_ns\": 20000", "\"error_ns\": \"x\""), sample.program)
            .find("/polyphony/clock/error_ns") != std::string::npos);
}

TEST_CASE("files of format 1 are read: names and categories are not needed") {
  const Ran sample;
  std::string text = replaced(sample.text(), "\"format\": 2", "\"format\": 1");
  for (auto at = text.find("\"kernel\""); at != std::string::npos; at = text.find("\"kernel\"", at))
    text.replace(at, 8, "\"compute\"");
  CHECK(read_trace(text, "step.json", sample.program).timeline == sample.timeline);
}

TEST_CASE("times are exact to the nanosecond") {
  Ran sample;
  for (OpTime& time : sample.timeline.ops) {
    time.start = Seconds(time.start.count() / 3 + 1e-10);
    time.end = Seconds(time.end.count() / 3 + 1e-10);
  }
  const Trace back = read_trace(sample.text(), "step.json", sample.program);
  REQUIRE(back.timeline.ops.size() == sample.timeline.ops.size());
  for (std::size_t i = 0; i < back.timeline.ops.size(); ++i) {
    CHECK(std::abs((back.timeline.ops[i].start - sample.timeline.ops[i].start).count()) <= 0.6e-9);
    CHECK(std::abs((back.timeline.ops[i].end - sample.timeline.ops[i].end).count()) <= 0.6e-9);
  }
}

TEST_CASE("Perfetto: ids are distinct, events of one thread never overlap, flows connect") {
  Ran sample;
  for (OpTime& time : sample.timeline.ops) {  // thirds are not integer nanoseconds
    time.start /= 3;
    time.end /= 3;
  }
  const json root = json::parse(sample.text());
  std::map<std::pair<int, int>, std::vector<std::pair<std::int64_t, std::int64_t>>> threads;
  std::map<int, std::pair<int, int>> flows;
  std::map<int, int> pid_of_tid;
  int names = 0;
  const auto nanoseconds = [](const json& us) { return std::llround(us.get<double>() * 1000); };
  for (const json& event : root.at("traceEvents")) {
    const std::string ph = event.at("ph");
    if (ph == "M") {
      names += event.at("name") == "thread_name" ? 1 : 0;
      continue;
    }
    if (ph == "C") continue;  // belongs to a process, not to a thread
    const int pid = event.at("pid");
    const int tid = event.at("tid");
    CHECK(pid > 0);
    CHECK(tid > static_cast<int>(sample.program.ranks));
    CHECK(pid_of_tid.try_emplace(tid, pid).first->second == pid);
    if (ph == "s") ++flows[event.at("id")].first;
    if (ph == "f") ++flows[event.at("id")].second;
    if (ph != "X") continue;
    const std::int64_t start = nanoseconds(event.at("ts"));
    threads[{pid, tid}].push_back({start, start + nanoseconds(event.at("dur"))});
    CHECK(event.at("args").contains("op"));
  }
  CHECK(names == static_cast<int>(sample.program.streams.size()));
  for (auto& [thread, events] : threads) {
    std::sort(events.begin(), events.end());
    for (std::size_t i = 1; i < events.size(); ++i) CHECK(events[i - 1].second <= events[i].first);
  }
  CHECK(flows.size() == sample.program.messages.size());
  for (const auto& [id, ends] : flows) CHECK(ends == std::pair(1, 1));
}

// Memory in bytes, for all ranks in one file and for each rank alone; also for the same step at
// other times.
TEST_CASE(
    "memory counters start at the first op, are never negative, and their maximum is the peak") {
  Ran sample;
  for (const double moved : {0.0, 100.0, -100.0}) {
    Timeline timeline = sample.timeline;
    for (OpTime& time : timeline.ops) {
      time.start += Seconds(moved);
      time.end += Seconds(moved);
    }
    const std::vector<RankMemory> memory = predict_memory(sample.program, timeline);
    const auto check = [&](const Timeline& of, std::size_t ranks) {
      const json root = json::parse(write_trace(sample.program, of, TraceKind::measured, 7));
      struct Seen {
        double first = 1e300, last = -1e300;
        std::int64_t most = 0, ends = 0;
      };
      std::map<int, Seen> seen;
      std::map<int, double> begin;
      for (const json& event : root.at("traceEvents")) {
        if (event.at("ph") == "X" && event.at("args").contains("op")) {
          const auto [found, added] =
              begin.try_emplace(event.at("pid"), event.at("ts").get<double>());
          found->second = std::min(found->second, event.at("ts").get<double>());
        }
        if (event.at("ph") != "C") continue;
        CHECK(event.at("name") == "memory");
        Seen& rank = seen[event.at("pid")];
        const double at = event.at("ts");
        const std::int64_t bytes = event.at("args").at("bytes");
        CHECK(bytes >= 0);
        CHECK(at >= rank.last);
        rank = {std::min(rank.first, at), at, std::max(rank.most, bytes), bytes};
      }
      CHECK(seen.size() == ranks);
      for (const auto& [pid, rank] : seen) {
        CHECK(rank.first == begin.at(pid));
        CHECK(Bytes(rank.most) == memory[static_cast<std::size_t>(pid - 1)].peak);
        CHECK(rank.ends < rank.most);  // saved activations and messages were freed
      }
    };
    check(timeline, 4);
    for (std::size_t rank = 0; rank < 4; ++rank)
      check(part_of(sample.program, timeline, Rank(rank)), 1);
  }
}

TEST_CASE("an event states its op, module, phase and bytes") {
  const Ran sample;
  const json root = json::parse(sample.text());
  bool compute = false, receive = false;
  for (const json& event : root.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const std::size_t op = event.at("args").at("op");
    const std::string name = event.at("name");
    CHECK(name.ends_with(describe(sample.program, OpId(op))));
    if (std::holds_alternative<Compute>(sample.program.ops[op].what)) {
      compute = true;
      CHECK(event.at("args").at("module") == "language");
      CHECK(event.at("args").contains("work"));
    }
    if (event.at("args").at("phase") == "receive") {
      receive = true;
      CHECK(name.starts_with("ncclDevKernel_SendRecv "));
      CHECK(event.at("args").at("bytes") == 128);  // 4 rows of 8 floats
    }
  }
  CHECK(compute);
  CHECK(receive);
}

TEST_CASE(
    "a file of one rank has the space for which HolisticTraceAnalysis searches; parts merge") {
  const Ran sample;
  std::vector<Trace> parts;
  std::vector<std::string> files;
  for (std::size_t r = 0; r < sample.program.ranks; ++r) {
    const Timeline part = part_of(sample.program, sample.timeline, Rank(r));
    const std::string text = write_trace(sample.program, part, TraceKind::measured, 7);
    CHECK(text.find("\"rank\": " + std::to_string(r) + ",") != std::string::npos);
    files.push_back("rank" + std::to_string(r) + ".json");
    parts.push_back(read_trace(text, files.back(), sample.program));
    CHECK(parts.back().info.rank == Rank(r));
    CHECK(parts.back().timeline == part);
  }
  CHECK(merge(sample.program, parts, files) == sample.timeline);

  std::vector<Trace> late = parts;  // clocks that start at 5 s
  for (Trace& part : late) {
    for (OpTime& time : part.timeline.ops) {
      time.start += Seconds(5);
      time.end += Seconds(5);
    }
  }
  CHECK(merge(sample.program, late, files) == sample.timeline);

  CHECK_THROWS_WITH_AS(merge(sample.program, {parts[0], parts[1], parts[3]}, {"a", "b", "c"}),
                       doctest::Contains("of rank 2"), InputError);
  CHECK_THROWS_WITH_AS(merge(sample.program, {parts[0], parts[0]}, {"a", "b"}),
                       "b: /traceEvents: op 0 is also in a (give each rank's file once)",
                       InputError);
  late[1].info.step = 8;
  CHECK_THROWS_WITH_AS(merge(sample.program, late, files),
                       "rank1.json: /polyphony/step: step or kind differs from that of rank0.json "
                       "(give the files of one step)",
                       InputError);
}

TEST_CASE("bad files are rejected with file, pointer, problem and remedy") {
  const Ran sample;
  const Program& program = sample.program;
  const std::string text = sample.text();
  const std::string again = " (write the trace again; format: traces/README.md)";

  CHECK(message_of("", program) == "step.json: the file ends in the middle, after 0 bytes" + again);
  const std::string cut = text.substr(0, text.find("\"ph\": \"X\""));
  const auto events = std::count(cut.begin(), cut.end(), '\n') - 4;  // lines before the first event
  CHECK(message_of(cut, program) == "step.json: /traceEvents/" + std::to_string(events) +
                                        ": the file ends in the middle, after " +
                                        std::to_string(cut.size()) + " bytes" + again);
  CHECK(message_of("{\"traceEvents\": [}", program) ==
        "step.json: /traceEvents/0: is not JSON: unexpected text at byte 18" + again);
  CHECK(message_of("{\"schemaVersion\": 1, \"traceEvents\": []}", program) ==
        "step.json: /polyphony: this is not a trace of Polyphony: the key is missing (give a file "
        "that `polyphony "
        "simulate` or `polyphony-worker` wrote)");
  CHECK(message_of(replaced(text, "\"format\": 2", "\"format\": 3"), program) ==
        "step.json: /polyphony/format: trace format 3 is not known (this version reads formats 1 "
        "and 2)");
  CHECK(message_of(replaced(text, "\"kind\": \"predicted\"", "\"kind\": \"guessed\""), program) ==
        "step.json: /polyphony/kind: \"guessed\" is neither \"predicted\" nor \"measured\"" +
            again);
  Program other = program;
  other.totals.loss_tokens += 1;
  CHECK(message_of(text, other) ==
        "step.json: /polyphony/program: the trace is of another Program (another scenario, layout, "
        "batch or version) "
        "(give the scenario, layout and step with which it was recorded)");
  const auto count = std::to_string(program.ops.size());
  CHECK(message_of(replaced(text, "\"ops\": " + count, "\"ops\": 99"), program) ==
        "step.json: /polyphony/ops: the trace announces 99 ops and holds " + count + again);
  const std::string first = "/traceEvents/" + std::to_string(events);
  CHECK(message_of(replaced(text, "\"op\": 0,", "\"op\": 5000,"), program) ==
        "step.json: " + first + "/args/op: op 5000 does not exist: the Program has " + count +
            " ops" + again);
  CHECK(message_of(replaced(text, "\"op\": 0,", "\"op\": -1,"), program) ==
        "step.json: " + first + "/args/op: an integer of at least 0 is expected" + again);
  CHECK(message_of(replaced(text, "\"op\": 0,", "\"op\": 1,"), program) != "accepted");
  CHECK(message_of(replaced(text, "\"dur\": 1000000.000", "\"dur\": -1"), program) ==
        "step.json: " + first + "/dur: a duration must not be negative" + again);
  CHECK(message_of(replaced(text, "\"dur\": 1000000.000", "\"dur\": 1e999"), program) ==
        "step.json: " + first + "/dur: a number is out of range" + again);
  CHECK(message_of(replaced(text, "\"dur\": 1000000.000", "\"dur\": 1e300"), program) ==
        "step.json: " + first + "/dur: the time is out of range" + again);
  CHECK(message_of(replaced(text, "\"ph\": \"X\"", "\"ph\": \"B\""), program) ==
        "step.json: " + first + "/ph: event type \"B\" is not written by Polyphony" + again);
}

TEST_CASE("a trace truncated anywhere is rejected without a crash") {
  const Ran sample;
  const std::string text = sample.text();
  const std::size_t whole = text.find_last_of('}');
  for (std::size_t bytes = 0; bytes < whole; bytes += 97) {
    CHECK(message_of(text.substr(0, bytes), sample.program) != "accepted");
  }
}

// Bytes are changed, duplicated or dropped at random: the result is accepted or an InputError,
// never anything else.
TEST_CASE("random damage is rejected or harmless") {
  const Ran sample;
  const std::string text = sample.text();
  std::mt19937_64 random(11);
  int accepted = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string damaged = text;
    const std::size_t at = random() % text.size();
    const std::size_t length = 1 + random() % 8;
    switch (random() % 4) {
      case 0:
        damaged[at] = static_cast<char>(random() % 256);
        break;
      case 1:
        damaged.erase(at, length);
        break;
      case 2:
        damaged.insert(at, damaged.substr(at, length));
        break;
      default:
        damaged[at] = "0123456789-{}[],\":eE."[random() % 21];
        break;
    }
    try {
      read_trace(damaged, "step.json", sample.program);
      ++accepted;
    } catch (const InputError& error) {
      CHECK_FALSE(error.hint.empty());
    }
  }
  CHECK(accepted < 1500);
}

TEST_CASE("a Timeline without ops can be written and read") {
  const Ran sample;
  const std::string text = write_trace(sample.program, {}, TraceKind::measured, 0);
  CHECK(read_trace(text, "empty.json", sample.program).timeline == Timeline{});
}
