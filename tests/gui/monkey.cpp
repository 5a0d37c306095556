// Random input at the window, for `./dev monkey`: mouse, keys, text, actions with random arguments, models
// that are valid, odd and damaged. It must not crash, leak or hang.
//   gui_monkey [--seconds N | --events N] [--seed N] [--window]
// The same seed gives the same input; when background jobs end is up to the machine.
#include "app/gui/frame/gui_app.h"
#include "core/base/error.h"
#include "tests/gui/drivers.h"
#include "tests/gui/monkey_input.h"
#include "tests/gui/monkey_models.h"
#include "tests/gui/null_window.h"
#include "tests/gui/watchdog.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include <unistd.h>

namespace {

using namespace loadline::gui;
using Clock = std::chrono::steady_clock;

struct Wanted {
  std::optional<std::uint64_t> events;
  std::chrono::seconds time{60};
  std::uint64_t seed = std::random_device()();
  bool desktop = false;
};

std::optional<Wanted> wanted_by(int argc, char** argv) {
  Wanted wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--window") {
      wanted.desktop = true;
      continue;
    }
    if (i + 1 == argc) return std::nullopt;
    const std::uint64_t number = std::strtoull(argv[++i], nullptr, 10);
    if (word == "--seconds")
      wanted.time = std::chrono::seconds(number);
    else if (word == "--events")
      wanted.events = number;
    else if (word == "--seed")
      wanted.seed = number;
    else
      return std::nullopt;
  }
  return wanted;
}

void play(const Wanted& wanted) {
  constexpr std::chrono::seconds kMostForAFrame{120};  // with sanitizers, on a busy machine
  constexpr std::uint64_t kFreshWindow = 4000;         // events
  const MonkeyModels models;
  // what a path names without a folder, and what the program keeps by itself, stays in the temporary folder
  std::filesystem::current_path(models.folder());
  for (const char* const name : {"HOME", "XDG_CONFIG_HOME", "HF_HOME"})
    ::setenv(name, models.folder().c_str(), 1);
  Watchdog watchdog(kMostForAFrame);
  std::mt19937_64 random(wanted.seed);
  std::uint64_t events = 0, frames = 0;
  const Clock::time_point begin = Clock::now();
  const auto done = [&] {
    return wanted.events ? events >= *wanted.events : Clock::now() - begin >= wanted.time;
  };
  while (!done()) {
    const auto window = wanted.desktop ? open_desktop_window({.scale = 1}) : open_null_window({.scale = 1});
    GuiApp app(*window, models.folder() / "hub");
    Monkey monkey(app, models, random);
    for (std::uint64_t i = 0; i < kFreshWindow && !done(); ++i) {
      watchdog.say(monkey.act());
      ++events;
      app.frame();
      window->wait_events(0);
      ++frames;
      app.workspace().wants_quit = false;
    }
    watchdog.say("closing the window");
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin).count();
  std::printf("monkey: seed %llu: %llu events, %llu frames, %lld s\n",
              static_cast<unsigned long long>(wanted.seed), static_cast<unsigned long long>(events),
              static_cast<unsigned long long>(frames), static_cast<long long>(seconds));
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Wanted> wanted = wanted_by(argc, argv);
  if (!wanted) {
    std::fprintf(stderr, "usage: gui_monkey [--seconds N | --events N] [--seed N] [--window]\n");
    return 2;
  }
  prepare_drivers();
  // first, so that it is known after a crash
  std::printf("monkey: seed %llu\n", static_cast<unsigned long long>(wanted->seed));
  std::fflush(stdout);
  try {
    play(*wanted);
  } catch (const loadline::Error& error) {
    std::fprintf(stderr, "monkey: seed %llu: an error reached the frame: %s\n",
                 static_cast<unsigned long long>(wanted->seed), error.what());
    return 1;
  }
}
