// Truth, comparison and display of expression values.
#include "core/assets/datum.h"

#include "core/base/text.h"

#include <fmt/format.h>

namespace loadline {

Datum::Datum(std::vector<Datum> list) {
  std::uint64_t total = 1;
  for (const Datum& item : list)
    if (__builtin_add_overflow(total, item.total(), &total)) total = UINT64_MAX;
  value_ = std::make_shared<const ListData>(ListData{std::move(list), total});
}

Datum::Datum(const SizePoly& poly) {
  if (const auto constant = poly.constant())
    value_ = *constant;
  else
    value_ = poly;
}

std::optional<SizePoly> Datum::size() const {
  if (const std::int64_t* const whole = number()) return SizePoly(*whole);
  if (const SizePoly* const symbolic = poly()) return *symbolic;
  return std::nullopt;
}

bool Datum::truth() const {
  if (const std::int64_t* const whole = number()) return *whole != 0;
  if (const double* const fraction = real()) return *fraction != 0;
  if (const std::string* const words = text()) return !words->empty();
  if (const std::vector<Datum>* const values = list()) return !values->empty();
  return !null();
}

std::string Datum::shown() const {
  if (null()) return "null";
  if (const std::int64_t* const whole = number()) return fmt::format("{}", *whole);
  if (const double* const fraction = real()) return fmt::format("{}", *fraction);
  if (const std::string* const words = text()) return fmt::format("'{}'", safe_display(*words, 60));
  if (const std::vector<Datum>* const values = list()) return fmt::format("[{} values]", values->size());
  return poly() != nullptr ? "a size that depends on batch or sequence" : "an object";
}

bool operator==(const Datum& a, const Datum& b) {
  if (const std::vector<Datum>* const x = a.list()) {
    const std::vector<Datum>* const y = b.list();
    return y != nullptr && *x == *y;
  }
  // 1 and 1.0 are equal
  if (a.real() != nullptr && b.number() != nullptr) return *a.real() == static_cast<double>(*b.number());
  if (a.number() != nullptr && b.real() != nullptr) return b == a;
  return a.value_ == b.value_;
}

}  // namespace loadline
