// Lists options from the table of load options.
#include "app/report/asked_for.h"

#include "core/load/request/load_options.h"

namespace loadline::report {

OptionList asked_for(const LoadRequest& request, MemoryKind memory) {
  LoadRequest in_force = request;
  in_force.memory = memory;
  const LoadRequest defaults;
  OptionList list;
  for (const LoadOption& option : load_options()) {
    const bool always = option.id == "memory" || option.id == "staging" || option.id == "slots";
    if (always || !same_option(option, in_force, defaults))
      list.emplace_back(option.title, show_option(option.kind, option.get(in_force), option.separator));
  }
  return list;
}

}  // namespace loadline::report
