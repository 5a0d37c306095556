// Questions of a lesson: the right answer, and whether one that was given is right.
#pragma once

#include "app/lesson/figures.h"

#include <string>
#include <string_view>

namespace loadline::lesson {

// The right answer in words: "12.83 GiB", "per_tensor".
std::string right_answer(const Ask& ask, std::size_t scene, Figures& figures);

// How near a number has to be: "Within 5 % is right." Empty for a choice.
std::string tolerance_text(const Ask& ask);

struct Judged {
  bool right = false;
  std::string words =
      {};  // "Right: it is 12.83 GiB", "Not quite: it is 12.83 GiB, not 6.4; yours is half of that."
};
// `given`: a number in the question's unit, with or without the unit, or a size such as 12.8GiB; or a choice,
// by its text or its place from 1. Throws Error{usage} for what is neither.
Judged judge(const Ask& ask, std::string_view given, std::size_t scene, Figures& figures);

}  // namespace loadline::lesson
