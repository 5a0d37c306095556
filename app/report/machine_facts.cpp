// Asks the system about itself.
#include "app/report/machine_facts.h"

#include "core/base/text.h"

#include <algorithm>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

namespace loadline::report {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.find(':') + 2, line.size()));
  return "unknown";
}

}  // namespace

OptionList machine_facts() {
  OptionList list;
  utsname system{};
  if (::uname(&system) == 0)
    list.push_back({"System", fmt::format("{} {} {}", system.sysname, system.release, system.machine)});
  list.push_back({"Processor", fmt::format("{}, {}", processor_name(),
                                           counted(std::thread::hardware_concurrency(), "core"))});
  struct sysinfo memory {};
  if (::sysinfo(&memory) == 0)
    list.push_back({"Memory", format_bytes(std::uint64_t{memory.totalram} * memory.mem_unit)});
  return list;
}

}  // namespace loadline::report
