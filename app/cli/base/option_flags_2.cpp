// Binds option rows to CLI11, which stores the words until the command asks for them.
#include "app/cli/base/option_flags.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::cli {

std::string flag_of(std::string_view id) {
  std::string flag = "--" + std::string(id);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

CLI::Validator number_range(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& input) {
        double value = 0;
        if (CLI::detail::lexical_cast(input, value) && value >= least && value <= most) return std::string();
        return fmt::format("Value {} not in range {} to {}", input, least, most);
      },
      fmt::format("FLOAT in [{} - {}]", least, most));
}

void OptionFlags::add_row(CLI::App& app, const FlagRow& row) {
  auto words = std::make_shared<std::vector<std::string>>();
  const std::string flag = flag_of(row.id), text(row.brief);
  CLI::Option* option = nullptr;
  if (row.kind == OptionKind::flag) {
    option = app.add_flag(flag, text);
  } else {
    option = app.add_option(flag, *words, text)->type_name(std::string(row.value_name));
    option->allow_extra_args(false);
    if (row.kind != OptionKind::names) option->expected(1);
    if (!row.default_text.empty()) option->default_str(std::string(row.default_text));
  }
  option->group(std::string(row.group));
  flags_.push_back({row.id, option, std::move(words)});
}

std::vector<std::string_view> OptionFlags::given_ids() const {
  std::vector<std::string_view> ids;
  for (const Flag& flag : flags_)
    if (flag.option->count() > 0) ids.push_back(flag.id);
  return ids;
}

std::vector<std::string> OptionFlags::words_of(std::string_view id) const {
  const auto flag = std::ranges::find_if(flags_, [&](const Flag& f) { return f.id == id; });
  if (flag == flags_.end() || flag->option->count() == 0) return {};
  return flag->option->get_items_expected_max() == 0 ? std::vector<std::string>{"on"} : *flag->words;
}

std::string OptionFlags::joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ","));
}

void OptionFlags::refuse(std::string_view id, const Error& error) {
  throw Error(error.code(), "{}: {}", flag_of(id), error.what());
}

}  // namespace loadline::cli
