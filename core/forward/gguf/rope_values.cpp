// In F32, step by step, as the frameworks compute them.
#include "core/forward/gguf/rope_values.h"

#include "core/base/error.h"

#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

namespace loadline {
namespace {

double number(const Datum& value, double least, double most, const char* what) {
  double found = std::nan("");
  if (value.number() != nullptr) found = static_cast<double>(*value.number());
  if (value.real() != nullptr) found = *value.real();
  if (!(found >= least && found <= most))
    throw Error(ErrorCode::malformed, "{} of the rotary embedding is {}: a number from {} to {} expected",
                what, value.shown(), least, most);
  return found;
}

constexpr double kMost = 1e12;

Datum llama3_factors(std::span<const Datum> arguments) {
  const auto dimension = static_cast<std::size_t>(number(arguments[0], 2, 65536, "the dimension"));
  const auto base = static_cast<float>(number(arguments[1], 1, kMost, "the base"));
  const auto factor = static_cast<float>(number(arguments[2], 1e-6, kMost, "the factor"));
  const auto low = static_cast<float>(number(arguments[3], 1e-6, kMost, "the low frequency factor"));
  const auto high = static_cast<float>(number(arguments[4], 1e-6, kMost, "the high frequency factor"));
  const auto context = static_cast<float>(number(arguments[5], 1, kMost, "the original context"));
  std::vector<Datum> factors;
  for (std::size_t i = 0; i < dimension; i += 2) {
    const float frequency = 1.0f / std::pow(base, static_cast<float>(i) / static_cast<float>(dimension));
    const float wavelength = 2.0f * std::numbers::pi_v<float> / frequency;
    if (wavelength < context / high) {
      factors.emplace_back(1.0);
    } else if (wavelength > context / low) {
      factors.emplace_back(static_cast<double>(factor));
    } else {
      const float smooth = (context / wavelength - low) / (high - low);
      factors.emplace_back(static_cast<double>(1.0f / ((1.0f - smooth) / factor + smooth)));
    }
  }
  return Datum(std::move(factors));
}

Datum long_attention(std::span<const Datum> arguments) {
  const std::string type = arguments[0].text() == nullptr ? "" : *arguments[0].text();
  const double original = number(arguments[2], 2, kMost, "the original context");
  const double scale = number(arguments[1], 1, kMost, "the context") / original;
  if (scale <= 1) return Datum(1.0);
  if (type == "yarn") return Datum(0.1 * std::log(scale) + 1.0);
  return Datum(std::sqrt(1 + std::log(scale) / std::log(original)));
}

}  // namespace

std::optional<Datum> call_rope(std::string_view function, std::span<const Datum> arguments) {
  if (function == "llama3_factors" && arguments.size() == 6) return llama3_factors(arguments);
  if (function == "long_attention" && arguments.size() == 3) return long_attention(arguments);
  return std::nullopt;
}

}  // namespace loadline
