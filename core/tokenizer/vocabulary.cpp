// Look-ups, BPE merges, WordPiece.
#include "core/tokenizer/vocabulary.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/unicode.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <queue>
#include <unordered_map>
#include <vector>

#include <fmt/core.h>

namespace loadline::tokenizer {

// --- Names of the kinds of vocabularies.

std::string_view vocabulary_kind_name(VocabularyKind kind) {
  switch (kind) {
    case VocabularyKind::bpe:
      return "BPE";
    case VocabularyKind::wordpiece:
      return "WordPiece";
    case VocabularyKind::unigram:
      return "Unigram";
    case VocabularyKind::word_level:
      return "WordLevel";
    case VocabularyKind::sentencepiece:
      return "SentencePiece";
  }
  return "";
}

// --- Edges in one hash table, but for those of the root.

void ByteTrie::add(std::string_view text, std::uint32_t number) {
  if (text.empty()) return;
  if (roots_.empty()) roots_.assign(256, kNone);
  std::uint32_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const auto fresh = static_cast<std::uint32_t>(numbers_.size());
    std::uint32_t next = fresh;
    if (node == 0) {
      if (roots_[byte] == kNone) roots_[byte] = fresh;
      next = roots_[byte];
    } else {
      next = children_.try_emplace(static_cast<std::uint64_t>(node) << 8 | byte, fresh).first->second;
    }
    if (next == fresh) numbers_.push_back(kNone);
    node = next;
  }
  if (numbers_[node] == kNone) numbers_[node] = number;
}

std::optional<ByteTrie::Found> ByteTrie::longest(std::string_view text) const {
  std::optional<Found> best;
  std::uint32_t node = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    node = child(node, static_cast<unsigned char>(text[i]));
    if (node == kNone) break;
    if (numbers_[node] != kNone) best = Found{i + 1, numbers_[node]};
  }
  return best;
}

// --- Pieces by text in a hash table, by id in their sorted list.

Vocabulary::Vocabulary(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  ids_.reserve(tokenizer.pieces.size());
  for (const VocabularyPiece& piece : tokenizer.pieces) ids_[piece.text] = piece.id;
  for (unsigned byte = 0; byte < 256; ++byte) bytes_[byte] = id(fmt::format("<0x{:02X}>", byte));
}

std::optional<std::uint32_t> Vocabulary::id(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const std::string* Vocabulary::text(std::uint32_t id) const {
  auto found = std::ranges::upper_bound(tokenizer_.pieces, id, {}, &VocabularyPiece::id);
  if (found == tokenizer_.pieces.begin() || (--found)->id != id) return nullptr;
  return &found->text;
}

// --- Joins neighboring symbols, the most important pair first: in n log n steps, or, of few symbols, by
// looking at all that are left.

namespace {

struct MergeRule {
  std::uint32_t rank = 0;  // the lowest joins first; of equal ones the leftmost
  std::uint32_t joined = 0;
};

// Nearly all words have no more symbols. A queue would take longer, by its allocations alone.
constexpr std::size_t kFewSymbols = 32;

template <typename Rule>
void merge_few(std::vector<std::uint32_t>& symbols, Rule rule) {
  constexpr MergeRule kNoRule = {UINT32_MAX, UINT32_MAX};
  std::array<MergeRule, kFewSymbols> rules;  // of each symbol with the next one
  std::size_t count = symbols.size();
  const auto find = [&](std::size_t left) {
    rules[left] = rule(symbols[left], symbols[left + 1]).value_or(kNoRule);
  };
  for (std::size_t i = 0; i + 1 < count; ++i) find(i);
  while (count > 1) {
    const auto end = rules.begin() + static_cast<std::ptrdiff_t>(count) - 1;
    const auto best = std::ranges::min_element(rules.begin(), end, {}, &MergeRule::rank);
    if (best->joined == kNoRule.joined) break;
    const auto left = static_cast<std::size_t>(best - rules.begin());
    symbols[left] = best->joined;
    std::copy(symbols.begin() + static_cast<std::ptrdiff_t>(left) + 2,
              symbols.begin() + static_cast<std::ptrdiff_t>(count),
              symbols.begin() + static_cast<std::ptrdiff_t>(left) + 1);
    std::copy(best + 1, end, best);
    --count;
    if (left > 0) find(left - 1);
    if (left + 1 < count) find(left);
  }
  symbols.resize(count);
}

// `rule(left, right)` gives the rule for a pair of symbols, or nothing. `symbols` becomes what stays.
template <typename Rule>
void merge_pairs(std::vector<std::uint32_t>& symbols, Rule rule) {
  if (symbols.size() <= kFewSymbols) return merge_few(symbols, rule);
  struct Link {
    std::size_t previous, next;
    bool gone;
  };
  struct Candidate {
    std::uint32_t rank;
    std::size_t left;
    std::uint32_t joined;
    // the queue gives its largest first
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  const std::size_t none = symbols.size();
  std::vector<Link> links(symbols.size());
  for (std::size_t i = 0; i < symbols.size(); ++i) links[i] = {i == 0 ? none : i - 1, i + 1, false};
  std::vector<Candidate> first;
  const auto candidate = [&](std::size_t left, std::size_t right) -> std::optional<Candidate> {
    if (left == none || right == none) return std::nullopt;
    const std::optional<MergeRule> found = rule(symbols[left], symbols[right]);
    if (!found) return std::nullopt;
    return Candidate{found->rank, left, found->joined};
  };
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
    if (const auto found = candidate(i, i + 1)) first.push_back(*found);
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(first));
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    if (links[top.left].gone || links[top.left].next == none) continue;
    const std::size_t right = links[top.left].next;
    // either symbol may have changed since the candidate was found
    const std::optional<MergeRule> now = rule(symbols[top.left], symbols[right]);
    if (!now || now->joined != top.joined) continue;
    symbols[top.left] = top.joined;
    links[top.left].next = links[right].next;
    links[right].gone = true;
    if (links[right].next != none) links[links[right].next].previous = top.left;
    if (const auto found = candidate(links[top.left].previous, top.left)) queue.push(*found);
    if (const auto found = candidate(top.left, links[top.left].next)) queue.push(*found);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < symbols.size(); ++i)
    if (!links[i].gone) symbols[kept++] = symbols[i];
  symbols.resize(kept);
}

}  // namespace

// --- BPE after Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units"
// (2016); WordPiece after Wu et al., "Google's Neural Machine Translation System" (2016). Ties and unknown
// characters as the `tokenizers` library of Hugging Face has them.

namespace {

class Bpe final : public WordModel {
 public:
  Bpe(const Tokenizer& tokenizer, bool ignores_merges)
      : tokenizer_(tokenizer), vocabulary_(tokenizer), ignores_merges_(ignores_merges) {
    if (tokenizer.unknown) unknown_ = vocabulary_.id(*tokenizer.unknown);
    merges_.reserve(tokenizer.merges.size());
    for (std::size_t rank = 0; rank < tokenizer.merges.size(); ++rank) {
      const Merge& merge = tokenizer.merges[rank];
      const std::size_t prefix = tokenizer.subword_prefix.size();
      if (merge.right.size() < prefix) throw no_piece(rank, merge.right);
      const std::uint32_t left = known(rank, merge.left), right = known(rank, merge.right);
      const std::uint32_t joined = known(rank, merge.left + merge.right.substr(prefix));
      // of two rules for a pair the later one counts
      merges_.insert_or_assign(pair_key(left, right), Rule{static_cast<std::uint32_t>(rank), joined});
    }
  }

  void encode(std::string_view word, std::vector<std::uint32_t>& ids) const override {
    if (word.empty()) return;
    if (ignores_merges_) {
      if (const auto id = vocabulary_.id(word)) return ids.push_back(*id);
    }
    std::vector<std::uint32_t> symbols = characters(word);
    merge_pairs(symbols, [&](std::uint32_t left, std::uint32_t right) -> std::optional<MergeRule> {
      const auto rule = merges_.find(pair_key(left, right));
      if (rule == merges_.end()) return std::nullopt;
      return MergeRule{rule->second.rank, rule->second.joined};
    });
    ids.insert(ids.end(), symbols.begin(), symbols.end());
  }

 private:
  struct Rule {
    std::uint32_t rank = 0, joined = 0;
  };
  static std::uint64_t pair_key(std::uint32_t left, std::uint32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | right;
  }
  Error no_piece(std::size_t rank, std::string_view text) const {
    return Error(ErrorCode::malformed, {.file = tokenizer_.file},
                 "model.merges[{}]: the vocabulary has no piece '{}'", rank, safe_display(text, 60));
  }
  std::uint32_t known(std::size_t rank, const std::string& text) const {
    if (const auto id = vocabulary_.id(text)) return *id;
    throw no_piece(rank, text);
  }

  // The ids of a word's characters, before any merge.
  std::vector<std::uint32_t> characters(std::string_view word) const {
    std::vector<std::uint32_t> symbols;
    symbols.reserve(word.size());
    bool unknown = false;  // an unknown character waits: others may join it
    const auto flush = [&] {
      if (unknown) symbols.push_back(*unknown_);
      unknown = false;
    };
    std::string decorated;
    for (std::size_t at = 0; at < word.size();) {
      const bool first = at == 0;
      const std::size_t from = at;
      at += character_bytes(word[at]);
      std::string_view text = word.substr(from, at - from);
      const bool prefixed = !first && !tokenizer_.subword_prefix.empty();
      const bool suffixed = at == word.size() && !tokenizer_.word_suffix.empty();
      if (prefixed || suffixed) {
        decorated = prefixed ? tokenizer_.subword_prefix : "";
        decorated += text;
        if (suffixed) decorated += tokenizer_.word_suffix;
        text = decorated;
      }
      if (const auto id = vocabulary_.id(text)) {
        flush();
        symbols.push_back(*id);
      } else if (tokenizer_.byte_fallback && add_bytes(text, symbols)) {
        // an unknown character before these bytes still waits, and comes behind them
      } else if (tokenizer_.unknown) {
        if (!unknown_)
          throw Error(ErrorCode::malformed, {.file = tokenizer_.file},
                      "model.unk_token: the vocabulary has no piece '{}'",
                      safe_display(*tokenizer_.unknown, 60));
        if (!tokenizer_.fuse_unknown) flush();
        unknown = true;
      }
    }
    flush();
    return symbols;
  }

  bool add_bytes(std::string_view text, std::vector<std::uint32_t>& symbols) const {
    for (const char c : text)
      if (!vocabulary_.byte(static_cast<unsigned char>(c))) return false;
    for (const char c : text) symbols.push_back(*vocabulary_.byte(static_cast<unsigned char>(c)));
    return true;
  }

  const Tokenizer& tokenizer_;
  Vocabulary vocabulary_;
  bool ignores_merges_;  // of a word that is a piece
  std::optional<std::uint32_t> unknown_;
  std::unordered_map<std::uint64_t, Rule> merges_;
};

std::uint32_t unknown_piece(const Tokenizer& tokenizer, const Vocabulary& vocabulary) {
  const std::string text = tokenizer.unknown.value_or("[UNK]");
  if (const auto id = vocabulary.id(text)) return *id;
  throw Error(ErrorCode::malformed, {.file = tokenizer.file},
              "model.unk_token: the vocabulary has no piece '{}', and the text has an unknown word",
              safe_display(text, 60));
}

class WordPiece final : public WordModel {
 public:
  explicit WordPiece(const Tokenizer& tokenizer) : tokenizer_(tokenizer), vocabulary_(tokenizer) {
    // the pieces that continue a word are looked up without their prefix
    for (const VocabularyPiece& piece : tokenizer.pieces) {
      firsts_.add(piece.text, piece.id);
      if (piece.text.starts_with(tokenizer.subword_prefix))
        rests_.add(std::string_view(piece.text).substr(tokenizer.subword_prefix.size()), piece.id);
    }
  }

  void encode(std::string_view word, std::vector<std::uint32_t>& ids) const override {
    const std::size_t before = ids.size();
    bool known = count_characters(word) <= tokenizer_.most_word_characters;
    for (std::size_t at = 0; known && at < word.size();) {
      const auto found = (at == 0 ? firsts_ : rests_).longest(word.substr(at));
      known = found.has_value();
      if (!known) break;
      ids.push_back(found->number);
      at += found->bytes;
    }
    if (known) return;
    ids.resize(before);
    ids.push_back(unknown_piece(tokenizer_, vocabulary_));
  }

 private:
  const Tokenizer& tokenizer_;
  Vocabulary vocabulary_;
  ByteTrie firsts_, rests_;
};

}  // namespace

std::unique_ptr<WordModel> word_model(const Tokenizer& tokenizer) {
  switch (tokenizer.kind) {
    case VocabularyKind::bpe:
      return std::make_unique<Bpe>(tokenizer, tokenizer.ignore_merges);
    case VocabularyKind::wordpiece:
      return std::make_unique<WordPiece>(tokenizer);
    default:
      throw Error(ErrorCode::usage, "{}: {} vocabularies are not encoded", tokenizer.file,
                  vocabulary_kind_name(tokenizer.kind));
  }
}

std::unique_ptr<WordModel> merging_model(const Tokenizer& tokenizer) {
  return std::make_unique<Bpe>(tokenizer, false);
}

}  // namespace loadline::tokenizer
