// Reads and writes whole files. Files that are read or written at once go through here. Files that
// grow (metrics, traces, plans, journals of sweeps), archives and mapped files are opened by their
// owners; checkpoints are written in parts and checksummed (files.h), large files read in pieces
// (pieces.h).
//   Reading is limited by size, whatever the file system reports (/dev/zero, a pipe), and by time
//   without data (`silence`).
//   Writing leaves either the complete new file or the old one: the text goes to a partial file
//   next to it, which is synced and renamed. Links are followed. Files that are not regular
//   (/dev/stdout, a pipe) are written directly.
//
// Errors: InputError that names the file and what to do (wrong name, no permission);
// std::runtime_error with the same details if the disk or device failed (full, file too large, I/O
// error).
#pragma once

#include <string>

#include "shared/units.h"

namespace polyphony {

struct ReadLimits {
  Bytes most;
  Seconds silence{60};  // longest wait for a pipe or terminal that delivers nothing
};
// For files written by or for users: scenarios, profiles, configurations, tables.
inline constexpr ReadLimits kSettings{Bytes(64LL << 20)};
// For files written by programs: data sets, traces, metrics, orders of actions, answers.
inline constexpr ReadLimits kRecords{Bytes(1LL << 30)};

// Returns the contents of the file. `hint` tells the user what to do if it cannot be read.
std::string read_whole(const std::string& path, const ReadLimits& limits,
                       const std::string& hint = "check the path");
std::string read_file(const std::string& path);     // with kSettings
std::string read_records(const std::string& path);  // with kRecords

void write_file(const std::string& path, const std::string& text);

// Throws the error that write_file() would throw where the path is a folder, its folder is missing
// or may not be written. Leaves no file behind. Call it before long work whose result goes there.
void check_writable(const std::string& path);

// Flushes stdout at the end of a program. Returns true if everything printed was delivered, false
// if the reader has closed the pipe (`| head`), which is not an error. Throws std::runtime_error on
// any other failure.
bool finish_stdout();

}  // namespace polyphony
