// Builders for tests.
#include "tests/support/builders.h"

#include "importers/resolve.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>

#include <fmt/format.h>
#include <stdlib.h>

namespace loadline::testing {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "loadline-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void write_file(const std::string& path, std::string_view bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw std::runtime_error("cannot write " + path);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::byte> as_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string safetensors_bytes(std::uint64_t claimed, std::string_view header, std::size_t data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>((claimed >> (8 * i)) & 0xFF);
  bytes += header;
  for (std::size_t i = 0; i < data; ++i) bytes += static_cast<char>(i * 7 + 3);
  return bytes;
}

std::string safetensors_bytes(std::string_view header, std::size_t data) {
  return safetensors_bytes(header.size(), header, data);
}

SafetensorsHeader::SafetensorsHeader(std::string_view metadata)
    : text_(metadata.empty() ? "{" : fmt::format(R"({{"__metadata__":{})", metadata)) {}

void SafetensorsHeader::add(std::string_view name, std::string_view dtype, std::string_view shape,
                            std::uint64_t bytes) {
  text_ += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                       text_.size() == 1 ? "" : ",", name, dtype, shape, data_bytes_, data_bytes_ + bytes);
  data_bytes_ += bytes;
}

std::string sample_safetensors() {
  SafetensorsHeader header(R"({"format":"pt","note":"gr\u00fc\u00df"})");
  header.add("scalar", "F64", "", 8);
  header.add("matrix.weight", "F32", "16,16", 1024);
  header.add("four.d", "BF16", "2,3,4,5", 240);
  header.add("empty", "F32", "0,7", 0);
  header.add("model.layers.10.mlp.up_proj.weight", "F16", "8,32", 512);
  header.add("model.layers.2.mlp.up_proj.weight", "F16", "8,32", 512);
  header.add("esc\\u0007\\\"aped", "U8", "3", 3);
  for (const DTypeInfo& info : dtype_table())
    if (!info.safetensors.empty())
      header.add(fmt::format("each.{}", info.name), info.safetensors, fmt::format("{}", info.block_elements),
                 info.block_bytes);
  std::string text = header.text();
  text.append((8 - (text.size() % 8)) % 8, ' ');
  return safetensors_bytes(text, header.data_bytes());
}

Source memory_source(std::string name, std::string_view bytes,
                     std::vector<std::pair<std::string, std::string>> siblings) {
  Source source;
  source.file = std::make_shared<const SourceFile>(SourceFile::from_memory(std::move(name), as_bytes(bytes)));
  source.open_sibling =
      [siblings = std::move(siblings)](const std::string& wanted) -> std::shared_ptr<const SourceFile> {
    for (const auto& [key, content] : siblings)
      if (key == wanted)
        return std::make_shared<const SourceFile>(SourceFile::from_memory(key, as_bytes(content)));
    return nullptr;
  };
  return source;
}

MetaGraphPtr byte_model(const TemporaryFolder& folder, const std::vector<std::uint64_t>& sizes,
                        std::uint64_t seed) {
  SafetensorsHeader header;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    header.add(fmt::format("t{}", i), "U8", fmt::format("{}", sizes[i]), sizes[i]);
  std::string bytes = safetensors_bytes(header.text(), 0);
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < header.data_bytes(); ++i) bytes += static_cast<char>(random() & 0xFF);
  const std::string path = folder / "bytes.safetensors";
  write_file(path, bytes);
  return std::make_shared<const MetaGraph>(open_model(path, {}));
}

}  // namespace loadline::testing
