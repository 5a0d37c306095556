// Compares an answer with the computed one.
#include "app/lesson/ask.h"
#include "core/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace loadline::lesson {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Without commas between groups of three digits, as figures are written: "43,098". Another comma is a point,
// as many people write it: "6,59".
std::string ungrouped(std::string_view text) {
  const auto is_digit = [&](std::size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
  };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool groups = text[i] == ',' && i > 0 && is_digit(i - 1) && is_digit(i + 1) && is_digit(i + 2) &&
                        is_digit(i + 3) && !is_digit(i + 4);
    if (!groups) plain += text[i] == ',' && i > 0 && is_digit(i - 1) && is_digit(i + 1) ? '.' : text[i];
  }
  return plain;
}

// The number that was given, in the unit of the question.
double given_number(std::string_view text, const UnitName& unit) {
  const std::string word = ungrouped(trimmed(text));
  char* end = nullptr;
  const double number = std::strtod(word.c_str(), &end);
  const std::string_view rest = trimmed(std::string_view(end));
  if (end == word.c_str() || !std::isfinite(number))
    throw Error(ErrorCode::usage, "'{}' is no number; write one such as 12.5", safe_display(word, 40));
  if (rest.empty() || lower_case(rest) == lower_case(trimmed(unit.suffix)) ||
      (rest == "x" && unit.id == "times"))
    return number;
  for (const UnitName& other : units())  // 512 MiB where GiB are asked for
    if (lower_case(rest) == lower_case(other.id) && other.scale > 1 && unit.scale > 1)
      return number * other.scale / unit.scale;
  throw Error(ErrorCode::usage, "'{}' is no number{}; write one such as 12.5", safe_display(word, 40),
              unit.suffix.empty() ? "" : fmt::format(" of{}", unit.suffix));
}

std::string given_choice(std::string_view text, const std::vector<std::string>& choices) {
  const std::string_view word = trimmed(text);
  for (const std::string& choice : choices)
    if (lower_case(choice) == lower_case(word)) return choice;
  std::size_t place = 0;
  const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), place);
  if (failed == std::errc() && end == word.data() + word.size() && place >= 1 && place <= choices.size())
    return choices[place - 1];
  throw Error(ErrorCode::usage, "'{}' is none of the {} choices", safe_display(word, 40), choices.size());
}

std::string compared(double given, double right) {
  if (right == 0 || given == 0) return "";
  const double ratio = given / right;
  if (std::abs(ratio - 2) < 0.1) return "; yours is twice that";
  if (std::abs(ratio - 0.5) < 0.025) return "; yours is half of that";
  return "";
}

}  // namespace

std::string right_answer(const Ask& ask, std::size_t scene, Figures& figures) {
  if (const auto* const number = std::get_if<AskNumber>(&ask.kind))
    return figure_text(figures.value(number->answer, scene), number->unit);
  return figure_text(figures.value(std::get<AskChoice>(ask.kind).answer, scene), Unit::text);
}

std::string tolerance_text(const Ask& ask) {
  const auto* const number = std::get_if<AskNumber>(&ask.kind);
  return number == nullptr ? "" : fmt::format("Within {:g} % is right.", number->within_percent);
}

Judged judge(const Ask& ask, std::string_view given, std::size_t scene, Figures& figures) {
  const std::string words = right_answer(ask, scene, figures);
  if (const auto* const number = std::get_if<AskNumber>(&ask.kind)) {
    const double right = figure_number(figures.value(number->answer, scene), number->unit);
    const double answer = given_number(given, unit_name(number->unit));
    if (std::abs(answer - right) <= std::abs(right) * number->within_percent / 100 + 1e-12)
      return {true, fmt::format("Right: it is {}.", words)};
    return {false, fmt::format("Not quite: it is {}, not {}{}.", words, safe_display(trimmed(given), 40),
                               compared(answer, right))};
  }
  const std::string choice = given_choice(given, std::get<AskChoice>(ask.kind).choices);
  return choice == words ? Judged{true, fmt::format("Right: {}.", words)}
                         : Judged{false, fmt::format("It is {}, not {}.", words, choice)};
}

}  // namespace loadline::lesson
