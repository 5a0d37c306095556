// The verdict in a few words; facts of the selection as text, Markdown or JSON.
#include "app/gui/state/summary.h"

#include "app/gui/state/document.h"
#include "app/report/row_text.h"
#include "core/base/text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace loadline::gui {

// --- The row of the comparison against its budgets.

namespace {

// The least room that is left below any budget.
std::uint64_t slack(const load::LoadRow& row, const load::Budget& budget) {
  std::uint64_t least = UINT64_MAX;
  const auto hold = [&](std::optional<std::uint64_t> most, std::uint64_t peak) {
    if (most && peak <= *most) least = std::min(least, *most - peak);
  };
  hold(budget.device, row.verdict.device_peak);
  hold(budget.host, row.verdict.host_peak);
  hold(budget.unified, row.verdict.unified_peak);
  return least;
}

}  // namespace

Verdict verdict_of(const Document& document) {
  const load::LoadAnswer* const judged = document.load.judged_load();
  if (judged == nullptr || document.load.judged.busy()) return {};
  const load::LoadRow* const row = &judged->rows.front();
  const load::BoundRequest& bound = *judged->bound;
  if (row->refusal) return {Verdict::State::over, "not possible", safe_display(row->refusal->what(), 200)};
  if (!bound.judged()) return {Verdict::State::unjudged, "no budget", {}};
  if (!row->fits()) {
    const std::uint64_t over = row->most_over();
    return {Verdict::State::over, over > 0 ? format_bytes(over) + " over" : report::over_text(row->verdict),
            safe_display(row->first_over, 200)};
  }
  const std::uint64_t left = slack(*row, bound.memory.budget);
  return {Verdict::State::fits,
          left == UINT64_MAX ? "fits" : fmt::format("fits, {} left", format_bytes(left)),
          {}};
}

// --- Facts as pairs, then written in the form asked for.

namespace {

using Json = nlohmann::ordered_json;
using Facts = std::vector<std::pair<std::string, Json>>;

// Names come from files: what is no UTF-8 is escaped.
Json name_json(std::string_view name) { return is_valid_utf8(name) ? std::string(name) : safe_display(name); }

Facts model_facts(const Document& document) {
  const Model& model = *document.model;
  return {{"model", name_json(model.name)},
          {"tensors", model.graph->tensors.size()},
          {"parameters", document.parameters()},
          {"bytes", model.weight_bytes},
          {"files", model.graph->files.size()}};
}

Facts tensor_facts(const Model& model, graph::TensorId id) {
  const graph::Tensor& tensor = model.tensor(id);
  const graph::Storage& storage = model.graph->storage(tensor.storage);
  Facts facts = {{"tensor", name_json(tensor.name.view())},
                 {"dtype", std::string(graph::dtype_info(tensor.dtype).name)},
                 {"shape", tensor.shape.vector()},
                 {"bytes", model.bytes[graph::index(id)]}};
  if (storage.file == graph::kNoFile) return facts;
  facts.emplace_back("file", name_json(model.graph->files[graph::index(storage.file)].path));
  facts.emplace_back("offset", storage.offset + tensor.offset);
  return facts;
}

Facts module_facts(const Model& model, graph::NodeId id) {
  const graph::ModuleNode& node = model.tree.node(id);
  return {{"module", name_json(graph::module_path(model.tree, id))},
          {"tensors", node.tensors},
          {"parameters", node.parameters},
          {"bytes", node.bytes}};
}

Facts block_facts(const Document& document, plan::BlockId id) {
  const load::Projection& projection = *document.load.projection.value();
  const plan::Block& block = projection.plan.block(id);
  const plan::Lifetime& life = projection.timeline.lifetimes[graph::index(id)];
  Facts facts = {
      {"block", name_json(plan::block_label(block, *document.model->graph, document.model->owners))},
      {"memory", std::string(plan::space_name(block.space))},
      {"bytes", block.bytes}};
  if (life.from_step != plan::kNever) facts.emplace_back("from_step", life.from_step);
  if (life.from_step != plan::kNever && life.to_step != plan::kNever)
    facts.emplace_back("to_step", life.to_step);
  return facts;
}

Facts operator_facts(const Document& document, std::size_t at) {
  const ForwardScene* const scene = document.forward.scene.value().get();
  if (scene == nullptr || scene->forward() == nullptr || at >= scene->forward()->ops.size()) return {};
  const graph::Op& op = scene->forward()->ops[at];
  return {{"operator", at}, {"kind", name_json(op.kind)}, {"name", name_json(op.name)}};
}

Facts load_facts(const Document& document, const LoadOf& load) {
  Facts facts = {{"method", load.method}, {"order", name_json(load.order)}};
  for (const load::LoadRow& row : document.load.comparison.value()->answer.rows) {
    if (row.method->id != load.method || row.order != load.order || row.refusal) continue;
    for (std::size_t i = 0; i < plan::kSpaceCount; ++i)
      facts.emplace_back(std::string(plan::space_name(static_cast<plan::Space>(i))), row.peaks[i].bytes);
    facts.emplace_back("held", row.held);
    facts.emplace_back("fits", row.fits());
  }
  return facts;
}

Facts finding_facts(const Document& document, std::size_t at) {
  if (!document.checks.findings.value() || at >= document.checks.findings.value()->size()) return {};
  const inspect::Finding& finding = (*document.checks.findings.value())[at];
  return {{"finding", std::string(finding.id)},
          {"severity", std::string(graph::severity_name(finding.severity))},
          {"text", safe_display(finding.text)},
          {"cost", safe_display(finding.cost)},
          {"remedy", safe_display(finding.remedy)},
          {"bytes", finding.bytes}};
}

Facts facts_of(const Document& document) {
  const Model& model = *document.model;
  const Selected& selected = document.selected();
  if (const auto* const tensor = std::get_if<graph::TensorId>(&selected)) return tensor_facts(model, *tensor);
  if (const auto* const module = std::get_if<graph::NodeId>(&selected)) return module_facts(model, *module);
  if (const auto* const block = std::get_if<plan::BlockId>(&selected)) return block_facts(document, *block);
  if (const auto* const op = std::get_if<OperatorAt>(&selected)) return operator_facts(document, op->at);
  if (const auto* const finding = std::get_if<FindingAt>(&selected))
    return finding_facts(document, finding->at);
  if (const auto* const load = std::get_if<LoadOf>(&selected)) return load_facts(document, *load);
  return model_facts(document);
}

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A vertical bar would end the cell.
std::string cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2))
    text.insert(at, 1, '\\');
  return text;
}

}  // namespace

std::string selection_text(const Document& document, CopyForm form) {
  if (!document.model) return {};
  const Facts facts = facts_of(document);
  if (form == CopyForm::json) {
    Json json = Json::object();
    for (const auto& [name, value] : facts) json[name] = value;
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";  // names are bytes of files
  }
  std::string text = form == CopyForm::markdown ? "| fact | value |\n|---|---|\n" : "";
  for (const auto& [name, value] : facts)
    text += form == CopyForm::markdown ? fmt::format("| {} | {} |\n", name, cell(value_text(value)))
                                       : fmt::format("{}: {}\n", name, value_text(value));
  return text;
}

}  // namespace loadline::gui
