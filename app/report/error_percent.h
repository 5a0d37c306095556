// How far a measured figure is from the projected one.
#pragma once

#include <cstdint>

namespace loadline::report {

// In percent of the projected figure; 0 if both are 0, 100 if only the projected one is.
inline double error_percent(double projected, double measured) {
  if (projected == measured) return 0;
  return projected == 0 ? 100 : 100 * (measured / projected - 1);
}
inline double error_percent(std::uint64_t projected, std::uint64_t measured) {
  return error_percent(static_cast<double>(projected), static_cast<double>(measured));
}

}  // namespace loadline::report
