// The forward pass on the command line.
#include "app/cli/forward_options.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/file_graph.h"
#include "core/forward/pass_notes.h"

#include <array>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

constexpr std::uint64_t kMostTokens = 1 << 24;

std::string values_text(const ForwardModel& model, const ForwardFigures& figures) {
  constexpr std::size_t kMost = 5;
  const std::vector<ValueId> alive = alive_during(model, figures, figures.peak.op);
  std::string text;
  for (std::size_t i = 0; i < std::min(alive.size(), kMost); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", safe_display(model.graph->value(alive[i]).name, 40),
                        format_bytes(*figures.sizes[static_cast<std::size_t>(alive[i])]));
  if (alive.size() > kMost) text += fmt::format(" and {} more", alive.size() - kMost);
  return text;
}

// Once windows are full, a token adds less than at first.
std::string windows_text(const ForwardModel& model) {
  const std::uint64_t window = widest_window(model);
  const auto growth = window == 0 || window > kMostTokens ? std::nullopt : cache_growth(model, 1, window);
  if (!growth || growth == model.cache_bytes_per_token) return "";
  return fmt::format(" until windows of {} are full, then {}", format_grouped(window),
                     format_grouped(*growth));
}

// An option that takes the types whose elements have a size of their own.
void add_dtype_option(CLI::App& app, const std::string& name, std::optional<DType>& dtype,
                      const std::string& help) {
  constexpr std::array kTypes = {DType::f32,     DType::f16,     DType::bf16,
                                 DType::f8_e4m3, DType::f8_e5m2, DType::i8};
  std::map<std::string, DType> types;
  std::string names;
  for (const DType type : kTypes) {
    const std::string type_name(dtype_info(type).name);
    types.emplace(CLI::detail::to_lower(type_name), type);
    names += (names.empty() ? "" : ", ") + type_name;
  }
  app.add_option_function<std::string>(
         name,
         [types, names, name, &dtype](const std::string& text) {
           const auto found = types.find(CLI::detail::to_lower(text));
           if (found == types.end())
             throw CLI::ValidationError(name, fmt::format("no type '{}'; there are: {}", text, names));
           dtype = found->second;
         },
         help + ": " + names)
      ->type_name("TYPE");
}

SizeChoice size_choice(const std::string& text) {
  constexpr std::size_t kMostDigits = 12;
  const std::size_t at = text.rfind('=');
  const std::string number = at == std::string::npos ? "" : text.substr(at + 1);
  if (at == 0 || number.empty() || number.size() > kMostDigits ||
      number.find_first_not_of("0123456789") != std::string::npos)
    throw CLI::ValidationError("--dim", fmt::format("'{}' is no NAME=N", safe_display(text, 80)));
  return {text.substr(0, at), std::stoull(number)};
}

// "height, width and 3 more".
std::string list_text(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 5;
  const std::size_t shown = std::min(names.size(), kMost);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == names.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + safe_display(names[i], 40);
  }
  return names.size() > kMost ? text + fmt::format(" and {} more", names.size() - kMost) : text;
}

}  // namespace

void add_forward_options(CLI::App& app, ForwardArguments& arguments) {
  const CLI::Range range(std::int64_t{1}, static_cast<std::int64_t>(kMostTokens));
  CLI::Option* const sequence =
      app.add_option("--seq", arguments.sequence, "New tokens of each: adds a forward pass behind the load")
          ->check(range);
  app.add_option("--batch", arguments.batch, "Sequences in the forward pass")
      ->check(range)
      ->needs(sequence)
      ->default_str("1");
  app.add_option("--past", arguments.past,
                 "Tokens of each that the cache already holds; an encoder has run over as many of its own")
      ->check(CLI::Range(std::int64_t{0}, static_cast<std::int64_t>(kMostTokens)))
      ->needs(sequence)
      ->default_str("0");
  app.add_option_function<std::vector<std::string>>(
         "--dim",
         [&arguments](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) arguments.sizes.push_back(size_choice(text));
         },
         "The size of what an ONNX file calls NAME, such as height=224; may be repeated")
      ->type_name("NAME=N")
      ->allow_extra_args(false);
  std::string profiles;
  for (const Profile& profile : built_in_assets()->profiles)
    profiles += (profiles.empty() ? "" : ", ") + profile.id;
  app.add_option("--profile", arguments.options.profile, "How operators use memory: " + profiles)
      ->default_str("onnxruntime for an ONNX file's own operators, else fused");
  add_dtype_option(app, "--activation-dtype", arguments.options.activation,
                   "Type of activations, other than the profile says");
  add_dtype_option(app, "--cache-dtype", arguments.options.cache,
                   "Type of keys and values, other than the profile says");
  app.add_option_function<std::string>(
         "--logits", [&arguments](const std::string& rows) { arguments.options.all_logits = rows == "all"; },
         "Rows that the head works out: last (of each sequence) or all")
      ->check(CLI::IsMember({"last", "all"}))
      ->needs(sequence)
      ->type_name("ROWS");
}

void require_one_pass(const MethodOptions& options, const ForwardPass* pass) {
  if (pass != nullptr && options.activation_bytes > 0)
    throw Error(ErrorCode::usage, "--activations and --seq exclude each other: a forward pass has its own");
}

ForwardAnswer::ForwardAnswer(const Context& context, const MetaGraph& graph,
                             const ForwardArguments& arguments)
    : arguments_(arguments), assets_(context.assets()) {
  const Profile profile = chosen_profile(*assets_, graph, arguments.options);
  const bool asked = arguments.sequence > 0 || !arguments.sizes.empty();
  try {
    model_ = forward_model(graph, *assets_, profile);
  } catch (const Error& error) {
    if (asked || error.code() == ErrorCode::usage) throw;
    model_ = {};
    model_.remark = error.what();
  }
  const ForwardOptions& options = arguments.options;
  if (model_.source == ForwardSource::file && (options.activation || options.cache || options.all_logits))
    throw Error(
        ErrorCode::usage,
        "--activation-dtype, --cache-dtype and --logits are for checkpoints: the operators of this file "
        "have types and shapes of their own");
  if (!arguments.sizes.empty() && model_.source != ForwardSource::file)
    throw Error(ErrorCode::usage,
                "--dim is for files that list their operators: this model's sizes have no names");
  if (!asked) return;
  if (model_.graph) choose_sizes();
  figures_ = forward_figures(model_, symbols_);
  if (!figures_) {
    bound_ = activation_lower_bound(model_, arguments.batch, arguments.sequence);
    if (bound_ || model_.cache_bytes_per_token || !arguments.needs_estimate) return;
    // a configuration that cannot be read leaves the load: the remark says what is wrong with it
    if (find_metadata(graph, kConfigKey) != nullptr && !model_.remark.empty()) return;
    throw Error(ErrorCode::unsupported,
                fmt::format("--seq: no forward pass is known: {}",
                            model_.remark.empty() ? "the file holds no operators" : model_.remark));
  }
  notes_ = pass_notes(model_, arguments_.batch, arguments_.sequence, arguments_.past);
  pass_ = ForwardPass{&*model_.graph, symbols_};
}

// What a name was taken as may be the batch, the sequence or the past: then they are that.
void ForwardAnswer::choose_sizes() {
  const ForwardArguments asked = arguments_;
  symbols_ = symbol_values(*model_.graph, asked.batch, std::max<std::uint64_t>(asked.sequence, 1), asked.past,
                           asked.sizes);
  arguments_.batch = symbols_[index(kBatch)];
  arguments_.sequence = symbols_[index(kSequence)];
  arguments_.past = symbols_[index(kPast)];
  const auto check = [](std::string_view option, std::uint64_t given, std::uint64_t unset, std::uint64_t is) {
    if (given != unset && given != is)
      throw Error(ErrorCode::usage, fmt::format("{} {} contradicts --dim, which says {}", option, given, is));
  };
  check("--batch", asked.batch, 1, arguments_.batch);
  check("--seq", asked.sequence, 0, arguments_.sequence);
  check("--past", asked.past, 0, arguments_.past);
}

Json ForwardAnswer::sizes_json() const {
  Json json = Json::object();
  for (const NamedSize& size : model_.graph->sizes)
    if (const auto value = size.taken_as.evaluate(symbols_)) json[json_text(size.name)] = *value;
  return json;
}

std::vector<std::string> ForwardAnswer::size_notes() const {
  if (!figures_ || model_.source != ForwardSource::file) return {};
  const ForwardGraph& graph = *model_.graph;
  std::vector<std::string> notes;
  if (!depends_on_tokens(graph))
    notes.emplace_back("no size in the file depends on --batch, --seq or --past");
  std::vector<std::string> guessed;
  for (const NamedSize& size : graph.sizes)
    if (size.guessed)
      guessed.push_back(fmt::format("{} as the {}", size.name,
                                    size.taken_as == SizePoly::symbol(kBatch) ? "batch" : "sequence"));
  if (!guessed.empty()) notes.push_back(fmt::format("guessed: {}; --dim sets them", list_text(guessed)));
  const std::vector<std::string> left = sizes_left_at_1(graph, arguments_.sizes);
  if (!left.empty())
    notes.push_back(
        fmt::format("{} taken as 1: --dim sets {}", list_text(left), left.size() == 1 ? "it" : "them"));
  return notes;
}

Json ForwardAnswer::json() const {
  if (model_.source == ForwardSource::nothing && model_.remark.empty()) return {};
  Json json = {{"source", forward_source_name(model_.source)}};
  if (!model_.family.empty()) json["family"] = json_text(model_.family);
  if (!model_.profile.empty()) json["profile"] = json_text(model_.profile);
  if (!model_.remark.empty()) json["remark"] = json_text(model_.remark);
  if (model_.cache_bytes_per_token) json["kv_bytes_per_token"] = *model_.cache_bytes_per_token;
  if (arguments_.sequence == 0 && symbols_.empty()) return json;
  json["batch"] = arguments_.batch;
  json["seq"] = arguments_.sequence;
  json["past"] = arguments_.past;
  if (!figures_) {
    if (model_.cache_bytes_per_token) json["kv_bytes"] = estimated_cache();
    if (bound_) json["activation_lower_bound"] = *bound_;
    return json;
  }
  json["kv_bytes"] = figures_->peak.cache_bytes;
  if (const auto growth = cache_growth(model_, arguments_.sequence, arguments_.past))
    json["kv_bytes_per_next_token"] = *growth;
  json["notes"] = Json::array();
  for (const std::string& note : notes_) json["notes"].push_back(json_text(note));
  json["activation_peak"] = figures_->peak.bytes;
  json["activation_reserved"] = figures_->reserved;
  json["activation_peak_op"] = json_text(op_text(model_.graph->ops[figures_->peak.op]));
  json["unknown_values"] = figures_->peak.unknown;
  if (model_.source == ForwardSource::file) {
    json["sharing_values"] = sharing_values(*model_.graph);
    json["dims"] = sizes_json();
  }
  json["alive"] = Json::array();
  for (const ValueId id : alive_during(model_, *figures_, figures_->peak.op)) {
    const Value& value = model_.graph->value(id);
    json["alive"].push_back({{"name", json_text(value.name)},
                             {"bytes", *figures_->sizes[static_cast<std::size_t>(id)]},
                             {"lane", lane_name(value.lane)}});
  }
  return json;
}

std::uint64_t ForwardAnswer::estimated_cache() const {
  const auto tokens = checked_mul(arguments_.batch, arguments_.sequence + arguments_.past);
  const auto bytes = tokens ? checked_mul(*tokens, model_.cache_bytes_per_token.value_or(0)) : std::nullopt;
  if (!bytes) throw Error(ErrorCode::limit, "--seq: a cache of more than 64 bits");
  return *bytes;
}

// Of a model whose operators are not known: no peak.
std::string ForwardAnswer::estimates_text() const {
  std::string text = fmt::format("Of a forward pass of {} x {}{}, which the load above does not include:\n",
                                 arguments_.batch, counted(arguments_.sequence, "token"),
                                 arguments_.past == 0 ? "" : fmt::format(" after {}", arguments_.past));
  if (bound_)
    text +=
        fmt::format("  activations at least {}, if every linear layer sees all tokens: a bound, no peak\n",
                    format_bytes(*bound_));
  if (model_.cache_bytes_per_token.value_or(0) > 0)
    text += fmt::format(
        "  cache {} afterwards, an estimate from config.json: {} bytes per token of each sequence\n",
        format_bytes(estimated_cache()), format_grouped(*model_.cache_bytes_per_token));
  return text + fmt::format("  {}\n", model_.remark);
}

// Of a model whose operators are known.
std::string ForwardAnswer::figures_text() const {
  const bool file = model_.source == ForwardSource::file;
  const ForwardPeak& peak = figures_->peak;
  const std::string of =
      file && !depends_on_tokens(*model_.graph)
          ? "with the file's own sizes"
          : fmt::format("of {} x {}{}", arguments_.batch, counted(arguments_.sequence, "token"),
                        arguments_.past == 0 ? "" : fmt::format(" after {}", arguments_.past));
  std::string text = fmt::format(
      "Forward pass {}{}:\n", of,
      model_.profile.empty() ? "" : fmt::format(", profile {}", safe_display(model_.profile, 40)));
  for (const std::string& note : size_notes()) text += fmt::format("  {}\n", note);
  const std::string unknown = fmt::format("the size{} of {} {} not known", peak.unknown == 1 ? "" : "s",
                                          counted(peak.unknown, "value"), peak.unknown == 1 ? "is" : "are");
  if (peak.bytes == 0 && peak.unknown > 0) {
    text += fmt::format("  activations not known: {}\n", unknown);
  } else {
    text += fmt::format("  activations {} at most, at {}\n", format_bytes(peak.bytes),
                        safe_display(op_text(model_.graph->ops[peak.op]), 80));
    if (figures_->reserved != peak.bytes)
      text += fmt::format("    the allocator of this profile holds {} for them\n",
                          format_bytes(figures_->reserved));
    if (peak.bytes > 0) text += fmt::format("    alive there: {}\n", values_text(model_, *figures_));
    if (file && !model_.profile.empty())
      text += fmt::format("    {} of {} values share another's memory\n", sharing_values(*model_.graph),
                          model_.graph->values.size());
    if (peak.unknown > 0) text += fmt::format("    at least: {}\n", unknown);
  }
  if (peak.cache_bytes > 0) text += fmt::format("  cache {} afterwards\n", format_bytes(peak.cache_bytes));
  return text;
}

std::string ForwardAnswer::text() const {
  if (arguments_.sequence > 0 && !figures_) return estimates_text();
  std::string text;
  if (figures_) text += figures_text();
  if (model_.cache_bytes_per_token.value_or(0) > 0)
    text += fmt::format("{}: {} bytes per token of each sequence{}{}\n", figures_ ? "  cache" : "Cache",
                        format_grouped(*model_.cache_bytes_per_token), windows_text(model_),
                        model_.source == ForwardSource::estimate ? " (an estimate from config.json)" : "");
  for (const std::string& note : notes_) text += fmt::format("  note: {}\n", note);
  if (!model_.remark.empty()) text += fmt::format("Forward pass: {}\n", model_.remark);
  return text;
}

}  // namespace loadline::cli
