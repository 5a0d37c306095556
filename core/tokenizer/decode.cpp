// Each decoder as the `tokenizers` library of Hugging Face (0.23) defines it.
#include "core/tokenizer/decode.h"

#include "core/tokenizer/unicode.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace loadline {
namespace {

using Kind = DecoderStep::Kind;

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

// What BERT's and CTC's decoders do to spaces in front of punctuation and of English endings.
void clean_up(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [what, by] : kRules) replace_all(text, what, by);
}

// Characters that stand for bytes become those bytes; a text with any other character stays as it is.
void decode_byte_level(std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts) {
    std::string decoded;
    bool all = true;
    for (std::size_t at = 0; all && at < text.size();) {
      const int byte = byte_of_character(next_character(text, at));
      all = byte >= 0;
      if (all) decoded += static_cast<char>(byte);
    }
    bytes += all ? decoded : text;
  }
  texts = {repaired_utf8(bytes)};
}

std::optional<char> byte_of_piece(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, value, 16);
  if (error != std::errc() || end != text.data() + 5) return std::nullopt;
  return static_cast<char>(value);
}

// Runs of byte pieces become text, or a replacement character for each byte.
void decode_byte_fallback(std::vector<std::string>& texts) {
  std::vector<std::string> result;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (repaired_utf8(bytes) == bytes) {
      result.push_back(bytes);
    } else {
      for (std::size_t i = 0; i < bytes.size(); ++i) result.emplace_back("\xEF\xBF\xBD");
    }
    bytes.clear();
  };
  for (std::string& text : texts) {
    if (const auto byte = byte_of_piece(text)) {
      bytes += *byte;
    } else {
      flush();
      result.push_back(std::move(text));
    }
  }
  flush();
  texts = std::move(result);
}

void strip_ends(const DecoderStep& step, std::string& text) {
  for (std::uint64_t i = 0; i < step.start && text.starts_with(step.content); ++i)
    text.erase(0, step.content.size());
  for (std::uint64_t i = 0; i < step.stop && text.ends_with(step.content); ++i)
    text.resize(text.size() - step.content.size());
}

void decode_metaspace(const DecoderStep& step, std::vector<std::string>& texts) {
  for (std::size_t i = 0; i < texts.size(); ++i)
    replace_all(texts[i], step.replacement, i == 0 && step.prepend != PrependScheme::never ? "" : " ");
}

void decode_wordpiece(const DecoderStep& step, std::vector<std::string>& texts) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::string& text = texts[i];
    if (i > 0) {
      if (text.starts_with(step.affix)) {
        text.erase(0, step.affix.size());
      } else {
        text.insert(0, " ");
      }
    }
    if (step.cleanup) clean_up(text);
  }
}

void decode_ctc(const DecoderStep& step, std::vector<std::string>& texts) {
  const auto repeated = std::unique(texts.begin(), texts.end());
  texts.erase(repeated, texts.end());
  for (std::string& text : texts) {
    replace_all(text, step.pad, "");
    if (!step.cleanup) continue;
    clean_up(text);
    replace_all(text, step.delimiter, " ");
  }
  std::erase_if(texts, [](const std::string& text) { return text.empty(); });
}

}  // namespace

Decoders::Decoders(const Tokenizer& tokenizer) {
  for (std::size_t i = 0; i < tokenizer.decoders.size(); ++i) {
    Step& made = steps_.emplace_back();
    made.step = tokenizer.decoders[i];
    if (made.step.kind == Kind::replace)
      made.pattern.emplace(made.step.pattern, fmt::format("{}: decoder {}", tokenizer.file, i + 1));
  }
}

std::string Decoders::join(std::vector<std::string> texts) const {
  for (const Step& step : steps_) apply(step, texts);
  return fmt::format("{}", fmt::join(texts, steps_.empty() ? " " : ""));
}

void Decoders::apply(const Step& made, std::vector<std::string>& texts) {
  const DecoderStep& step = made.step;
  switch (step.kind) {
    case Kind::byte_level:
      return decode_byte_level(texts);
    case Kind::byte_fallback:
      return decode_byte_fallback(texts);
    case Kind::fuse:
      texts = {fmt::format("{}", fmt::join(texts, ""))};
      return;
    case Kind::metaspace:
      return decode_metaspace(step, texts);
    case Kind::wordpiece:
      return decode_wordpiece(step, texts);
    case Kind::ctc:
      return decode_ctc(step, texts);
    case Kind::strip:
      for (std::string& text : texts) strip_ends(step, text);
      return;
    case Kind::bpe:
      for (std::size_t i = 0; i < texts.size(); ++i)
        if (!step.affix.empty()) replace_all(texts[i], step.affix, i + 1 == texts.size() ? "" : " ");
      return;
    case Kind::replace:
      for (std::string& text : texts) {
        std::string result;
        for (const TextPart& part : made.pattern->parts(text))
          result += part.match ? step.content : text.substr(part.begin, part.end - part.begin);
        text = std::move(result);
      }
      return;
  }
}

}  // namespace loadline
