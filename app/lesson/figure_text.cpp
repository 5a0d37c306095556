// Writes figures, and fills texts with them.
#include "app/lesson/figures.h"
#include "core/base/text.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace loadline::lesson {
namespace {

constexpr double kKiB = 1024;
constexpr std::array kUnits = {
    UnitName{"bytes", Unit::bytes, 1, 0, " bytes"},
    UnitName{"GiB", Unit::gib, kKiB* kKiB* kKiB, 2, " GiB"},
    UnitName{"MiB", Unit::mib, kKiB* kKiB, 1, " MiB"},
    UnitName{"KiB", Unit::kib, kKiB, 1, " KiB"},
    UnitName{"GB", Unit::gb, 1e9, 2, " GB"},
    UnitName{"MB", Unit::mb, 1e6, 1, " MB"},
    UnitName{"count", Unit::count, 1, 0, ""},
    UnitName{"times", Unit::times, 1, 2, " times"},
    UnitName{"percent", Unit::percent, 1, 1, " %"},
    UnitName{"ms", Unit::milliseconds, 1e-3, 1, " ms"},
    UnitName{"text", Unit::text, 1, 0, ""},
};

double number_of(const Datum& value) {
  if (const std::int64_t* const whole = value.number()) return static_cast<double>(*whole);
  if (const double* const real = value.real()) return *real;
  throw Error(ErrorCode::malformed, "{} is no number", value.shown());
}

// Without a unit: sizes for whole numbers, two decimals for others, texts as they are.
std::string plain_text(const Datum& value) {
  if (value.text() != nullptr) return safe_display(*value.text());
  if (const std::int64_t* const whole = value.number(); whole != nullptr && *whole >= 0)
    return format_bytes(static_cast<std::uint64_t>(*whole));
  return fmt::format("{:.2f}", number_of(value));
}

}  // namespace

std::span<const UnitName> units() { return kUnits; }
const UnitName& unit_name(Unit unit) { return kUnits[static_cast<std::size_t>(unit)]; }

double figure_number(const Datum& value, Unit unit) { return number_of(value) / unit_name(unit).scale; }

std::string figure_text(const Datum& value, Unit unit) {
  if (unit == Unit::text) return plain_text(value);
  const UnitName& name = unit_name(unit);
  const double number = figure_number(value, unit);
  if (name.digits == 0 && std::abs(number) < 1e18)
    return fmt::format("{}{}{}", number < 0 ? "-" : "",
                       format_grouped(static_cast<std::uint64_t>(std::llround(std::abs(number)))),
                       name.suffix);
  return fmt::format("{:.{}f}{}", number, name.digits, name.suffix);
}

std::string fill(std::string_view markdown, std::size_t scene, Figures& figures) {
  std::string text;
  std::size_t at = 0;
  while (true) {
    const std::size_t open = markdown.find('{', at);
    text += markdown.substr(at, open == std::string_view::npos ? open : open - at);
    if (open == std::string_view::npos) return text;
    const std::size_t close = markdown.find('}', open);
    if (close == std::string_view::npos)
      throw Error(ErrorCode::malformed, "'{{' without '}}': {}", safe_display(markdown.substr(open, 40)));
    const std::string_view inside = markdown.substr(open + 1, close - open - 1);
    const std::size_t bar = inside.find('|');
    const AssetPlace place{
        std::make_shared<const std::string>(figures.lesson().id + ".md: {" + safe_display(inside, 80) + "}"),
        1, 1};
    Unit unit = Unit::text;
    if (bar != std::string_view::npos) {
      const auto row = std::ranges::find(kUnits, inside.substr(bar + 1), &UnitName::id);
      if (row == kUnits.end()) place.fail("no unit is called '{}'", safe_display(inside.substr(bar + 1), 40));
      unit = row->unit;
    }
    const Datum value = figures.value(Expression::parse(inside.substr(0, bar), place), scene);
    if (value.null()) place.fail("has no value");
    text += figure_text(value, unit);
    at = close + 1;
  }
}

}  // namespace loadline::lesson
