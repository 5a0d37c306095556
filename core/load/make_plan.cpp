// What a method must be able to do before its program is asked for.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/load/methods.h"

#include <fmt/format.h>

namespace loadline {

void check_options(const MethodOptions& options) {
  constexpr std::uint64_t kLeastSlot = 4096;
  constexpr std::uint32_t kMostSlots = 1024;
  if (options.slots == 0 || options.slots > kMostSlots)
    throw Error(ErrorCode::usage,
                fmt::format("a ring needs 1 to {} slots, {} were asked for", kMostSlots, options.slots));
  if (options.staging_bytes / options.slots < kLeastSlot)
    throw Error(ErrorCode::usage,
                fmt::format("a ring of {} in {} has less than {} for each, the least that a slot can be",
                            counted(options.staging_bytes, "byte"), counted(options.slots, "slot"),
                            counted(kLeastSlot, "byte")));
  if (options.activation_bytes >> 60 != 0)
    throw Error(ErrorCode::usage, fmt::format("activations of {} are over the limit of 1 EiB",
                                              format_bytes(options.activation_bytes)));
  if (options.staging_bytes > std::uint64_t{1} << 40)
    throw Error(ErrorCode::usage,
                fmt::format("a ring of {} is over the limit of 1 TiB", format_bytes(options.staging_bytes)));
}

Plan make_plan(const MetaGraph& graph, const Method& method, const StorageOrder& order,
               const MethodOptions& options) {
  check_options(options);
  if (options.cast && !method.traits.casts)
    throw Error(ErrorCode::unsupported, "weights are loaded as they are stored");
  if (!options.placement.all_on_device() && !method.traits.offloads)
    throw Error(ErrorCode::unsupported, "weights can go nowhere but to the device");
  return method.make(graph, order, options);
}

}  // namespace loadline
