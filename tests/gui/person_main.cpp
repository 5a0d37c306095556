// GoogleTest where a person can be had, and a display; else exit code 77, which CTest takes for skipped.
#include "tests/gui/drivers.h"
#include "tests/gui/person.h"

#include <cstdio>
#include <string>

#include <gtest/gtest.h>

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;
  loadline::gui::prepare_drivers();
  ::testing::InitGoogleTest(&argc, argv);
  if (const std::string why = loadline::gui::no_person(); !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return kSkipped;
  }
  return RUN_ALL_TESTS();
}
