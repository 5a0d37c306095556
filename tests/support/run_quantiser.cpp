// run_quantiser TYPE COLUMNS IN OUT [IMPORTANCE]: quantises rows of COLUMNS floats for the interop tests. IN
// and IMPORTANCE hold plain floats, IMPORTANCE one for each column; OUT gets the blocks.
#include "core/base/error.h"
#include "core/convert/quantize.h"
#include "core/io/source_file.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

namespace {

using namespace loadline;

std::vector<float> floats_of(const char* path) {
  const SourceFile file = SourceFile::open(path);
  std::vector<float> floats(static_cast<std::size_t>(file.size()) / sizeof(float));
  file.read_at(0, std::as_writable_bytes(std::span(floats)));
  return floats;
}

void run(int argc, char** argv) {
  const auto dtype = dtype_named(argv[1]);
  if (!dtype || !can_quantize(*dtype)) throw Error(ErrorCode::usage, "no quantiser for '{}'", argv[1]);
  const std::vector<float> rows = floats_of(argv[3]), importance = argc > 5 ? floats_of(argv[5]) : rows;
  const std::size_t columns = std::strtoull(argv[2], nullptr, 10);
  const auto bytes = columns == 0 || rows.size() % columns != 0 ? std::nullopt : byte_size(*dtype, columns);
  if (!bytes || (argc > 5 && importance.size() != columns))
    throw Error(ErrorCode::usage, "{} numbers in rows of {}", rows.size(), columns);
  std::vector<std::byte> blocks(rows.size() / columns * static_cast<std::size_t>(*bytes));
  quantize_rows(*dtype, rows, argc > 5 ? std::span(importance) : std::span<const float>(), blocks);
  std::ofstream out(argv[4], std::ios::binary);
  out.write(reinterpret_cast<const char*>(blocks.data()), static_cast<std::streamsize>(blocks.size()));
  if (!out.flush()) throw Error(ErrorCode::io, "{}: not written", argv[4]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) {
    std::fputs("usage: run_quantiser TYPE COLUMNS IN OUT [IMPORTANCE]\n", stderr);
    return 2;
  }
  try {
    run(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
