// Child processes, and what is read of them.
#include "tests/gpu_report/runs.h"

#include "core/base/text.h"
#include "core/io/file_system.h"
#include "embedded/torch_load_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace loadline::bench {

// --- Spawns the program with its output in a pipe.

namespace {

std::vector<std::string> environment_of(const Child& child) {
  std::vector<std::string> all;
  const auto replaced = [&](std::string_view name) {
    return std::ranges::find(child.unset, name) != child.unset.end() ||
           std::ranges::any_of(child.set, [&](const auto& one) { return one.first == name; });
  };
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text(*one);
    if (!replaced(text.substr(0, text.find('=')))) all.emplace_back(text);
  }
  for (const auto& [name, value] : child.set) all.push_back(name + "=" + value);
  return all;
}

// For exec: pointers, and a null at the end. `texts` must outlive them.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

void read_lines(int from, const std::function<void(std::string_view)>& line) {
  std::string rest;
  std::array<char, 4096> piece{};
  for (ssize_t got = 0;;) {
    got = ::read(from, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    rest.append(piece.data(), static_cast<std::size_t>(got));
    for (std::size_t end = 0; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1))
      line(std::string_view(rest).substr(0, end));
  }
  if (!rest.empty()) line(rest);
}

}  // namespace

std::string run_child(const Child& child, const std::function<void(std::string_view)>& line) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fmt::format("cannot be started: {}", std::strerror(errno));
  const io::UniqueFd out(ends[0]);
  io::UniqueFd in(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (const int target : {STDOUT_FILENO, STDERR_FILENO})
    ::posix_spawn_file_actions_adddup2(&actions, in.get(), target);
  std::vector<std::string> words = child.words, environment = environment_of(child);
  pid_t id = 0;
  const int failed = ::posix_spawnp(&id, words.front().c_str(), &actions, nullptr, pointers_to(words).data(),
                                    pointers_to(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return fmt::format("cannot be started: {}", std::strerror(failed));
  in = io::UniqueFd();
  read_lines(out.get(), line);
  int status = 0;
  while (::waitpid(id, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : fmt::format("ended with code {}", WEXITSTATUS(status));
}

// --- The tests run in child processes of this program: a crash, and memory that tests leave, stay there.

namespace {

// The groups that tests/gpu/CMakeLists.txt runs in processes of their own.
constexpr std::string_view kAlone[] = {"UploadFailure.*", "UploadCount.*"};

std::vector<std::string> filters(const std::string& filter) {
  if (!filter.empty()) return {filter};
  std::string rest = "-";
  std::vector<std::string> all;
  for (const std::string_view alone : kAlone) {
    all.emplace_back(alone);
    rest += fmt::format("{}{}", rest.size() > 1 ? ":" : "", alone);
  }
  all.insert(all.begin(), rest);
  return all;
}

TestRun run_on(const std::string& program, std::string device, bool any, const std::string& filter) {
  TestRun run{.device = std::move(device)};
  fmt::print("GPU tests: {}\n", safe_display(run.device));
  std::fflush(stdout);
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& part : filters(filter)) {
    Child child{.words = {program, std::string(kRunTests), "--gtest_color=no", "--gtest_filter=" + part},
                .set = {{"LOADLINE_TEST_WITHOUT_LAYER", "1"}}};
    if (any)
      child.set.emplace_back("LOADLINE_TEST_ANY_GPU", "1");
    else
      child.unset = {"LOADLINE_TEST_ANY_GPU", "VK_DRIVER_FILES", "VK_ICD_FILENAMES"};
    TestOutput output(run);
    output.end(run_child(child, [&](std::string_view line) { output.line(line); }));
  }
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("  {} passed, {} failed, {} skipped in {}\n", run.passed, run.failed.size(), run.skipped.size(),
             format_seconds(run.seconds));
  for (const TestNote& note : run.failed) fmt::print("  FAILED: {}\n{}\n", note.name, note.text);
  std::fflush(stdout);
  return run;
}

}  // namespace

void TestOutput::line(std::string_view text) {
  constexpr std::string_view kRun = "[ RUN      ] ", kPassed = "[       OK ] ", kFailed = "[  FAILED  ] ",
                             kSkipped = "[  SKIPPED ] ";
  if (test_.empty()) {
    if (!text.starts_with(kRun)) return;
    test_ = text.substr(kRun.size());
    said_.clear();
    return;
  }
  const bool ends = text.find("] " + test_) == kRun.size() - 2;
  if (ends && text.starts_with(kPassed)) {
    ++run_.passed;
  } else if (ends && text.starts_with(kFailed)) {
    run_.failed.push_back({test_, said_});
  } else if (ends && text.starts_with(kSkipped)) {
    // "FILE:LINE: Skipped", then the reason
    const std::size_t reason = said_.find("Skipped\n");
    run_.skipped.push_back({test_, reason == std::string::npos ? said_ : said_.substr(reason + 8)});
  } else {
    if (!text.empty()) said_ += fmt::format("{}{}", said_.empty() ? "" : "\n", text);
    return;
  }
  test_.clear();
}

void TestOutput::end(const std::string& ending) {
  if (!test_.empty())
    run_.failed.push_back(
        {test_, fmt::format("{}\nThe program {}.", said_, ending.empty() ? "ended" : ending)});
  else if (!ending.empty() && run_.failed.empty())
    run_.failed.push_back({"the test program", fmt::format("It {}.", ending)});
}

std::vector<TestRun> run_gpu_tests(const std::string& program, const std::vector<gpu::DeviceInfo>& devices,
                                   bool software_driver, const std::string& filter) {
  const auto is_software = [](const gpu::DeviceInfo& device) { return device.type == gpu::DeviceType::cpu; };
  const auto software = std::ranges::find_if(devices, is_software);
  const gpu::DeviceChoice choice = gpu::choose_device(devices);
  std::vector<TestRun> runs;
  if (software_driver)
    runs.push_back(
        run_on(program, software == devices.end() ? "the software driver" : software->name, false, filter));
  if (choice.chosen && (!software_driver || !is_software(devices[*choice.chosen])))
    runs.push_back(run_on(program, devices[*choice.chosen].name, true, filter));
  if (runs.empty()) runs.push_back(run_on(program, "without a device", true, filter));
  return runs;
}

// --- Starts python3 with torch_load.py as its program text.

namespace {

constexpr int kTorchSeconds = 30;  // for the warm and for the cold loads

std::optional<Result> result_of(const nlohmann::json& json, const char* key) {
  if (!json.contains(key)) return std::nullopt;
  auto seconds = json.at(key).get<std::vector<double>>();
  std::ranges::sort(seconds);
  return Result{"load_file", seconds.at(seconds.size() / 2), seconds.front(), seconds.back(),
                static_cast<int>(seconds.size())};
}

}  // namespace

TorchFigures measure_torch(const std::string& path, std::uint64_t bytes, int rounds) {
  TorchFigures figures{.bytes = bytes};
  const std::string program(embedded::torch_load_files().front().bytes);
  std::string last;
  const std::string ending = run_child({.words = {"python3", "-c", program, path, fmt::format("{}", rounds),
                                                  fmt::format("{}", kTorchSeconds)}},
                                       [&](std::string_view line) {
                                         if (!line.empty()) last = line;
                                       });
  if (!ending.empty()) {
    figures.absent = fmt::format("python3 {}{}{}", ending, last.empty() ? "" : ": ", safe_display(last));
    return figures;
  }
  try {
    const nlohmann::json json = nlohmann::json::parse(last);
    if (json.contains("absent")) {
      figures.absent = json.at("absent");
      return figures;
    }
    figures.versions = json.at("versions");
    figures.device = json.at("device");
    figures.pinned_rate = json.at("pinned_rate");
    figures.peak = json.at("peak");
    figures.cold_absent = json.value("cold_absent", "");
    figures.warm = result_of(json, "warm");
    figures.cold = result_of(json, "cold");
  } catch (const nlohmann::json::exception&) {
    figures.absent = fmt::format("python3 printed something else: {}", safe_display(last, 200));
  }
  return figures;
}

}  // namespace loadline::bench
