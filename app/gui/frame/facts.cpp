// One function for each kind of selection; then the forms in which facts are copied.
#include "app/gui/frame/facts.h"

#include "app/gui/panels/forward/forward.h"
#include "app/gui/parts/widgets.h"
#include "app/report/manual.h"
#include "app/report/row_text.h"
#include "core/base/text.h"

#include <algorithm>
#include <filesystem>
#include <set>
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

// The value for people takes the place of one that rules cannot read.
std::vector<std::string> attribute_lines(const graph::Op& op) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < op.attributes.size(); ++i) {
    const auto& [name, value] = op.attributes[i];
    if (name.size() == 1 && graph::is_for_people(name)) continue;
    const std::string own = name.substr(graph::is_for_people(name) ? 1 : 0);
    lines.push_back(own + " = " + attribute_text(value));
    // the value itself follows
    if (own != name && i + 1 < op.attributes.size() && op.attributes[i + 1].first == own) ++i;
  }
  return lines;
}

// The tensor of a constant that makes this value.
std::optional<graph::TensorId> constant_of(const ForwardScene& scene, graph::ValueId id) {
  const auto found = scene.constants.find(id);
  return found == scene.constants.end() ? std::nullopt : std::optional(found->second);
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
    std::vector<std::string> types;
    for (const DTypeShare& share : model_.dtypes)
      types.push_back(fmt::format("{} {}", graph::dtype_info(share.dtype).name, format_bytes(share.bytes)));
    const std::size_t files = model_.graph->files.size();
    SelectionFacts of{.kind = "Model", .title = model_.name};
    of.facts = {caveats_fact("errors", graph::Severity::error, Fact::Form::bad),
                caveats_fact("warnings", graph::Severity::warning, Fact::Form::warning),
                only_copied("model", copied_name(model_.name)),
                bytes_fact("Weights", model_.weight_bytes, format_bytes(model_.weight_bytes)),
                parameters_fact(document_.parameters(), document_.uncounted()),
                count_fact("tensors", "Tensors", model_.graph->tensors.size()),
                {"types", "Types", fmt::format("{}", fmt::join(types, ", ")), types},
                {"files",
                 "Files",
                 std::uint64_t{files},
                 {fmt::format("{}, {}", counted(files, "file"), format_bytes(model_.disk_bytes))}}};
    if (document_.history.count() == 0)  // once somebody has selected anything, they have seen it
      of.facts.push_back(
          {"", "", {}, {"What you select is marked in every view."}, "", Fact::Form::paragraph});
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
    const ForwardScene& scene = *document_.forward.scene.value();
    const graph::Op& runs = scene.forward()->ops[at.at];
    of.title = fmt::format("{}  {}", at.at, runs.kind);
    of.facts = {only_copied("operator", std::uint64_t{at.at})};
    add_operator(of, scene, scene.place_of(at.at));
    return of;
  }

  // An operator of the file that the pass does not run.
  SelectionFacts operator()(graph::OpPlace place) const {
    SelectionFacts of{.kind = "Operator", .panels = {"graph"}};
    if (!document_.exists(place)) return absent(of, "The forward pass is being computed.");
    const ForwardScene& scene = *document_.forward.scene.value();
    of.title = graph::op_at(*scene.drawn(), place).kind;
    of.facts = {{"runs", "", false, {std::string(scene.why_not_run(place))}, "", Fact::Form::paragraph}};
    add_operator(of, scene, place);
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

  // What the file, or the family, says about an operator.
  void add_operator(SelectionFacts& of, const ForwardScene& scene, graph::OpPlace place) const {
    const graph::ForwardGraph& forward = *scene.drawn();
    const graph::Op& op = graph::op_at(forward, place);
    of.facts.push_back(only_copied("kind", copied_name(op.kind)));
    of.facts.push_back({"name", "Name", copied_name(op.name), {}});
    if (!op.name.empty()) of.facts.back().lines = {op.name};
    add_domain(of, op);
    add_lines(of, "inputs", "Inputs", input_lines(scene, op));
    add_lines(of, "outputs", "Outputs", value_lines(scene, op.outputs));
    const std::vector<std::string> settings = attribute_lines(op);
    if (!settings.empty()) add_lines(of, "attributes", "Attributes", settings);
    std::vector<std::string> held;
    for (std::size_t i = 0; i < op.bodies.size(); ++i)
      held.push_back(fmt::format("{}: {}", graph::body_name(op, i),
                                 counted(forward.bodies[op.bodies[i]].ops.size(), "operator")));
    if (!held.empty()) add_lines(of, "holds", "Holds", held);
    for (const auto& [name, value] : op.attributes)
      if (const auto* const doc = std::get_if<std::string>(&value);
          doc != nullptr && name.size() == 1 && graph::is_for_people(name))
        of.facts.push_back(text_fact("doc", "Described as", *doc));
    for (const graph::TensorId id : constants_of(scene, op))
      add_link(of, {model_.tensor(id).name.str(), id, model_.bytes[graph::index(id)]});
  }

  static void add_lines(SelectionFacts& of, std::string_view id, std::string label,
                        std::vector<std::string> lines) {
    constexpr std::size_t kMost = 24;
    std::vector<std::string> copied;
    for (const std::string& line : lines) copied.push_back(copied_name(line));
    if (lines.size() > kMost) {
      const std::size_t left = lines.size() - kMost;
      lines.resize(kMost);
      lines.push_back(fmt::format("and {} more", left));
    }
    of.facts.push_back({id, std::move(label), std::move(copied), std::move(lines)});
  }

  // "com.microsoft.Attention" is of the domain com.microsoft; the file says which version of it.
  void add_domain(SelectionFacts& of, const graph::Op& op) const {
    if (model_.graph->format != "onnx") return;
    const std::size_t dot = op.kind.rfind('.');
    const std::string domain = dot == std::string::npos ? "ai.onnx" : op.kind.substr(0, dot);
    std::string words = domain;
    for (const graph::MetaEntry& entry : model_.graph->metadata)
      if (entry.key == "opset." + domain) words += ", version " + meta_line(entry.value, 20);
    of.facts.push_back(text_fact("domain", "Domain", words));
  }

  // At their positions: values, weights with the values of constants, and what is left out.
  std::vector<std::string> input_lines(const ForwardScene& scene, const graph::Op& op) const {
    if (op.arguments.empty()) {
      std::vector<std::string> lines = value_lines(scene, op.inputs);
      for (const graph::TensorId id : op.weights) lines.push_back(tensor_line(id));
      return lines;
    }
    std::vector<std::string> lines;
    std::set<graph::ValueId> given;
    for (const graph::Argument& argument : op.arguments)
      if (argument.value) given.insert(*argument.value);
    for (const graph::Argument& argument : op.arguments) {
      const std::size_t at = lines.size();
      const auto constant = argument.value ? constant_of(scene, *argument.value) : std::nullopt;
      lines.push_back(fmt::format("{}: {}", at,
                                  constant          ? tensor_line(*constant)
                                  : argument.weight ? tensor_line(*argument.weight)
                                  : argument.value  ? value_lines(scene, {*argument.value}).front()
                                                    : "left out"));
    }
    for (const graph::ValueId id : op.inputs)
      if (!given.contains(id)) lines.push_back("inside: " + value_lines(scene, {id}).front());
    return lines;
  }

  std::string tensor_line(graph::TensorId id) const {
    const graph::Tensor& tensor = model_.tensor(id);
    const std::string* const numbers = document_.constants.of(id);
    return fmt::format("{} {} {}{}{}", tensor.name.str(), shape_text(tensor),
                       graph::dtype_info(tensor.dtype).name, numbers == nullptr ? "" : " = ",
                       numbers == nullptr ? "" : *numbers);
  }

  std::vector<std::string> value_lines(const ForwardScene& scene,
                                       const std::vector<graph::ValueId>& values) const {
    std::vector<std::string> lines;
    for (const graph::ValueId id : values) {
      const auto passed = scene.in_pass(id);
      const std::string bytes =
          passed ? value_size_text(document_.forward.figures().get(), *passed) : std::string("?");
      lines.push_back(value_text(*scene.drawn(), id) + (bytes == "?" ? "" : "  " + bytes));
    }
    return lines;
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

std::vector<graph::TensorId> constants_of(const ForwardScene& scene, const graph::Op& op) {
  std::vector<graph::TensorId> tensors = op.weights;
  for (const graph::ValueId id : op.inputs)
    if (const auto constant = constant_of(scene, id)) tensors.push_back(*constant);
  return tensors;
}

std::vector<graph::TensorId> constants_of(const Document& document) {
  const auto* const at = std::get_if<OperatorAt>(&document.selected());
  const auto* const place = std::get_if<graph::OpPlace>(&document.selected());
  if ((at == nullptr && place == nullptr) || !document.exists(document.selected())) return {};
  const ForwardScene& scene = *document.forward.scene.value();
  return constants_of(scene, graph::op_at(*scene.drawn(), at != nullptr ? scene.place_of(at->at) : *place));
}

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
  if (form == CopyForm::name) {
    for (const Fact& fact : facts.facts)
      if (const auto* const name = std::get_if<std::string>(&fact.value);
          fact.id == "name" && name != nullptr && !name->empty())
        return *name;
    return copied_name(facts.title);
  }
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
