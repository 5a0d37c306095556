// Spawns the program with its output in a pipe.
#include "tests/gpu_report/child.h"

#include "core/io/file_system.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace loadline::bench {
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
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
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
  in = UniqueFd();
  read_lines(out.get(), line);
  int status = 0;
  while (::waitpid(id, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : fmt::format("ended with code {}", WEXITSTATUS(status));
}

}  // namespace loadline::bench
