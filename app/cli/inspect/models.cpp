// loadline models: the models on this disk, and which of them run here.
#include "app/cli/base/command.h"
#include "app/cli/base/option_flags.h"
#include "app/cli/base/terminal.h"
#include "app/cli/plan/load_flags.h"
#include "app/report/does_it_run.h"
#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "core/forward/model/known_models.h"
#include "core/graph/names/file_names.h"
#include "importers/stores.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

struct ModelsFlags {
  std::vector<std::string> folders;
  std::string target = std::string(load::kThisMachine);
  std::string prompt = fmt::format("{}", report::kUsualPrompt), context;
  bool fits = false, no_cache = false;
};

// A model of a store with what was read of it: a row, or why there is none.
struct Listed {
  importers::StoredModel stored;
  std::shared_ptr<const report::ModelFacts> facts = {};
  std::optional<report::ModelRow> row = {};
  std::string fault = {};

  report::KeptFacts::Key key() const {
    return report::KeptFacts::key_of(stored.path, stored.bytes, stored.changed);
  }
  bool is_done() const { return facts && facts->is_judged() && facts->tried_types; }
};

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::shared_ptr<const report::ModelFacts> read_facts(const Context& context, const std::string& path,
                                                     const report::RunQuestion& question,
                                                     const load::LoadEnvironment& environment) {
  auto facts = std::make_shared<report::ModelFacts>();
  Progress progress(context.stop);
  try {
    importers::ResolveOptions options = context.resolve_options();
    if (!graph::has_ending_of(path, "onnx")) options.picture_side = 0;
    const graph::MetaGraph graph = importers::open_model(path, options);
    *facts = report::model_facts(graph, question, environment, progress);
    report::find_better(*facts->row, graph, question.request(), context.assets()->type_policies, environment,
                        progress);
    facts->tried_types = true;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::canceled) throw;
    *facts = {.fault = error.what()};
  }
  return facts;
}

// Reads the headers of those that are not known.
void read_rows(const Context& context, const report::RunQuestion& question, report::KeptFacts& kept,
               bool takes_kept, const load::LoadEnvironment& environment, std::vector<Listed>& models,
               Progress& progress) {
  constexpr std::size_t kMostThreads = 8;
  const std::string asked = question.text();
  ParallelLoop(models.size(), std::min({cores(), kMostThreads, models.size()}), [&](std::size_t at) {
    Listed& model = models[at];
    progress.check_canceled();
    if (!model.stored.path.empty()) {
      if (takes_kept) model.facts = kept.find(model.key(), asked);
      if (!model.is_done()) model.facts = read_facts(context, model.stored.path, question, environment);
      model.row = model.facts->row;
      model.fault = model.facts->fault;
    }
    progress.add(1);
  }).finish();
  for (const Listed& model : models)
    if (model.row && kept.find(model.key(), asked) != model.facts) kept.keep(model.key(), asked, model.facts);
}

// A table is no less true for what could not be kept.
void write_kept(const Context& context, report::KeptFacts& kept) {
  try {
    if (kept.is_changed()) kept.write();
  } catch (const Error& error) {
    if (!context.quiet) complain(fmt::format("not kept for the next time: {}", error.what()));
  }
}

// Why the model is not whole; empty if it is.
std::string missing_part(const Listed& model) {
  return report::missing_part(model.stored.incomplete, model.stored.unfinished, model.row);
}

bool runs(const Listed& model) {
  return model.row && model.row->verdict.fits() && missing_part(model).empty();
}

Json verdict_json(const report::RunVerdict& verdict) {
  Json json = {{"state", report::run_state_id(verdict.state)}, {"text", json_text(verdict.words)}};
  const auto add = [&](const char* key, const std::optional<std::uint64_t>& value) {
    json[key] = value ? Json(*value) : Json();
  };
  add("left", verdict.left);
  add("over", verdict.over);
  add("context", verdict.context);
  add("positions", verdict.positions);
  json["first"] = verdict.first.empty() ? Json() : Json(json_text(verdict.first));
  return json;
}

Json model_json(const Listed& model) {
  const importers::StoredModel& stored = model.stored;
  const auto text = [](const std::string& words) { return words.empty() ? Json() : Json(json_text(words)); };
  const report::ModelRow row = model.row.value_or(report::ModelRow());
  const auto number = [&](std::uint64_t value) { return model.row ? Json(value) : Json(); };
  Json json = {{"name", json_text(stored.name)},
               {"path", text(stored.path)},
               {"store", importers::store_id(stored.store)},
               {"bytes", stored.bytes},
               {"incomplete", text(missing_part(model))},
               {"error", text(model.fault)},
               {"format", text(row.format)},
               {"type", text(row.type)},
               {"tensors", number(row.tensors)},
               {"parameters", number(row.parameters)},
               {"weights", number(row.bytes)},
               {"runs", runs(model)},
               {"verdict", model.row ? verdict_json(row.verdict) : Json()},
               {"quantization", Json()},
               {"no_quantization", text(row.no_better)}};
  if (row.better)
    json["quantization"] = {{"outtype", row.better->policy},
                            {"bytes", row.better->bytes},
                            {"verdict", verdict_json(row.better->verdict)}};
  return json;
}

std::string answer_cell(const Listed& model, std::size_t columns) {
  const std::string missing = missing_part(model);
  if (missing.empty() && model.row) return model.row->verdict.words;
  // the longest words of all rows, which would make the table wider than the terminal
  const std::string words = missing.empty() ? report::fault_text(model.fault, model.stored.path)
                                            : "incomplete: " + safe_display(missing, 160);
  const std::size_t most = std::max<std::size_t>(columns / 2, 56);
  return words.size() <= most ? words : words.substr(0, most - 3) + "...";
}

std::string better_cell(const Listed& model) {
  if (!model.row || runs(model)) return "";
  if (model.row->better)
    return fmt::format("{}, {}", report::type_title(model.row->better->policy),
                       format_bytes(model.row->better->bytes));
  return model.row->no_better;
}

// What models have to fit into.
std::string machine_line(const load::LoadMemory& memory) {
  const load::Target& target = *memory.target;
  const bool own = memory.kind == plan::MemoryKind::discrete;
  std::string line =
      fmt::format("{}: {} {}", safe_display(target.name, 100), format_bytes(*memory.deciding_budget()),
                  own ? "on the device" : "of memory");
  if (own && memory.budget.host) line += fmt::format(", {} on the host", format_bytes(*memory.budget.host));
  const std::optional<std::uint64_t>& all = own ? target.device_bytes : target.host_bytes;
  if (all && *all > *memory.deciding_budget())
    line += fmt::format(" ({} set aside)", format_bytes(*all - *memory.deciding_budget()));
  return line;
}

// Throws Error{usage} for a folder or a file that is not there.
importers::StorePlaces places_of(const Context& context, const ModelsFlags& flags) {
  if (flags.folders.empty()) return importers::usual_stores(context.hub_cache, variable);
  std::error_code failed;
  for (const std::string& folder : flags.folders)
    if (!std::filesystem::exists(folder, failed))
      throw Error(ErrorCode::usage, "there is no folder or file '{}'", safe_display(folder, 120));
  return {.folders = flags.folders};
}

// "with a prompt of 512 tokens", or "with a context of 32,768 tokens", whose last 512 are the prompt.
std::string tokens_words(const report::RunQuestion& question) {
  const std::uint64_t prompt = question.request().sequence;
  return question.tokens() == prompt
             ? fmt::format("with a prompt of {}", counted(prompt, "token"))
             : fmt::format("with a context of {}", counted(question.tokens(), "token"));
}

report::RunQuestion question_of(const ModelsFlags& flags, const load::Target& target) {
  report::RunQuestion question{.target = target};
  question.prompt = report::tokens_of(flags.prompt).value_or(question.prompt);
  if (!flags.context.empty()) question.context = report::tokens_of(flags.context).value_or(0);
  return question;
}

void print_list_json(const report::RunQuestion& question, const std::vector<Listed>& models) {
  const load::Target& target = question.target;
  Json json = {{"target", json_text(target.id)},
               {"target_name", json_text(target.name)},
               {"device_bytes", target.device_bytes ? Json(*target.device_bytes) : Json()},
               {"host_bytes", target.host_bytes ? Json(*target.host_bytes) : Json()},
               {"prompt", question.request().sequence},
               {"context", question.tokens()},
               {"models", Json::array()}};
  for (const Listed& model : models) json["models"].push_back(model_json(model));
  print_json(json);
}

void print_table(const Context& context, const report::RunQuestion& question,
                 const std::vector<Listed>& models) {
  Table table(
      {"model", "in", "format", "type", "parameters", "weights", tokens_words(question), "best that runs"},
      {kLeft, kLeft, kLeft, kLeft, kRight, kRight, kLeft, kLeft});
  for (const Listed& model : models) {
    const auto cell = [&](auto text) { return model.row ? text(*model.row) : std::string("-"); };
    table.row({safe_display(model.stored.name, 60), std::string(importers::store_id(model.stored.store)),
               cell([](const report::ModelRow& row) { return safe_display(row.format, 20); }),
               cell([](const report::ModelRow& row) { return row.type; }),
               cell([](const report::ModelRow& row) { return format_count(row.parameters); }),
               cell([](const report::ModelRow& row) { return format_bytes(row.bytes); }),
               answer_cell(model, context.columns), better_cell(model)});
  }
  if (!models.empty()) fmt::print("{}", table.text(context.color));
}

int list(const Context& context, const ModelsFlags& flags) {
  load::LoadRequest request;
  request.target = flags.target;
  CliEnvironment environment(context, request);
  for (load::Target& row : environment.targets.rows) row = report::steadied(std::move(row));
  const load::Target& target = load::find_target(environment.load.targets, flags.target);
  const report::RunQuestion question = question_of(flags, target);
  const importers::StorePlaces places = places_of(context, flags);
  const load::LoadMemory memory = load::bind_memory(request, environment.load.targets);
  Progress progress(context.stop);
  std::vector<Listed> models;
  {
    const ProgressLine line(context, "reading headers", progress);
    importers::StoredModels stored = importers::stored_models(places, progress);
    if (stored.cut && !context.quiet)
      complain(
          fmt::format("looked at the first {} files and folders of a store: name a folder in it to see more",
                      format_grouped(importers::kMostEntries)));
    for (importers::StoredModel& model : stored.models) models.push_back({std::move(model)});
    progress.add_total(models.size());
    report::KeptFacts kept = kept_facts(context);
    kept.read();  // also where nothing of it is taken: what it says of other models stays
    read_rows(context, question, kept, !flags.no_cache, environment.load, models, progress);
    write_kept(context, kept);
  }
  const std::size_t found = models.size();
  const auto count = static_cast<std::uint64_t>(std::ranges::count_if(models, runs));
  if (flags.fits) std::erase_if(models, [](const Listed& model) { return !runs(model); });
  if (context.json) {
    print_list_json(question, models);
    return kDone;
  }
  fmt::print("{}\n", machine_line(memory));
  if (found == 0) {
    fmt::print("No models found. `loadline models FOLDER` looks in a folder.\n");
    return kDone;
  }
  print_table(context, question, models);
  if (question.request().sequence < question.prompt)
    fmt::print("The prompt is {} and not {}: the context holds no more.\n",
               counted(question.request().sequence, "token"), format_grouped(question.prompt));
  const load::LoadRequest asked = question.request();
  const std::string past = asked.past > 0 ? fmt::format(" --past {}", asked.past) : "";
  fmt::print(
      "{} of {} run. Loads are judged by method {}: `loadline plan MODEL --target {} --seq {}{} --method "
      "{}`.\n",
      count, counted(found, "model"), report::kUsualMethod, safe_display(target.id, 40), asked.sequence, past,
      report::kUsualMethod);
  return kDone;
}

}  // namespace

Action setup_models(CLI::App& app) {
  auto flags = std::make_shared<ModelsFlags>();
  add_list(app, "FOLDER", flags->folders,
           "folders to look in, instead of the hub cache and the stores of Ollama and LM Studio");
  add_text(app, "--target", flags->target, "where they have to run: `this` machine, or a data sheet",
           {.value_name = "ID", .default_text = std::string(load::kThisMachine)});
  const Check tokens = {"TOKENS", [](const std::string& word) {
                          const auto count = report::tokens_of(word);
                          return count && *count > 0 && *count <= load::kMostTokens
                                     ? std::string()
                                     : fmt::format(
                                           "'{}' is no number of tokens from 1 to {}: write 512 or 32k",
                                           safe_display(word, 40), load::kMostTokens);
                        }};
  add_text(app, "--seq,--prompt", flags->prompt, "tokens of the prompt that has to fit",
           {.value_name = "N", .show_default = true, .check = tokens});
  add_text(app, "--context", flags->context,
           "tokens that have to fit in all: the prompt, and those before it in the cache",
           {.value_name = "N", .default_text = "the prompt", .check = tokens});
  add_flag(app, "--fits", flags->fits, "only models that run");
  add_flag(app, "--no-cache", flags->no_cache, "read every header anew");
  return [flags](Context& context) { return list(context, *flags); };
}

}  // namespace loadline::cli
