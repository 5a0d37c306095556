// Turns the table of load options into flags, and flags into a request.
#include "app/cli/plan/load_flags.h"

#include "app/cli/base/option_flags.h"
#include "app/cli/base/rates.h"
#include "app/cli/base/terminal.h"
#include "app/report/page_parts.h"
#include "core/base/text.h"
#include "core/forward/model/known_models.h"
#include "core/load/request/load_options.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

std::string flag_list(const std::vector<std::string_view>& ids, std::string_view between) {
  std::vector<std::string> flags;
  for (const std::string_view id : ids) flags.push_back(flag_of(id));
  return fmt::format("{}", fmt::join(flags, between));
}

std::string unused_text(const load::UnusedOption& unused, std::span<const load::Method* const> methods) {
  const std::string flag = flag_of(unused.option->id);
  if (!unused.needs.empty())
    return fmt::format("{} has no effect without {}", flag, flag_list(unused.needs, " or "));
  const std::string_view who = methods.size() == 1 ? methods.front()->id : "the requested methods";
  return fmt::format("{} has no effect for {}: only {} support{} it", flag, who,
                     fmt::join(unused.supported_by, ", "), unused.supported_by.size() == 1 ? "s" : "");
}

Json value_json(const OptionValue& value) {
  if (const auto* const on = std::get_if<bool>(&value)) return *on;
  if (const auto* const number = std::get_if<std::uint64_t>(&value)) return *number;
  if (const auto* const text = std::get_if<std::string>(&value)) return json_text(*text);
  if (const auto* const names = std::get_if<std::vector<std::string>>(&value)) return json_texts(*names);
  return nullptr;
}

// Throws Error{usage} instead of replacing a file that is not a saved request: a model's own config.json ends
// in .json too.
void save(const load::LoadRequest& request, const std::string& model, const std::string& file) {
  const auto refuse = [&](std::string_view why) {
    throw Error(ErrorCode::usage, "--save-request: '{}' {}", safe_display(file, 120), why);
  };
  load::check_request(request);
  if (!file.ends_with(".json")) refuse("does not end in .json: Loadline overwrites only such files");
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) {
    try {
      (void)load::read_request(file);
    } catch (const Error&) {
      refuse("exists and is not a saved request: it is not overwritten");
    }
  }
  report::write_file(file, load::request_text_beside(request, model, file));
}

// Reports an unknown name before a model is opened; `find` looks it up in the environment.
template <typename Find>
void check_named(std::string_view id, const std::string& value, Find find) {
  if (value.empty()) return;
  try {
    find(value);
  } catch (const Error& error) {
    throw Error(error.code(), "{}: {}", flag_of(id), error.what());
  }
}

}  // namespace

LoadFlags::LoadFlags(CLI::App& app, load::LoadUser user) : command_(command_name(app)), user_(user) {
  add_text(app, "PATH", path_,
           user == load::LoadUser::pack ? "a .csv file of buffers, or a model"
                                        : "model: file, folder, org/name, config.json, shard");
  for (const load::LoadOption& option : load::load_options()) {
    if (!option.offered_to(user)) continue;
    load::LoadOption shown = option;
    if (load::runs_one_load(user) && !option.one.value_name.empty()) {
      shown.value_name = option.one.value_name;
      shown.brief = option.one.brief;
    }
    flags_.add(app, shown);
  }
  begin_group(app, "Output");
  add_text(app, "--request", request_file_, "read a saved request; flags override it",
           {.value_name = "FILE"});
  add_text(app, "--save-request", save_file_, "write the request to a file", {.value_name = "FILE"});
}

load::LoadRequest LoadFlags::request(bool quiet) {
  load::SavedRequest saved;
  if (!request_file_.empty()) saved = load::read_request(request_file_);
  const load::LoadRequest from_file = saved.request;
  // an option on the command line overrides those in the file that it excludes
  for (const std::string_view id : flags_.given_ids())
    load::unset_excluded(saved.request, *load::find_load_option(id));
  for (const load::LoadOption& option : load::load_options())
    if (option.offered_to(user_)) flags_.apply(option, saved.request);
  given_ = flags_.given_ids();
  std::vector<std::string_view> ignored;
  for (const auto& [id, text] : load::changed_options(from_file)) {
    if (!load::find_load_option(id)->offered_to(user_))
      ignored.push_back(id);
    else if (!was_given(id))
      given_.push_back(id);
  }
  if (!ignored.empty() && !quiet)
    complain(fmt::format("`{}` does not use these options of {}: {}", command_,
                         safe_display(request_file_, 120), fmt::join(ignored, ", ")));
  if (path_.empty() && saved.model) path_ = *saved.model;
  if (path_.empty()) throw Error(ErrorCode::usage, "PATH is required (see --help)");
  load::check_request(saved.request);  // before a model is opened
  if (!save_file_.empty()) save(saved.request, path_, save_file_);
  return saved.request;
}

bool LoadFlags::was_given(std::string_view id) const { return std::ranges::find(given_, id) != given_.end(); }

void LoadFlags::require_used(const load::LoadRequest& request,
                             std::span<const load::Method* const> methods) const {
  for (const load::UnusedOption& unused : load::unused_options(request, methods, given_))
    throw Error(ErrorCode::usage, unused_text(unused, methods));
}

graph::MetaGraphPtr open_for(const Context& context, const std::string& path,
                             const load::LoadRequest& request) {
  Context named = context;
  for (const forward::SizeChoice& choice : request.sizes)
    named.open.picture_sides.push_back({choice.name, choice.size});
  return open_for(named, path);
}

load::Targets cli_targets(const Context& context, bool measure) {
  load::Targets targets = load::load_targets(context.config_folder);
  if (!context.quiet)
    for (const std::string& fault : targets.faults) complain("ignored: " + fault);
  std::erase_if(targets.rows, [](const load::Target& row) { return row.id == load::kThisMachine; });
  targets.rows.insert(targets.rows.begin(), measure ? this_machine() : load::machine_target({}));
  return targets;
}

CliEnvironment::CliEnvironment(const Context& context, const load::LoadRequest& request)
    : targets(cli_targets(context, request.target == load::kThisMachine)) {
  load.assets = context.assets();
  load.targets = targets.rows;
  check_named("target", request.target,
              [&](const std::string& id) { (void)load::find_target(load.targets, id); });
  check_named("profile", request.forward.profile,
              [&](const std::string& id) { (void)load.assets->profile(id); });
  if (request.rates.empty()) load.measured_rates = kept_rates(context);
}

namespace {

void add_option_words(std::vector<std::string>& words, const load::LoadRequest& request,
                      const load::LoadOption& option) {
  const OptionValue value = option.get(request);
  if (const auto* const names = std::get_if<std::vector<std::string>>(&value);
      names != nullptr && option.separator != ',') {
    for (const std::string& name : *names) words.insert(words.end(), {flag_of(option.id), name});
  } else if (option.kind == OptionKind::flag) {
    words.push_back(flag_of(option.id));
  } else {
    words.insert(words.end(), {flag_of(option.id), print_option(option.kind, value)});
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += " " + shell_word(word);
  return text;
}

}  // namespace

std::vector<std::string> request_arguments(const load::LoadRequest& request, const load::Method& method) {
  std::vector<std::string> words;
  const load::LoadRequest defaults;
  for (const load::LoadOption& option : load::load_options()) {
    const bool always = option.id == "method" || option.id == "order";
    if (always || (!same_option(option, request, defaults) && load::supports(method, option)))
      add_option_words(words, request, option);
  }
  return words;
}

std::string request_words(const load::LoadRequest& request, const load::Method& method) {
  return joined(request_arguments(request, method));
}

std::string request_words(const load::LoadRequest& request) {
  std::vector<std::string> words;
  const load::LoadRequest defaults;
  for (const load::LoadOption& option : load::load_options())
    if (!same_option(option, request, defaults)) add_option_words(words, request, option);
  return joined(words);
}

Json options_json(const load::LoadRequest& request, load::LoadUser user) {
  Json json = Json::object();
  for (const load::LoadOption& option : load::load_options())
    if (option.offered_to(user)) json[std::string(option.id)] = value_json(option.get(request));
  return json;
}

void require_importable(const graph::MetaGraph& graph, const load::Method& method) {
  if (!method.traits.imports) return;
  if (const std::string refusal = load::mapping_refusal(graph); !refusal.empty())
    throw Error(ErrorCode::unsupported, refusal);
}

}  // namespace loadline::cli
