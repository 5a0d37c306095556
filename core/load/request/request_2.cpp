// Reads and writes reserves, and checks requests independently of any model.
#include "core/base/error.h"
#include "core/base/option.h"
#include "core/base/text.h"
#include "core/load/request/request.h"

#include <fmt/format.h>

namespace loadline {

Reserve parse_reserve(std::string_view text) {
  if (!text.ends_with('%')) return {.bytes = parse_size(text, "")};
  const OptionValue share = parse_option(OptionKind::count, text.substr(0, text.size() - 1));
  const auto percent = std::get<std::uint64_t>(share);
  check_option_number(percent, 1, 99, false);
  return {.percent = static_cast<std::uint32_t>(percent)};
}
std::string print_reserve(const Reserve& reserve) {
  return reserve.percent > 0 ? fmt::format("{}%", reserve.percent)
                             : print_option(OptionKind::bytes, reserve.bytes);
}

void check_request(const LoadRequest& request) {
  constexpr std::uint64_t kLeastSlot = 4096;
  constexpr std::uint32_t kMostSlots = 1024;
  const auto refuse = [](const std::string& text) { throw Error(ErrorCode::usage, text); };
  if (request.slots == 0 || request.slots > kMostSlots)
    refuse(fmt::format("a ring needs 1 to {} slots, {} were asked for", kMostSlots, request.slots));
  if (request.staging_bytes / request.slots < kLeastSlot)
    refuse(fmt::format("a ring of {} is too small for {}: it needs at least {} ({} for each)",
                       counted(request.staging_bytes, "byte"), counted(request.slots, "slot"),
                       counted(kLeastSlot * request.slots, "byte"), format_grouped(kLeastSlot)));
  if (request.staging_bytes > std::uint64_t{1} << 40)
    refuse(fmt::format("a ring of {} is over the limit of 1 TiB", format_bytes(request.staging_bytes)));
  if (request.cast && request.prepack)
    refuse("weights are cast on their way or packed on the device, not both");
  if (request.auto_map && request.prepack)
    refuse("an automatic map does not know what weights are packed to: place them by rules");
  if (request.activation_bytes >> 60 != 0)
    refuse(
        fmt::format("activations of {} are over the limit of 1 EiB", format_bytes(request.activation_bytes)));
  if (request.workers == 0 || request.workers > 1024)
    throw Error(ErrorCode::usage, "{} loading threads; there are 1 to 1024", request.workers);
  if (request.activation_bytes > 0 && (asks_for_pass(request) || request.max_context))
    refuse("a size of activations and a forward pass exclude each other: the pass has its own activations");
  if (int{request.gpu_layers.has_value()} + int{request.auto_map.has_value()} + int{!request.place.empty()} >
      1)
    refuse("weights can be placed by layers, by an automatic map or by rules, not by several of them");
  if (request.memory == MemoryKind::unified && request.host_budget)
    refuse("unified memory has one budget: the device budget covers the host's share as well");
}

}  // namespace loadline
