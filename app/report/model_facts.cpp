// Rows and thumbnails of models, and the file that keeps them:
//
//   {"program", "models": [{"path", "bytes", "changed", "format", "type", "tensors", "parameters", "weights",
//     "map": [x, y, width, height, role, ...],   in eighths of a pixel
//     "answers": [{"question", "tried", "verdict", "better": {"policy", "bytes", "verdict"}, "no_better"}]}]}
#include "app/report/does_it_run.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/io/source_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <span>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

namespace loadline::report {

// --- The thumbnail.

namespace {

using RoleBytes = std::array<std::uint64_t, graph::kRoleCount>;

// Of what is below each node of the tree; children stand behind their parents.
std::vector<RoleBytes> role_bytes(const graph::MetaGraph& graph, const graph::ModuleTree& tree) {
  std::vector<RoleBytes> below(tree.nodes.size());
  const std::vector<graph::Role> roles = graph::tensor_roles(graph);
  for (std::size_t i = tree.nodes.size(); i-- > 0;) {
    const graph::ModuleNode& node = tree.nodes[i];
    if (node.tensor)
      below[i][static_cast<std::size_t>(roles[graph::index(*node.tensor)])] +=
          graph.storage(graph.tensor(*node.tensor).storage).bytes;
    if (i == graph::index(graph::kRootNode)) continue;
    for (std::size_t role = 0; role < graph::kRoleCount; ++role)
      below[graph::index(node.parent)][role] += below[i][role];
  }
  return below;
}

// A rectangle for each tensor; where they are too small, one for each role below a module.
std::vector<ThumbTile> thumbnail(const graph::MetaGraph& graph) {
  const graph::ModuleTree tree = graph::module_tree(graph);
  const std::vector<RoleBytes> below = role_bytes(graph, tree);
  view::TreemapOptions options;
  options.min_side = 3;
  options.padding = 0;
  options.header = kThumbHeight;  // no room for words
  std::vector<ThumbTile> tiles;
  for (const view::Tile& tile : view::layout_treemap(tree, view::TreemapOrder(tree), graph::kRootNode,
                                                     {0, 0, kThumbWidth, kThumbHeight}, options)) {
    if (tile.kind == view::TileKind::module) continue;
    const RoleBytes& bytes = below[graph::index(tile.node)];
    const double all = std::accumulate(bytes.begin(), bytes.end(), 0.0);
    view::Rect rect = tile.rect;
    for (std::size_t role = 0; role < bytes.size() && all > 0; ++role) {
      if (bytes[role] == 0) continue;
      rect.h = tile.rect.h * static_cast<double>(bytes[role]) / all;
      tiles.push_back({rect, static_cast<graph::Role>(role)});
      rect.y += rect.h;
    }
  }
  return tiles;
}

}  // namespace

// --- The question, and the facts of one model.

load::Target steadied(load::Target target) {
  if (target.id != load::kThisMachine) return target;
  for (std::optional<std::uint64_t>* const bytes : {&target.device_bytes, &target.host_bytes})
    if (*bytes) **bytes -= **bytes % std::max<std::uint64_t>(std::bit_floor(**bytes) / 64, 1);
  return target;
}

load::LoadRequest RunQuestion::request() const {
  load::LoadRequest request = usual_request(target.id, std::min(prompt, tokens()));
  request.past = tokens() - request.sequence;
  return request;
}

std::string RunQuestion::text() const {
  const load::LoadRequest asked = request();
  const auto bytes = [](const std::optional<std::uint64_t>& value) {
    return value ? fmt::format("{}", *value) : std::string("-");
  };
  std::string text =
      fmt::format("{} {} {} {} {} {}", safe_display(target.id), static_cast<int>(target.memory),
                  bytes(target.device_bytes), bytes(target.host_bytes), asked.sequence, asked.past);
  for (const auto& [id, value] : target.options) text += fmt::format(" {}={}", id, safe_display(value));
  return text;
}

ModelFacts model_facts(const graph::MetaGraph& graph, const RunQuestion& question,
                       const load::LoadEnvironment& environment, Progress& progress) {
  ModelFacts facts;
  facts.row = model_row(graph, question.request(), environment, progress);
  facts.map = thumbnail(graph);
  facts.tried_types = facts.row->verdict.fits();
  return facts;
}

// --- The file.

namespace {

using Json = nlohmann::ordered_json;
using ReadJson = nlohmann::json;  // finds a key among many in less time

// More than people have, and little enough to read at every start.
constexpr std::uint64_t kMostFile = 16 << 20;
constexpr std::size_t kMostModels = 2000, kMostAnswers = 6, kMostTiles = 400;
constexpr std::size_t kMostPath = 4096, kMostWords = 400;
constexpr double kEighth = 8;

Json verdict_json(const RunVerdict& verdict) {
  Json json = {{"state", static_cast<int>(verdict.state)}, {"words", verdict.words}};
  if (!verdict.first.empty()) json["first"] = verdict.first;
  if (!verdict.about.empty()) json["about"] = verdict.about;
  const auto add = [&](const char* key, const std::optional<std::uint64_t>& value) {
    if (value) json[key] = *value;
  };
  add("left", verdict.left);
  add("over", verdict.over);
  add("context", verdict.context);
  add("positions", verdict.positions);
  if (!verdict.whole) json["whole"] = false;
  if (verdict.too_long) json["too_long"] = true;
  return json;
}

Json answer_json(const std::string& question, const ModelFacts& facts) {
  Json json = {
      {"question", question}, {"tried", facts.tried_types}, {"verdict", verdict_json(facts.row->verdict)}};
  if (const auto& better = facts.row->better)
    json["better"] = {
        {"policy", better->policy}, {"bytes", better->bytes}, {"verdict", verdict_json(better->verdict)}};
  if (!facts.row->no_better.empty()) json["no_better"] = facts.row->no_better;
  return json;
}

Json map_json(const std::vector<ThumbTile>& map) {
  Json list = Json::array();
  if (map.size() > kMostTiles) return list;
  for (const ThumbTile& tile : map) {
    for (const double side : {tile.rect.x, tile.rect.y, tile.rect.w, tile.rect.h})
      list.push_back(static_cast<int>(std::lround(side * kEighth)));
    list.push_back(static_cast<int>(tile.role));
  }
  return list;
}

// The file may hold anything: each of these throws where a value is not of its kind or too large, and the
// model is left out.

[[noreturn]] void refuse() { throw Error(ErrorCode::malformed, "not what was kept"); }

const ReadJson& at(const ReadJson& json, const char* key) {
  const auto found = json.find(key);
  if (!json.is_object() || found == json.end()) refuse();
  return *found;
}

std::uint64_t count_at(const ReadJson& json, const char* key) {
  const ReadJson& value = at(json, key);
  if (!value.is_number_unsigned()) refuse();
  return value.get<std::uint64_t>();
}

std::optional<std::uint64_t> maybe_count_at(const ReadJson& json, const char* key) {
  return json.contains(key) ? std::optional(count_at(json, key)) : std::nullopt;
}

bool flag_at(const ReadJson& json, const char* key) {
  const ReadJson& value = at(json, key);
  if (!value.is_boolean()) refuse();
  return value.get<bool>();
}

// Only what can be shown as it is.
std::string words_at(const ReadJson& json, const char* key, bool may_lack = false) {
  if (may_lack && json.is_object() && !json.contains(key)) return {};
  const ReadJson& value = at(json, key);
  if (!value.is_string()) refuse();
  std::string words = value.get<std::string>();
  if (words.size() > kMostWords || safe_display(words) != words) refuse();
  return words;
}

RunVerdict verdict_of(const ReadJson& json) {
  RunVerdict verdict;
  const std::uint64_t state = count_at(json, "state");
  if (state == 0 || state > static_cast<std::uint64_t>(RunVerdict::State::over)) refuse();
  verdict.state = static_cast<RunVerdict::State>(state);
  verdict.words = words_at(json, "words");
  verdict.first = words_at(json, "first", true);
  verdict.about = words_at(json, "about", true);
  verdict.left = maybe_count_at(json, "left");
  verdict.over = maybe_count_at(json, "over");
  verdict.context = maybe_count_at(json, "context");
  verdict.positions = maybe_count_at(json, "positions");
  verdict.whole = !json.contains("whole") || flag_at(json, "whole");
  verdict.too_long = json.contains("too_long") && flag_at(json, "too_long");
  return verdict;
}

std::vector<ThumbTile> map_of(const ReadJson& json) {
  const ReadJson& list = at(json, "map");
  if (!list.is_array() || list.size() % 5 != 0 || list.size() > 5 * kMostTiles) refuse();
  std::vector<ThumbTile> map;
  for (std::size_t i = 0; i < list.size(); i += 5) {
    std::array<std::uint64_t, 5> numbers = {};
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      const auto most = static_cast<std::uint64_t>(k < 4 ? kThumbWidth * kEighth : graph::kRoleCount - 1);
      if (!list[i + k].is_number_unsigned()) refuse();
      numbers[k] = list[i + k].get<std::uint64_t>();
      if (numbers[k] > most) refuse();
    }
    const auto side = [&](std::size_t k) { return static_cast<double>(numbers[k]) / kEighth; };
    map.push_back({{side(0), side(1), side(2), side(3)}, static_cast<graph::Role>(numbers[4])});
  }
  return map;
}

// The facts without an answer.
ModelFacts header_of(const ReadJson& json) {
  ModelFacts facts;
  facts.row = ModelRow{.format = words_at(json, "format"),
                       .type = words_at(json, "type"),
                       .tensors = count_at(json, "tensors"),
                       .parameters = count_at(json, "parameters"),
                       .bytes = count_at(json, "weights")};
  facts.map = map_of(json);
  return facts;
}

void take_answer(const ReadJson& json, ModelFacts& facts) {
  facts.tried_types = flag_at(json, "tried");
  facts.row->verdict = verdict_of(at(json, "verdict"));
  if (json.contains("better")) {
    const ReadJson& better = at(json, "better");
    facts.row->better = QuantizedModel{words_at(better, "policy"), count_at(better, "bytes"),
                                       verdict_of(at(better, "verdict"))};
  }
  facts.row->no_better = words_at(json, "no_better", true);
}

}  // namespace

void KeptFacts::read() {
  if (file_.empty()) return;
  try {
    const io::SourceFile file = io::SourceFile::open(file_);
    if (file.size() <= kMostFile) add_text(file.head(kMostFile));
  } catch (const Error&) {
    // the headers are read instead
  }
}

void KeptFacts::add_text(std::string_view text) {
  const auto json = small_json<ReadJson>(text);
  const auto program = json.is_object() ? json.find("program") : json.end();
  if (program == json.end() || !program->is_string() || program->get<std::string>() != program_) return;
  const auto models = json.find("models");
  if (models == json.end() || !models->is_array()) return;
  for (const ReadJson& model : *models) {
    if (entries_.size() == kMostModels) return;
    try {
      const ReadJson& path = at(model, "path");
      if (!path.is_string() || path.get_ref<const std::string&>().size() > kMostPath) continue;
      const ReadJson& changed = at(model, "changed");
      if (!changed.is_number_integer()) continue;
      Entry entry{count_at(model, "bytes"), changed.get<std::int64_t>(), {}};
      const ModelFacts header = header_of(model);
      const ReadJson& answers = at(model, "answers");
      if (!answers.is_array() || answers.size() > kMostAnswers) continue;
      for (const ReadJson& answer : answers) {
        ModelFacts facts = header;
        take_answer(answer, facts);
        entry.answers.push_back(
            {words_at(answer, "question"), std::make_shared<const ModelFacts>(std::move(facts))});
      }
      // what was read since is newer
      if (!entry.answers.empty()) entries_.emplace(path.get<std::string>(), std::move(entry));
    } catch (const Error&) {
      continue;
    }
  }
}

std::string KeptFacts::text() const {
  Json models = Json::array();
  for (const auto& [path, entry] : entries_) {
    if (models.size() == kMostModels) break;
    Json answers = Json::array();
    const ModelFacts* header = nullptr;
    for (const Answer& answer : entry.answers) {
      if (!answer.facts->row || !answer.facts->is_judged()) continue;
      if (header == nullptr) header = answer.facts.get();
      answers.push_back(answer_json(answer.question, *answer.facts));
    }
    if (header == nullptr || !is_valid_utf8(path)) continue;
    const ModelRow& row = *header->row;
    models.push_back({{"path", path},
                      {"bytes", entry.bytes},
                      {"changed", entry.changed},
                      {"format", row.format},
                      {"type", row.type},
                      {"tensors", row.tensors},
                      {"parameters", row.parameters},
                      {"weights", row.bytes},
                      {"map", map_json(header->map)},
                      {"answers", std::move(answers)}});
  }
  const Json json = {{"program", program_}, {"models", std::move(models)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void KeptFacts::write() {
  changed_ = false;
  if (file_.empty()) return;
  // another window, or `loadline models`, may have written meanwhile
  KeptFacts all(file_, program_);
  all.entries_ = entries_;
  all.read();
  // what is gone is not read again
  std::erase_if(all.entries_, [](const auto& entry) {
    std::error_code failed;
    return !std::filesystem::exists(entry.first, failed) && !failed;
  });
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(file_).parent_path(), failed);
  if (failed) throw Error(ErrorCode::io, {.file = file_}, "cannot make its folder: {}", failed.message());
  const std::string text = all.text();
  io::AtomicFile file(file_);
  file.write_at(0, std::as_bytes(std::span(text)));
  file.commit();
}

std::shared_ptr<const ModelFacts> KeptFacts::find(const Key& key, const std::string& question) const {
  const auto found = entries_.find(key.path);
  if (found == entries_.end() || found->second.bytes != key.bytes || found->second.changed != key.changed)
    return nullptr;
  const std::vector<Answer>& answers = found->second.answers;
  const auto same = std::ranges::find(answers, question, &Answer::question);
  if (same != answers.end()) return same->facts;
  // how large it is and of what kind is the same
  const auto other =
      std::ranges::find_if(answers, [](const Answer& one) { return one.facts->row.has_value(); });
  if (other == answers.end()) return nullptr;
  ModelFacts facts = *other->facts;
  facts.row->verdict = {};
  facts.row->better.reset();
  facts.row->no_better.clear();
  facts.tried_types = false;
  return std::make_shared<const ModelFacts>(std::move(facts));
}

KeptFacts::Key KeptFacts::key_of(const std::string& path, std::uint64_t bytes, std::int64_t changed) {
  if (path.empty()) return {path, bytes, changed};
  std::error_code failed;
  const std::filesystem::path whole = std::filesystem::absolute(path, failed).lexically_normal();
  if (failed) return {path, bytes, changed};
  struct stat status = {};
  for (const std::filesystem::path& folder : {whole, whole.parent_path()})
    if (::stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
      return {whole.string(), bytes, std::max(changed, io::changed_at(status))};
  return {whole.string(), bytes, changed};
}

void KeptFacts::keep(const Key& key, const std::string& question, std::shared_ptr<const ModelFacts> facts) {
  Entry& entry = entries_[key.path];
  if (entry.bytes != key.bytes || entry.changed != key.changed) entry = {key.bytes, key.changed, {}};
  std::erase_if(entry.answers, [&](const Answer& answer) { return answer.question == question; });
  entry.answers.insert(entry.answers.begin(), {question, std::move(facts)});
  if (entry.answers.size() > kMostAnswers) entry.answers.resize(kMostAnswers);
  changed_ = true;
}

}  // namespace loadline::report
