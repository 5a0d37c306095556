// Two tables: what methods take, and what shows only in company.
#include "app/cli/option_use.h"

#include "core/base/error.h"

#include <algorithm>
#include <array>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::cli {
namespace {

struct MethodOption {
  std::string_view name;
  bool MethodTraits::*taken;
};
constexpr std::array<MethodOption, 10> kMethodOptions = {{{"--staging", &MethodTraits::ring},
                                                          {"--slots", &MethodTraits::ring},
                                                          {"--memory-limit", &MethodTraits::limit},
                                                          {"--cast", &MethodTraits::casts},
                                                          {"--shard-size", &MethodTraits::shards},
                                                          {"--flush", &MethodTraits::flushes},
                                                          {"--doubled-ties", &MethodTraits::flushes},
                                                          {"--gpu-layers", &MethodTraits::offloads},
                                                          {"--place", &MethodTraits::offloads},
                                                          {"--max-memory", &MethodTraits::offloads}}};

// An option and those of which one must be there.
struct Company {
  std::string_view name;
  std::array<std::string_view, 3> any_of;  // empty ones at the end
};
constexpr std::array<Company, 3> kCompanies = {{{"--axis", {"--curve", "--svg", "--html"}},
                                                {"--profile", {"--seq", "--dim"}},
                                                {"--activation-dtype", {"--seq", "--dim"}}}};

const MethodOption* find_option(std::string_view name) {
  const auto found = std::find_if(kMethodOptions.begin(), kMethodOptions.end(),
                                  [&](const MethodOption& row) { return row.name == name; });
  return found == kMethodOptions.end() ? nullptr : &*found;
}

std::string takers(const MethodOption& option) {
  std::vector<std::string_view> ids;
  for (const Method& method : methods())
    if (method.traits.*option.taken) ids.push_back(method.id);
  return fmt::format("{}", fmt::join(ids, ", "));
}

bool is_given(std::span<const GivenOption> given, std::string_view name) {
  return std::any_of(given.begin(), given.end(),
                     [&](const GivenOption& option) { return option.name == name; });
}

}  // namespace

std::vector<GivenOption> given_options(const CLI::App& app) {
  std::vector<GivenOption> given;
  for (const CLI::Option* const option : app.get_options()) {
    if (option->count() == 0 || option->get_positional() || option->get_lnames().empty()) continue;
    const bool flag = option->get_items_expected_max() == 0;
    given.push_back({"--" + option->get_lnames().front(),
                     flag ? std::vector<std::string>() : option->results(), option->get_delimiter() != '\0'});
  }
  return given;
}

bool takes(const Method& method, std::string_view option) {
  const MethodOption* const row = find_option(option);
  return row == nullptr || method.traits.*row->taken;
}

bool is_method_option(std::string_view name) { return find_option(name) != nullptr; }

std::string taken_options(const Method& method) {
  std::vector<std::string_view> names;
  for (const MethodOption& option : kMethodOptions)
    if (method.traits.*option.taken) names.push_back(option.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void require_taken(std::span<const GivenOption> given, std::span<const Method* const> methods) {
  for (const GivenOption& option : given) {
    const MethodOption* const row = find_option(option.name);
    if (row == nullptr || std::any_of(methods.begin(), methods.end(),
                                      [&](const Method* method) { return method->traits.*row->taken; }))
      continue;
    const std::string_view who = methods.size() == 1 ? methods.front()->id : "any of the methods asked for";
    throw Error(ErrorCode::usage,
                fmt::format("{} changes nothing for {}: only {} take{} it", option.name, who, takers(*row),
                            takers(*row).find(',') == std::string::npos ? "s" : ""));
  }
}

void require_company(std::span<const GivenOption> given) {
  for (const Company& row : kCompanies) {
    if (!is_given(given, row.name)) continue;
    std::vector<std::string_view> names;
    for (const std::string_view name : row.any_of)
      if (!name.empty()) names.push_back(name);
    if (std::any_of(names.begin(), names.end(), [&](std::string_view name) { return is_given(given, name); }))
      continue;
    throw Error(ErrorCode::usage,
                fmt::format("{} changes nothing without {}", row.name, fmt::join(names, " or ")));
  }
}

}  // namespace loadline::cli
