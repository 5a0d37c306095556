// GoogleTest with the software driver.
#include "tests/gui/drivers.h"

#include <gtest/gtest.h>

int main(int argc, char** argv) {
  loadline::gui::prepare_drivers();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
