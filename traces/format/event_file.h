// Event files of TensorBoard: the scalars of a run, over its steps. A file is the bytes of
// event_file_head(), then of event_record() for each step; the caller writes them.
//
//   record   length of the event (8 bytes), masked CRC of the length (4 bytes), the event, masked
//            CRC of the event (4 bytes); little-endian
//   CRC      CRC-32C; masked: rotated right by 15 bits, plus 0xa282ead8
//   event    a Protocol Buffers message with these fields:
//            Event       wall_time = 1 (double), step = 2 (int64), file_version = 3 (string),
//                        summary = 5 (Summary), session_log = 7 (SessionLog)
//            Summary     value = 1 (Value, repeated)
//            Value       tag = 1 (string), simple_value = 2 (float)
//            SessionLog  status = 1 (START = 1)
//
// Wall times are in seconds since 1970. Only scalars are written. A truncated record (killed
// process, full disk) ends the file.
// Sources: tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto; TFRecord
// format: tensorflow.org, "TFRecord and tf.train.Example"; CRC-32C: RFC 3720, section 12.1; wire
// format: protobuf.dev, "Encoding".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace polyphony::traces {

struct Scalar {
  std::string_view tag;  // "train/loss": TensorBoard groups charts by what precedes the slash
  float value = 0;       // may be NaN or infinite
};

// Returns "events.out.tfevents.<seconds>.<host>.polyphony". TensorBoard reads the files of a folder
// in the order of their names. The suffix tells our files from those that other tools write.
std::string event_file_name(std::int64_t seconds, std::string_view host);

// Returns the beginning of a file: its version, and a session that starts at step `first`.
// TensorBoard drops the values that earlier files of the folder hold of this step and later ones: a
// run that was killed repeats the steps after its last checkpoint.
std::string event_file_head(double wall_time, std::int64_t first);

// Returns the record of one step's scalars.
std::string event_record(std::int64_t step, double wall_time, std::span<const Scalar> scalars);

// Returns the CRC-32C of the bytes, not masked.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace polyphony::traces
