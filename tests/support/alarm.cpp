// A test that stands still says its name and where it stands, before CTest ends the program.
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <string>

#include <execinfo.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace {

constexpr unsigned kPatience = 120;  // seconds, for one test
std::string standing;                // "Suite.Name" of the running test; set while no alarm is due

// System calls only. The signal goes to the main thread, which runs the test.
void tell(int) {
  constexpr char kWords[] = "\nstands still: ";
  const auto put = [](const char* words, std::size_t length) {
    (void)!::write(STDERR_FILENO, words, length);
  };
  put(kWords, sizeof(kWords) - 1);
  put(standing.data(), standing.size());
  put("\n", 1);
  std::array<void*, 40> frames{};
  ::backtrace_symbols_fd(frames.data(), ::backtrace(frames.data(), static_cast<int>(frames.size())),
                         STDERR_FILENO);
}

class Alarm : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo& test) override {
    ::alarm(0);
    standing = std::string(test.test_suite_name()) + "." + test.name();
    ::alarm(kPatience);
  }
  void OnTestEnd(const ::testing::TestInfo&) override { ::alarm(0); }
};

[[maybe_unused]] const bool appended = [] {
  std::array<void*, 1> frames{};
  ::backtrace(frames.data(), 1);  // the first call allocates
  std::signal(SIGALRM, tell);
  ::testing::UnitTest::GetInstance()->listeners().Append(new Alarm);  // which owns it
  return true;
}();

}  // namespace
