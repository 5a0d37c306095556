// SentencePiece's algorithms (Kudo and Richardson, "SentencePiece", 2018): the Unigram model's best path, and
// BPE by the scores of pieces. Scores are added in single precision, since ties and near ties are decided so.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/tokenizer/unicode.h"
#include "core/tokenizer/vocabulary.h"

#include <algorithm>
#include <cfloat>
#include <queue>

namespace loadline::tokenizer {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr float kUnknownPenalty = 10;

// Bytes of the well-formed character that `text` begins with; 0 if there is none.
std::size_t whole_character(std::string_view text) {
  const std::size_t bytes = character_bytes(text[0]);
  return bytes <= text.size() && is_valid_utf8(text.substr(0, bytes)) ? bytes : 0;
}

}  // namespace

SentencePieceModel::SentencePieceModel(const Tokenizer& tokenizer)
    : tokenizer_(tokenizer),
      charsmap_(tokenizer.sentencepiece.charsmap, tokenizer.file + ": normalizer_spec.precompiled_charsmap") {
  least_ = FLT_MAX;
  most_ = FLT_MIN;
  for (const VocabularyPiece& piece : tokenizer.pieces) {
    const bool normal = piece.type == PieceType::normal || piece.type == PieceType::user_defined ||
                        piece.type == PieceType::unused;
    if (!(normal ? normal_ : reserved_).try_emplace(piece.text, piece.id).second)
      throw Error(ErrorCode::malformed, {.file = tokenizer.file}, "pieces[{}]: '{}' occurs twice", piece.id,
                  safe_display(piece.text, 60));
    if (normal) pieces_.add(piece.text, piece.id);
    if (piece.type == PieceType::user_defined) user_defined_.add(piece.text, piece.id);
    if (piece.type != PieceType::normal) continue;
    least_ = std::min(least_, static_cast<float>(piece.score));
    most_ = std::max(most_, static_cast<float>(piece.score));
  }
  if (!tokenizer.sentencepiece.byte_fallback) return;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::string name = byte_piece(static_cast<unsigned char>(byte));
    const auto found = reserved_.find(name);
    if (found == reserved_.end() || tokenizer.pieces[found->second].type != PieceType::byte)
      throw Error(ErrorCode::malformed, {.file = tokenizer.file},
                  "byte_fallback is set, but there is no byte piece '{}'", name);
    bytes_.push_back(found->second);
  }
}

SentencePieceModel::Found SentencePieceModel::normalized_prefix(std::string_view text) const {
  if (const auto piece = user_defined_.longest(text)) return {piece->bytes, text.substr(0, piece->bytes)};
  if (const auto rule = charsmap_.longest(text)) return {rule->bytes, rule->replacement};
  const std::size_t bytes = whole_character(text);
  return bytes == 0 ? Found{1, kReplacement} : Found{bytes, text.substr(0, bytes)};
}

std::string SentencePieceModel::normalize(std::string_view text) const {
  const SentencePieceSpec& spec = tokenizer_.sentencepiece;
  const std::string_view space = spec.escape_whitespaces ? kSpace : " ";
  std::string result;
  if (spec.remove_extra_whitespaces) {
    while (!text.empty()) {
      const Found found = normalized_prefix(text);
      if (found.text != " ") break;
      text.remove_prefix(found.bytes);
    }
  }
  if (text.empty()) return result;
  if (spec.add_dummy_prefix && !spec.treat_whitespace_as_suffix) result += space;
  bool after_space = spec.remove_extra_whitespaces;
  while (!text.empty()) {
    const Found found = normalized_prefix(text);
    std::string_view part = found.text;
    while (after_space && part.starts_with(' ')) part.remove_prefix(1);
    for (const char c : part) {
      if (c == ' ') {
        result += space;
      } else {
        result += c;
      }
    }
    if (!part.empty()) after_space = part.ends_with(' ');
    if (!spec.remove_extra_whitespaces) after_space = false;
    text.remove_prefix(found.bytes);
  }
  if (spec.remove_extra_whitespaces)
    while (result.ends_with(space)) result.resize(result.size() - space.size());
  if (spec.add_dummy_prefix && spec.treat_whitespace_as_suffix) result += space;
  return result;
}

std::uint32_t SentencePieceModel::id_of(std::string_view piece) const {
  if (const auto found = reserved_.find(piece); found != reserved_.end()) return found->second;
  const auto found = normal_.find(piece);
  return found == normal_.end() ? *tokenizer_.unknown_id : found->second;
}

std::pair<std::size_t, bool> SentencePieceModel::symbol(std::string_view text) const {
  if (const auto piece = user_defined_.longest(text)) return {piece->bytes, true};
  return {std::min(text.size(), character_bytes(text[0])), false};
}

std::vector<std::uint32_t> SentencePieceModel::encode(std::string_view text) const {
  const std::string normal = normalize(text);
  std::vector<Part> parts;
  switch (tokenizer_.sentencepiece.model) {
    case SentencePieceSpec::Model::unigram:
      parts = encode_unigram(normal);
      break;
    case SentencePieceSpec::Model::bpe:
      parts = encode_bpe(normal);
      break;
    case SentencePieceSpec::Model::word:
      parts = encode_words(normal);
      break;
    case SentencePieceSpec::Model::character:
      parts = encode_characters(normal);
      break;
  }
  std::vector<std::uint32_t> ids;
  ids.reserve(parts.size());
  bool after_unknown = false;
  for (const auto& [part, id] : parts) {
    const bool unknown = tokenizer_.pieces[id].type == PieceType::unknown;
    if (unknown && !bytes_.empty()) {
      for (const char byte : part) ids.push_back(bytes_[static_cast<unsigned char>(byte)]);
    } else if (!unknown || !after_unknown) {
      ids.push_back(id);
    }
    after_unknown = unknown;
  }
  return ids;
}

std::vector<SentencePieceModel::Part> SentencePieceModel::encode_unigram(std::string_view text) const {
  struct Node {
    std::uint32_t id = 0;
    float score = 0;
    bool reached = false;
    std::size_t begin = 0;
  };
  const float unknown_score = least_ - kUnknownPenalty;
  std::vector<Node> best(text.size() + 1);
  for (std::size_t at = 0; at < text.size();) {
    const float so_far = best[at].score;
    const std::size_t bytes = std::min(character_bytes(text[at]), text.size() - at);
    bool single = false;
    pieces_.for_each_prefix(text.substr(at), [&](std::size_t length, std::uint32_t id) {
      const VocabularyPiece& piece = tokenizer_.pieces[id];
      if (piece.type == PieceType::unused) return;
      // a user-defined piece scores so much that nothing else is chosen
      const float score = piece.type == PieceType::user_defined ? static_cast<float>(length) * most_ - 0.1F
                                                                : static_cast<float>(piece.score);
      Node& node = best[at + length];
      const float candidate = score + so_far;
      if (!node.reached || candidate > node.score) node = {id, candidate, true, at};
      single = single || length == bytes;
    });
    if (!single) {
      Node& node = best[at + bytes];
      const float candidate = unknown_score + so_far;
      if (!node.reached || candidate > node.score) node = {*tokenizer_.unknown_id, candidate, true, at};
    }
    at += bytes;
  }
  std::vector<Part> parts;
  for (std::size_t end = text.size(); end > 0; end = best[end].begin)
    parts.push_back({text.substr(best[end].begin, end - best[end].begin), best[end].id});
  std::ranges::reverse(parts);
  return parts;
}

std::vector<SentencePieceModel::Part> SentencePieceModel::encode_bpe(std::string_view text) const {
  constexpr std::size_t kNone = ~std::size_t{0};
  struct Symbol {
    std::size_t previous, next;
    bool frozen;
    std::string_view text;
  };
  struct Candidate {
    float score;
    std::size_t left, right, bytes;
    // the queue gives its largest first: the best score, then the leftmost
    bool operator<(const Candidate& other) const {
      return score != other.score ? score < other.score : left > other.left;
    }
  };
  std::vector<Symbol> symbols;
  for (std::size_t at = 0; at < text.size();) {
    const auto [bytes, frozen] = symbol(text.substr(at));
    const std::size_t i = symbols.size();
    symbols.push_back({i == 0 ? kNone : i - 1, i + 1, frozen, text.substr(at, bytes)});
    at += bytes;
  }
  if (symbols.empty()) return {};
  symbols.back().next = kNone;

  std::priority_queue<Candidate> queue;
  std::unordered_map<std::string_view, std::pair<std::string_view, std::string_view>> unused;
  const auto offer = [&](std::size_t left, std::size_t right) {
    if (left == kNone || right == kNone || symbols[left].frozen || symbols[right].frozen) return;
    const std::string_view joined(symbols[left].text.data(),
                                  symbols[left].text.size() + symbols[right].text.size());
    const auto found = normal_.find(joined);
    if (found == normal_.end()) return;
    const VocabularyPiece& piece = tokenizer_.pieces[found->second];
    queue.push({static_cast<float>(piece.score), left, right, joined.size()});
    if (piece.type == PieceType::unused) unused[joined] = {symbols[left].text, symbols[right].text};
  };
  for (std::size_t i = 1; i < symbols.size(); ++i) offer(i - 1, i);
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Symbol& left = symbols[top.left];
    Symbol& right = symbols[top.right];
    if (left.text.empty() || right.text.empty() || left.text.size() + right.text.size() != top.bytes)
      continue;
    left.text = {left.text.data(), top.bytes};
    left.next = right.next;
    if (right.next != kNone) symbols[right.next].previous = top.left;
    right.text = {};
    offer(left.previous, top.left);
    offer(top.left, left.next);
  }
  std::vector<Part> parts;
  std::vector<std::string_view> open;  // pieces that may have to be taken apart again, the next one last
  for (std::size_t i = 0; i != kNone; i = symbols[i].next) {
    open.push_back(symbols[i].text);
    while (!open.empty()) {
      const std::string_view piece = open.back();
      open.pop_back();
      const std::uint32_t id = id_of(piece);
      const auto halves = tokenizer_.pieces[id].type == PieceType::unused ? unused.find(piece) : unused.end();
      if (halves == unused.end()) {
        parts.push_back({piece, id});
      } else {
        open.push_back(halves->second.second);
        open.push_back(halves->second.first);
      }
    }
  }
  return parts;
}

std::vector<SentencePieceModel::Part> SentencePieceModel::encode_words(std::string_view text) const {
  std::vector<Part> parts;
  while (!text.empty()) {
    // a word begins with the space in front of it
    const std::size_t end = std::min(text.find(kSpace, 1), text.size());
    parts.push_back({text.substr(0, end), id_of(text.substr(0, end))});
    text.remove_prefix(end);
  }
  return parts;
}

std::vector<SentencePieceModel::Part> SentencePieceModel::encode_characters(std::string_view text) const {
  std::vector<Part> parts;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, symbol(text).first);
    parts.push_back({part, id_of(part)});
    text.remove_prefix(part.size());
  }
  return parts;
}

}  // namespace loadline::tokenizer
