// Programs made by hand for tests: small, sound (verify() finds nothing), and independent of
// lower().
//   A language module with one block per stage (hidden 8, 4 heads, vocabulary 32). Every sample has
//   4 text tokens, 3 of them labeled; one sample per microbatch. Boundary buffers are 4 rows × 8
//   floats = 128 bytes; other sizes: constants below.
#pragma once

#include <string>
#include <vector>

#include "shared/cost/cost.h"
#include "shared/graph/compile.h"
#include "shared/program/program.h"

namespace polyphony::hand_made {

inline constexpr Bytes kTape{
    2000};  // per microbatch and stage; more than all boundary buffers of a rank
inline constexpr Bytes kParameters{
    1000};  // per stage and rank; gradients the same, optimizer state twice

// Adds ops in any order of ranks; finish() groups them by rank and renumbers.
class Maker {
 public:
  explicit Maker(std::uint32_t ranks) { program.ranks = ranks; }

  Program program;  // tables may be filled directly; ops only through add()

  StreamId stream(Rank rank, StreamKind kind, const std::string& name);  // finds or creates it
  BufferId boundary(Rank rank, BufferKind kind, std::int64_t rows = 4, std::int32_t width = 8);
  BufferId buffer(Rank rank, BufferKind kind, Bytes bytes);
  MessageId message(BufferId from, BufferId to);  // all rows
  OpId add(StreamId stream, const decltype(Op::what)& what, const std::vector<OpId>& waits = {},
           GroupId group = {});
  OpId exchange(StreamId stream, bool sends, const std::vector<MessageId>& messages,
                const std::vector<OpId>& waits = {});
  void use(OpId op, BufferId buffer, const std::vector<Use>& uses);
  Program finish();

 private:
  struct Draft {
    Op op;
    std::vector<OpId> waits;
    std::vector<BufferUse> uses;
  };
  std::vector<Draft> drafts_;
};

inline constexpr std::int64_t kTokens = 4;  // per sample
Module language(int blocks);
WorkSize language_size();  // for one sample

struct PipelineShape {
  int stages = 2;
  int microbatches = 2;  // per data-parallel replica
  int lanes = 1;         // data-parallel replicas
  int tensor = 1;        // tensor-parallel ranks: 1, 2 or 4
  bool one_f_one_b = true;
};
// Returns one training step: forwards and backwards in the schedule's order, reductions over
// replicas, step scalars over all ranks, updates. rank = t + tensor·(lane + lanes·stage), as in a
// Layout.
Program pipeline(const PipelineShape& shape);

// One rank that runs an image encoder (branch 0) and a language module (branch 1): the bridge is a
// message to itself, both ways.
Program local_bridge();

// Forwards and backwards of a fixed length; messages and collectives as given; updates take no
// time.
struct Lengths {
  Seconds forward{1}, backward{2}, message{0}, collective{0};
};
CostTable fixed_costs(const Program& program, const Compiled& compiled, const Lengths& lengths);

// Functions that damage a valid Program.
OpId find(const Program& program, Rank rank,
          const std::string& description);  // the first op whose describe() begins with it
void remove_op(Program& program, OpId op);  // waits for it are dropped
OpId repeat_op(Program& program,
               OpId op);  // repeats it right after itself, without waits and buffers
void set_waits(Program& program, OpId op, const std::vector<OpId>& waits);
void add_use(Program& program, OpId op, BufferId buffer, Use use);
void drop_use(Program& program, OpId op, Use use, BufferKind kind);  // all such uses of the op

// Calls compile(), for Programs known to have no cycle.
Compiled compile_sound(const Program& program);

}  // namespace polyphony::hand_made
