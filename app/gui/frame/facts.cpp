// One function for each kind of selection; then the forms in which facts are copied.
#include "app/gui/frame/facts.h"

#include "app/gui/panels/forward/forward.h"
#include "app/gui/parts/widgets.h"
#include "app/report/manual.h"
#include "app/report/row_text.h"
#include "core/base/text.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace loadline::gui {

// --- The facts of each kind of selection.

namespace {

constexpr std::size_t kMostLinks = 12;

// Names come from files: what is no UTF-8 is escaped.
std::string copied_name(std::string_view name) {
  return is_valid_utf8(name) ? std::string(name) : safe_display(name);
}

Fact only_copied(std::string_view id, Fact::Value value) { return {id, "", std::move(value)}; }

Fact text_fact(std::string_view id, std::string label, std::string text, std::string hint = {}) {
  return {id, std::move(label), text, {text}, std::move(hint)};
}

Fact count_fact(std::string_view id, std::string label, std::uint64_t count) {
  return {id, std::move(label), count, {format_grouped(count)}};
}

Fact bytes_fact(std::string label, std::uint64_t bytes, std::string shown) {
  return {"bytes", std::move(label), bytes, {std::move(shown)}, format_grouped(bytes) + " bytes"};
}

Fact size_fact(const Model& model, std::uint64_t bytes) {
  return bytes_fact(
      "Size", bytes,
      fmt::format("{} ({})", format_bytes(bytes), percent_text(share_of(bytes, model.weight_bytes))));
}

Fact parameters_fact(std::uint64_t count, const std::string& remark = "") {
  return {"parameters", "Parameters", count, {format_count(count) + remark}, format_grouped(count)};
}

std::string attribute_text(const graph::Attribute& value) {
  if (const auto* const whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* const real = std::get_if<double>(&value)) return fmt::format("{:g}", *real);
  if (const auto* const word = std::get_if<std::string>(&value)) return *word;
  if (const auto* const list = std::get_if<std::vector<std::int64_t>>(&value))
    return fmt::format("[{}]", fmt::join(*list, ", "));
  return "not shown";
}

Fact attributes_fact(const graph::Op& op) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : op.attributes) lines.push_back(name + " = " + attribute_text(value));
  std::vector<std::string> copied;
  for (const std::string& line : lines) copied.push_back(copied_name(line));
  return {"attributes", "Attributes", std::move(copied), std::move(lines)};
}

std::string life_text(const load::Projection& projection, const plan::Lifetime& life) {
  const bool stays = life.to_step == plan::kNever || life.to_step >= projection.plan.steps.size();
  const std::string from = format_grouped(life.from_step);
  return stays ? "from step " + from : fmt::format("step {} to {}", from, format_grouped(life.to_step));
}

class FactsOf {
 public:
  explicit FactsOf(const Document& document) : document_(document), model_(*document.model) {}

  SelectionFacts operator()(std::monostate) const {
    std::string types;
    for (const DTypeShare& share : model_.dtypes)
      types += fmt::format("{}{} {}", types.empty() ? "" : ", ", graph::dtype_info(share.dtype).name,
                           format_bytes(share.bytes));
    const std::size_t files = model_.graph->files.size();
    SelectionFacts of{.kind = "Model", .title = model_.name};
    of.facts = {caveats_fact("errors", graph::Severity::error, Fact::Form::bad),
                caveats_fact("warnings", graph::Severity::warning, Fact::Form::warning),
                only_copied("model", copied_name(model_.name)),
                bytes_fact("Weights", model_.weight_bytes, format_bytes(model_.weight_bytes)),
                parameters_fact(document_.parameters(), document_.uncounted()),
                count_fact("tensors", "Tensors", model_.graph->tensors.size()),
                text_fact("types", "Types", types),
                {"files",
                 "Files",
                 std::uint64_t{files},
                 {fmt::format("{}, {}", counted(files, "file"), format_bytes(model_.disk_bytes))}},
                {"", "", {}, {"What you select is marked in every view."}, "", Fact::Form::paragraph}};
    return of;
  }

  SelectionFacts operator()(graph::TensorId id) const {
    SelectionFacts of{.kind = "Tensor", .panels = {"map", "tensors", "load", "bytes", "values"}};
    const graph::Tensor& tensor = model_.tensor(id);
    const graph::Storage& storage = model_.graph->storage(tensor.storage);
    of.title = tensor.name.str();
    const std::string type(graph::dtype_info(tensor.dtype).name), remark = storage_remark(model_, id);
    of.facts = {only_copied("tensor", copied_name(tensor.name.view())),
                {"dtype", "Type", type, {remark.empty() ? type : type + ", " + remark}, strides_text(tensor)},
                {"shape", "Shape", tensor.shape.vector(), {shape_text(tensor)}},
                size_fact(model_, model_.bytes[graph::index(id)]),
                text_fact("role", "Role", std::string(graph::role_name(model_.roles[graph::index(id)])))};
    if (const std::uint32_t tie = model_.tie_of[graph::index(id)]; tie > 0)
      of.facts.push_back(shares_fact(model_.ties[tie - 1]));
    if (storage.file != graph::kNoFile) {
      const std::string& path = model_.graph->files[graph::index(storage.file)].path;
      of.facts.push_back({"file",
                          "File",
                          copied_name(path),
                          {std::filesystem::path(path).filename().string()},
                          shown(path)});
      of.facts.push_back(count_fact("offset", "At byte", storage.offset + tensor.offset));
    }
    if (document_.load.projection.value()) add_lives(of, *document_.load.projection.value(), tensor.storage);
    add_uses(of, id);
    return of;
  }

  SelectionFacts operator()(graph::NodeId id) const {
    const graph::ModuleTree& tree = model_.tree;
    const graph::ModuleNode& node = tree.node(id);
    SelectionFacts of{.kind = "Module", .panels = {"map", "load", "bytes"}};
    of.title = id == graph::kRootNode ? model_.name : graph::module_path(tree, id);
    of.facts = {only_copied("module", copied_name(graph::module_path(tree, id))),
                size_fact(model_, node.bytes), parameters_fact(node.parameters),
                count_fact("tensors", "Tensors", node.tensors)};
    std::vector<graph::NodeId> children(node.children.begin(), node.children.end());
    std::ranges::stable_sort(children, std::ranges::greater(),
                             [&](graph::NodeId child) { return tree.node(child).bytes; });
    of.more_links = children.size() - std::min(children.size(), kMostLinks);
    children.resize(children.size() - of.more_links);
    for (const graph::NodeId at : children) {
      const graph::ModuleNode& child = tree.node(at);
      add_link(of,
               {child.name, child.tensor && child.children.empty() ? Selected(*child.tensor) : Selected(at),
                child.bytes});
    }
    return of;
  }

  SelectionFacts operator()(OperatorAt at) const {
    SelectionFacts of{.kind = "Operator", .panels = {"graph", "operators", "lifetimes"}};
    if (!document_.exists(at)) return absent(of, "The forward pass is being computed.");
    const graph::ForwardGraph& forward = *document_.forward.graph();
    const graph::Op& op = forward.ops[at.at];
    of.title = fmt::format("{}  {}", at.at, op.kind);
    of.facts = {only_copied("operator", std::uint64_t{at.at}),
                only_copied("kind", copied_name(op.kind)),
                {"name", "Name", copied_name(op.name), {}}};
    if (!op.name.empty()) of.facts.back().lines = {op.name};
    of.facts.push_back(values_fact("inputs", "Inputs", forward, op.inputs));
    of.facts.push_back(values_fact("outputs", "Outputs", forward, op.outputs));
    if (!op.attributes.empty()) of.facts.push_back(attributes_fact(op));
    for (const graph::TensorId id : op.weights)
      add_link(of, {model_.tensor(id).name.str(), id, model_.bytes[graph::index(id)]});
    return of;
  }

  SelectionFacts operator()(plan::BlockId id) const {
    SelectionFacts of{.kind = "Block", .panels = {"load"}};
    if (!document_.exists(id)) return absent(of, "The load is being projected.");
    const load::Projection& projection = *document_.load.projection.value();
    const plan::Block& block = projection.plan.block(id);
    const plan::Lifetime& life = projection.timeline.lifetimes[graph::index(id)];
    of.title = plan::block_label(block, *model_.graph, model_.owners);
    of.facts = {only_copied("block", copied_name(of.title)),
                {"memory",
                 "Memory",
                 std::string(plan::space_name(block.space)),
                 {capitalized(plan::space_title(block.space))}},
                bytes_fact("Size", block.bytes, format_bytes(block.bytes))};
    if (life.from_step == plan::kNever) return of;
    of.facts.push_back(text_fact("alive", "Alive", life_text(projection, life)));
    of.facts.push_back(only_copied("from_step", std::uint64_t{life.from_step}));
    if (life.to_step != plan::kNever) of.facts.push_back(only_copied("to_step", std::uint64_t{life.to_step}));
    return of;
  }

  SelectionFacts operator()(const LoadOf& load) const {
    SelectionFacts of{.kind = "Load", .title = fmt::format("{}, {} order", load.method, load.order)};
    of.facts = {only_copied("method", load.method), only_copied("order", copied_name(load.order))};
    const load::LoadAnswer& answer = document_.load.comparison.value()->answer;
    const auto row = std::ranges::find_if(answer.rows, [&](const load::LoadRow& one) {
      return one.method->id == load.method && one.order == load.order;
    });
    if (row == answer.rows.end()) return absent(of, "This load is not in the comparison.");
    const load::Method& method = *row->method;
    of.facts.push_back({"summary",
                        "",
                        std::string(method.summary),
                        {std::string(method.summary)},
                        "",
                        Fact::Form::paragraph});
    of.facts.push_back(text_fact("law", "Peak law", load::law_text(method),
                                 fmt::format("The peak as a formula. {}\n\n{}", report::law_legend({&method}),
                                             report::method_explanation(method.id))));
    if (row->refusal) {
      const std::string why = shown(row->refusal->what());
      of.facts.push_back({"refusal", "", why, {why}, "", Fact::Form::bad});
      return of;
    }
    add_peaks(of, *row, *answer.bound);
    return of;
  }

  SelectionFacts operator()(FindingAt at) const {
    SelectionFacts of{.kind = "Finding"};
    if (!document_.exists(at)) return absent(of, "This finding is from an earlier check.");
    const inspect::Finding& finding = (*document_.checks.findings.value())[at.at];
    of.title = finding.text;
    of.severity = finding.severity;
    of.facts = {only_copied("finding", std::string(finding.id)),
                only_copied("severity", std::string(graph::severity_name(finding.severity))),
                only_copied("text", safe_display(finding.text)),
                finding_fact("cost", "Cost", finding.cost),
                finding_fact("remedy", "Fix", finding.remedy),
                only_copied("bytes", finding.bytes)};
    if (finding.example)
      add_link(of, {"For example " + model_.tensor(*finding.example).name.str(), *finding.example,
                    model_.bytes[graph::index(*finding.example)]});
    return of;
  }

 private:
  static SelectionFacts absent(SelectionFacts of, std::string_view why) {
    of.absent = why;
    of.panels.clear();
    return of;
  }

  static void add_link(SelectionFacts& of, FactLink link) {
    if (of.links.size() == kMostLinks)
      ++of.more_links;
    else
      of.links.push_back(std::move(link));
  }

  // Before all figures: they are less sure than they look.
  Fact caveats_fact(std::string_view id, graph::Severity severity, Fact::Form form) const {
    std::vector<std::string> lines;
    for (const Caveat& caveat : document_.caveats())
      if (caveat.severity == severity) lines.push_back(shown(caveat.text));
    return {id, "", lines, lines, "", form};
  }

  Fact shares_fact(const std::vector<graph::TensorId>& tie) const {
    std::vector<std::string> names;
    std::string hint;
    for (const graph::TensorId id : tie) {
      names.push_back(copied_name(model_.tensor(id).name.view()));
      hint += (hint.empty() ? "" : "\n") + shown(model_.tensor(id).name);
    }
    return {"shares",
            "Shares",
            std::move(names),
            {fmt::format("its bytes with {}", counted(tie.size() - 1, "other tensor"))},
            std::move(hint)};
  }

  // The operators that read the tensor.
  void add_uses(SelectionFacts& of, graph::TensorId id) const {
    const graph::ForwardGraph* const forward = document_.forward.graph();
    if (forward == nullptr) return;
    of.links_title = "Used by";
    for (std::size_t i = 0; i < forward->ops.size(); ++i) {
      const graph::Op& op = forward->ops[i];
      if (!reads(op, id)) continue;
      add_link(of,
               {fmt::format("{}  {}{}{}", i, op.kind, op.name.empty() ? "" : "  ", op.name), OperatorAt{i}});
    }
    if (of.links.empty()) of.links_title = "Used by no operator";
  }

  // The blocks that hold the storage during the load.
  static void add_lives(SelectionFacts& of, const load::Projection& projection, graph::StorageId storage) {
    constexpr std::size_t kMost = 4;
    std::vector<std::string> lines;
    const plan::Plan& plan = projection.plan;
    for (std::size_t i = 0; i < plan.blocks.size() && lines.size() < kMost; ++i) {
      const plan::Lifetime& life = projection.timeline.lifetimes[i];
      if (plan.blocks[i].storage == storage && life.from_step != plan::kNever)
        lines.push_back(
            fmt::format("{}, {}", plan::space_title(plan.blocks[i].space), life_text(projection, life)));
    }
    if (!lines.empty()) of.facts.push_back({"alive", "Alive", lines, lines});
  }

  Fact values_fact(std::string_view id, std::string label, const graph::ForwardGraph& forward,
                   const std::vector<graph::ValueId>& values) const {
    constexpr std::size_t kMost = 8;
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < std::min(values.size(), kMost); ++i)
      lines.push_back(fmt::format("{}  {}", value_text(forward, values[i]),
                                  value_size_text(document_.forward.figures().get(), values[i])));
    std::vector<std::string> copied;
    for (const std::string& line : lines) copied.push_back(copied_name(line));
    return {id, std::move(label), std::move(copied), std::move(lines)};
  }

  static void add_peaks(SelectionFacts& of, const load::LoadRow& row, const load::BoundRequest& bound) {
    for (const plan::Space space : plan::kSpaceOrder) {
      const load::RowPeak& peak = row.peaks[plan::index(space)];
      of.facts.push_back({plan::space_name(space), capitalized(plan::space_title(space)), peak.bytes});
      if (peak.bytes == 0) continue;
      of.facts.back().lines = {format_bytes(peak.bytes)};
      of.facts.back().hint = "reached at " + shown(peak.tensor);
    }
    of.facts.push_back(only_copied("held", row.held_peak));
    of.facts.push_back(only_copied("fits", row.fits()));
    if (!bound.judged()) return;
    const std::string verdict = report::verdict_text(row, bound);
    of.facts.push_back(
        {"verdict",
         "",
         verdict,
         {verdict},
         "",
         row.fits() ? row.estimated ? Fact::Form::warning : Fact::Form::good : Fact::Form::bad});
  }

  static Fact finding_fact(std::string_view id, std::string label, const std::string& text) {
    Fact fact{id, std::move(label), safe_display(text)};
    fact.form = Fact::Form::paragraph;
    if (!text.empty()) fact.lines = {shown(text)};
    return fact;
  }

  const Document& document_;
  const Model& model_;
};

}  // namespace

SelectionFacts facts_of(const Document& document, const Selected& selected) {
  return std::visit(FactsOf(document), selected);
}

// --- The facts as text that can be pasted elsewhere.

namespace {

using Json = nlohmann::ordered_json;

// Names are bytes of files.
std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// A vertical bar would end the cell.
std::string cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2))
    text.insert(at, 1, '\\');
  return text;
}

}  // namespace

std::string facts_text(const SelectionFacts& facts, CopyForm form) {
  Json json = Json::object();
  std::string text = form == CopyForm::markdown ? "| fact | value |\n|---|---|\n" : "";
  for (const Fact& fact : facts.facts) {
    if (fact.id.empty()) continue;
    const Json value = std::visit([](const auto& one) { return Json(one); }, fact.value);
    const std::string words = value.is_string() ? value.get<std::string>() : dumped(value, -1);
    json[std::string(fact.id)] = value;
    text += form == CopyForm::markdown ? fmt::format("| {} | {} |\n", fact.id, cell(words))
                                       : fmt::format("{}: {}\n", fact.id, words);
  }
  return form == CopyForm::json ? dumped(json, 2) + "\n" : text;
}

}  // namespace loadline::gui
