// One setup function per command, each in its own file.
#pragma once

#include "app/cli/base/command.h"

namespace loadline::cli {

Action setup_batch(CLI::App& app);
Action setup_clean(CLI::App& app);
Action setup_convert(CLI::App& app);
Action setup_devices(CLI::App& app);
Action setup_diff(CLI::App& app);
Action setup_edit(CLI::App& app);
Action setup_formats(CLI::App& app);
Action setup_gui(CLI::App& app);
Action setup_help(CLI::App& app);
Action setup_inspect(CLI::App& app);
Action setup_join(CLI::App& app);
Action setup_merge(CLI::App& app);
Action setup_methods(CLI::App& app);
Action setup_plan(CLI::App& app);
Action setup_lesson(CLI::App& app);
Action setup_rehearse(CLI::App& app);
Action setup_report(CLI::App& app);
Action setup_synth(CLI::App& app);
Action setup_pack(CLI::App& app);
Action setup_targets(CLI::App& app);
Action setup_upload(CLI::App& app);
Action setup_verify(CLI::App& app);

}  // namespace loadline::cli
