// Parses the options of load methods.
#include "app/cli/method_options.h"

#include "core/base/text.h"

#include <CLI/CLI.hpp>

namespace loadline::cli {

void add_method_options(CLI::App& app, MethodArguments& arguments) {
  app.add_option("--staging", arguments.staging, "Bytes of the whole staging ring")->capture_default_str();
  app.add_option("--slots", arguments.slots, "Slots of the staging ring")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--memory-limit", arguments.memory_limit, "Bytes of the buffer that runai reads ahead into")
      ->capture_default_str();
  app.add_option("--activations", arguments.activations, "Q: activations and caches on the device")
      ->capture_default_str();
  app.add_option("--allocator", arguments.allocator,
                 "Whose books the device's memory is projected by beside what is asked: exact or torch")
      ->capture_default_str();
}

MethodOptions parse_method_arguments(const MethodArguments& arguments) {
  MethodOptions options;
  options.staging_bytes = parse_size(arguments.staging, "--staging");
  options.slots = arguments.slots;
  options.memory_limit = parse_size(arguments.memory_limit, "--memory-limit");
  options.activation_bytes = parse_size(arguments.activations, "--activations");
  options.allocator = allocator_model(arguments.allocator);
  check_options(options);
  return options;
}

}  // namespace loadline::cli
