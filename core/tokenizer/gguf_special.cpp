// tokenizer.json and tokenizer_config.json come first, then config.json, as in gguf-py's SpecialVocab.
#include "core/tokenizer/gguf_special.h"

#include <algorithm>

namespace loadline {
namespace {

class Reader {
 public:
  Reader(const ModelTokenizer& model, std::optional<std::uint64_t> below)
      : model_(model), below_(below), special_(model.settings.special) {}

  SpecialTokens read() {
    if (model_.json) {
      read_normalizers();
      if (model_.settings.has_tokenizer_config) {
        stand_in("bos", "cls");
        stand_in("eos", "sep");
      }
      for (const PostStep& step : model_.json->post) read_post(step);
    }
    if (model_.settings.has_tokenizer_config) read_settings();
    for (const std::string& name : names_)
      if (const auto found = model_.settings.ids.find(name); found != model_.settings.ids.end())
        add_id(name, found->second);
    return std::move(result_);
  }

 private:
  void set_add(const std::string& name, bool value) { result_.adds.emplace_back(name, value); }
  bool has(const std::string& name) const {
    const auto found = special_.find(name);
    return found != special_.end() && !(found->second.text.empty() && !found->second.object);
  }
  // Whether the token is given as exactly this string: an object never is.
  bool is(const std::string& name, const std::string& text) const {
    const auto found = special_.find(name);
    return found != special_.end() && !found->second.object && found->second.text == text;
  }
  void set(const std::string& name, const std::string& text) { special_[name] = {text, false}; }
  void stand_in(const std::string& name, const std::string& other) {
    if (!has(name) && has(other)) special_[name] = special_[other];
  }

  void read_normalizers() {
    for (const NormalizerStep& step : model_.json->normalizers) {
      if (step.kind == NormalizerStep::Kind::lowercase) result_.lowercase = true;
      if (step.kind == NormalizerStep::Kind::strip_accents) result_.strip_accents = true;
      if (step.kind != NormalizerStep::Kind::bert) continue;
      result_.lowercase = step.lower;
      result_.strip_accents = step.strip_accents;
    }
  }

  void read_post(const PostStep& step) {
    if (step.kind == PostStep::Kind::roberta) {
      for (const char* const name : {"bos", "eos", "sep"}) set_add(name, true);
      if (model_.settings.has_tokenizer_config) {
        if (!has("cls")) set("cls", step.cls.first);
        if (!has("sep")) set("sep", step.sep.first);
      }
    } else if (step.kind == PostStep::Kind::templated) {
      read_template(step);
    }
  }

  static std::string special_name(const TemplatePart& part) { return part.special ? part.name : ""; }

  // Without a tokenizer_config.json, what the template puts around a text is what begins and ends it.
  bool begins(const std::string& text) {
    if (!model_.settings.has_tokenizer_config) {
      set("bos", text);
      return true;
    }
    if (!is("bos", text) && !is("cls", text)) {
      if (!has("bos")) set("bos", text);
      if (!has("cls")) set("cls", text);
    }
    return is("bos", text) || is("cls", text);
  }

  bool ends(const std::string& text) {
    if (model_.settings.has_tokenizer_config && !is("eos", text)) {
      // the former end becomes the end of a turn, or of a message
      for (const char* const name : {"eot", "eom"}) {
        if (std::ranges::count(names_, name) > 0) continue;
        names_.emplace_back(name);
        if (const auto found = special_.find("eos"); found != special_.end()) {
          special_[name] = found->second;
        } else {
          special_.erase(name);
        }
        break;
      }
    }
    set("eos", text);
    return true;
  }

  void read_template(const PostStep& step) {
    std::string first, last;
    if (step.single.size() > 1) {
      first = special_name(step.single.front());
      if (!first.empty()) set_add("bos", begins(first));
      last = special_name(step.single.back());
      if (!last.empty()) set_add("eos", ends(last));
    }
    read_pair(step.pair, first, last);
  }

  // A [sep] [eos] B, between what begins and ends a single text
  void read_pair(const std::vector<TemplatePart>& pair, const std::string& first, const std::string& last) {
    if (pair.empty()) return;
    auto begin = pair.begin(), end = pair.end();
    if (!first.empty() && special_name(*begin) == first) ++begin;
    if (!last.empty() && begin != end && special_name(*(end - 1)) == last) --end;
    if (end - begin < 3) return;
    if (begin->special || begin->name != "A" || (end - 1)->special || (end - 1)->name != "B") return;
    const std::vector<TemplatePart> middle(begin + 1, end - 1);
    const auto separates = [&](const TemplatePart& part) {
      return part.special && !part.name.empty() && (is("sep", part.name) || is("eos", part.name));
    };
    bool add = separates(middle[0]) && last.empty();
    if (middle.size() == 2) add = add || separates(middle[1]);
    set_add("sep", add);
    if (add && !has("sep") && model_.settings.has_tokenizer_config) {
      if (const auto eos = special_.find("eos"); eos != special_.end()) special_["sep"] = eos->second;
    }
  }

  void read_settings() {
    for (const std::string& name : names_) {
      if (const auto found = model_.settings.adds.find(name); found != model_.settings.adds.end())
        set_add(name, found->second);
      const auto special = special_.find(name);
      if (special == special_.end() || !model_.json) continue;
      // only tokens that tokenizer.json adds have an id here
      const auto token = std::ranges::find(model_.json->added, special->second.text, &AddedToken::text);
      if (token != model_.json->added.end()) add_id(name, token->id);
    }
  }

  void add_id(const std::string& name, std::uint32_t id) {
    if (below_ && id >= *below_) return;
    for (const auto& row : result_.ids)
      if (row.first == name) return;
    result_.ids.emplace_back(name, id);
  }

  const ModelTokenizer& model_;
  std::optional<std::uint64_t> below_;
  std::map<std::string, SpecialText> special_;
  std::vector<std::string> names_ = {"bos", "eos", "unk", "sep", "pad", "cls", "mask"};
  SpecialTokens result_ = {};
};

}  // namespace

SpecialTokens special_tokens(const ModelTokenizer& model, std::optional<std::uint64_t> below) {
  return Reader(model, below).read();
}

}  // namespace loadline
