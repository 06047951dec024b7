// Files read and written whole: the one door to the disk of both programs. (Checkpoints, written in
// parts and checksummed, have files.h.)
//   Reading ends: by size, whatever the file says of itself (/dev/zero, a pipe), and by silence.
//   Writing leaves the whole new file or the old one: through a partial file beside it, synced and
//   renamed. Links are followed. What is no regular file (/dev/stdout, a pipe) is written as it is.
// Errors: InputError names the file and what to do (a wrong name, no permission); std::runtime_error,
// as clear, when the name was right and the disk or device failed (full, too large, input/output).
#pragma once

#include <string>

#include "shared/units.h"

namespace polyphony {

struct ReadLimits {
  Bytes most;
  Seconds silence{60};  // of a pipe or terminal, before the reader gives up
};
// Written by people or for them: scenarios, profiles, configurations, tables.
inline constexpr ReadLimits kSettings{Bytes(64LL << 20)};
// Written by programs: data sets, traces, metrics, orders of actions, answers.
inline constexpr ReadLimits kRecords{Bytes(1LL << 30)};

// `hint` says what to do when it cannot be read.
std::string read_whole(const std::string& path, const ReadLimits& limits,
                       const std::string& hint = "check the path");
std::string read_file(const std::string& path);     // of kSettings
std::string read_records(const std::string& path);  // of kRecords

void write_file(const std::string& path, const std::string& text);

// Throws the error that write_file() would throw where the path is a folder, its folder is missing
// or may not be written. Leaves no file behind. Call it before long work whose result goes there.
void check_writable(const std::string& path);

// After all else: whether what was printed arrived. False: its reader has left (`| head`), no reason
// to complain. Any other failure: std::runtime_error.
bool finish_stdout();

}  // namespace polyphony
