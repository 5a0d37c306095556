// Metadata values as text.
#include "core/graph/meta_value.h"

#include "core/base/text.h"

#include <array>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<MetaValue>> kNames = {
    "bool", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64", "string", "array"};

}  // namespace

std::uint64_t meta_type_bytes(MetaType type) {
  constexpr std::array<std::uint8_t, kNames.size()> kBytes = {1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 0, 0};
  return kBytes[static_cast<std::size_t>(type)];
}

std::string_view meta_type_name(MetaType type) { return kNames[static_cast<std::size_t>(type)]; }

std::string meta_text(const MetaValue& value) {
  if (const auto* array = std::get_if<MetaArray>(&value))
    return fmt::format("{} {}{}", format_grouped(array->count), meta_type_name(array->element),
                       array->element == MetaType::string ? (array->count == 1 ? "" : "s")
                       : array->count == 1                ? " value"
                                                          : " values");
  return std::visit(
      [](const auto& held) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, MetaArray>)
          return "";
        else
          return fmt::format("{}", held);
      },
      value);
}

}  // namespace loadline
