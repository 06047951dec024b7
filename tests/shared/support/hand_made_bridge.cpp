#include "tests/shared/support/hand_made.h"

namespace polyphony::hand_made {

Program local_bridge() {
  constexpr std::int32_t kPatches = 4;
  const Rank rank(0);
  const ModuleId vision(0), text(1);
  Maker maker(1);
  Program& program = maker.program;
  program.model.modules = {{.name = "vision",
                            .kind = ModuleKind::vision,
                            .layers = 1,
                            .hidden = 8,
                            .heads = 4,
                            .kv_heads = 4,
                            .head_dim = 2,
                            .ffn = 16,
                            .attention_bias = true,
                            .image_size = 16,
                            .patch = 8},
                           language(1)};
  program.model.edges = {{vision, text, 0, -1}};
  program.layout.placement = Placement::colocated;
  program.layout.modules.resize(2);
  program.batch.samples = {
      {0, {{Modality::image, kPatches, 0}, {Modality::text, kTokens, kTokens - 1}}}};
  program.works = {{.branch = 0, .samples = {0, 1}, .items = {0, 1}},
                   {.branch = 1, .samples = {1, 2}, .rows = {0, 1}}};
  program.work_samples = {0, 0};
  program.items_of_works = {{0, 0}};
  program.work_rows = {{0, kPatches + kTokens}};
  WorkSize language_work = language_size();
  language_work.tokens += kPatches;
  language_work.pairs = language_work.tokens * (language_work.tokens + 1) / 2;
  program.sizes = {
      {.tokens = kPatches, .pairs = kPatches * kPatches, .sequences = 1}, {}, {}, language_work};
  program.totals.loss_tokens = kTokens - 1;
  program.params = {{.rank = rank, .module = vision, .layers = {0, 3}, .bytes = kParameters},
                    {.rank = rank, .module = text, .layers = {0, 3}, .bytes = kParameters}};

  const StreamId compute = maker.stream(rank, StreamKind::compute, "compute");
  const StreamId send = maker.stream(rank, StreamKind::send, "vision>language send");
  const StreamId receive = maker.stream(rank, StreamKind::receive, "vision>language receive");
  const StreamId send_back = maker.stream(rank, StreamKind::send, "language>vision send");
  const StreamId receive_back = maker.stream(rank, StreamKind::receive, "language>vision receive");
  const BufferId vision_tape = maker.buffer(rank, BufferKind::tape, kTape);
  const BufferId text_tape = maker.buffer(rank, BufferKind::tape, kTape);
  const BufferId out = maker.boundary(rank, BufferKind::boundary);
  const BufferId in = maker.boundary(rank, BufferKind::boundary);
  const BufferId gradient_out = maker.boundary(rank, BufferKind::boundary_gradient);
  const BufferId gradient_in = maker.boundary(rank, BufferKind::boundary_gradient);
  const MessageId forward = maker.message(out, in);
  const MessageId backward = maker.message(gradient_out, gradient_in);

  const OpId encode = maker.add(compute, Compute{vision, {0, 3}, Phase::forward, WorkId(0)});
  maker.use(encode, vision_tape, {Use::allocate, Use::write});
  maker.use(encode, out, {Use::allocate, Use::write});
  const OpId sent = maker.exchange(send, true, {forward}, {encode});
  maker.use(sent, out, {Use::read, Use::free});
  const OpId received = maker.exchange(receive, false, {forward});
  maker.use(received, in, {Use::allocate, Use::write});
  const OpId decode =
      maker.add(compute, Compute{text, {0, 3}, Phase::forward, WorkId(1)}, {received});
  maker.use(decode, in, {Use::read, Use::free});
  maker.use(decode, text_tape, {Use::allocate, Use::write});
  const OpId decode_back = maker.add(compute, Compute{text, {0, 3}, Phase::backward, WorkId(1)});
  maker.use(decode_back, text_tape, {Use::read, Use::free});
  maker.use(decode_back, gradient_out, {Use::allocate, Use::write});
  const OpId sent_back = maker.exchange(send_back, true, {backward}, {decode_back});
  maker.use(sent_back, gradient_out, {Use::read, Use::free});
  const OpId received_back = maker.exchange(receive_back, false, {backward});
  maker.use(received_back, gradient_in, {Use::allocate, Use::write});
  const OpId encode_back =
      maker.add(compute, Compute{vision, {0, 3}, Phase::backward, WorkId(0)}, {received_back});
  maker.use(encode_back, gradient_in, {Use::read, Use::free});
  maker.use(encode_back, vision_tape, {Use::read, Use::free});
  maker.add(compute, Update{{0, 2}});
  return maker.finish();
}

}  // namespace polyphony::hand_made
