// The commands of `polyphony`: sim/commands/main.cpp calls the one that is named on the command
// line. Each is defined in a file of its name, parses its own arguments (sim/cli/arguments.h),
// answers --help with examples, and takes --format table or json, some also csv.
//   `argv`  the arguments after "polyphony"; argv[0] is the command's name
// Each returns the exit code (ExitCode in shared/error.h). Results go to stdout, progress and notes
// to stderr. A command without an answer throws InputError or NoAnswer, and main prints why
// (sim/console/failure.h).
#pragma once

namespace polyphony::sim {

int ask_command(int argc, char** argv);
int import_command(int argc, char** argv);
int emit_command(int argc, char** argv);
int init_command(int argc, char** argv);
int plan_command(int argc, char** argv);
int simulate_command(int argc, char** argv);
int sweep_command(int argc, char** argv);
int why_command(int argc, char** argv);
int profile_command(int argc, char** argv);
int run_command(int argc, char** argv);
int rehearse_command(int argc, char** argv);
int compare_command(int argc, char** argv);
int replay_command(int argc, char** argv);
int calibrate_command(int argc, char** argv);
int watch_command(int argc, char** argv);
int report_command(int argc, char** argv);
int validate_command(int argc, char** argv);
int schedules_command(int argc, char** argv);
int trace_command(int argc, char** argv);
int scan_command(int argc, char** argv);
int export_command(int argc, char** argv);
int launch_command(int argc, char** argv);
int schema_command(int argc, char** argv);
int completion_command(int argc, char** argv);

}  // namespace polyphony::sim
