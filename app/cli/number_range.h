// Ranges of options that take a number with a fraction.
#pragma once

namespace CLI {
class Validator;
}

namespace loadline::cli {

// As CLI::Range, which lets nan through: it is below and above nothing.
CLI::Validator number_range(double least, double most);

}  // namespace loadline::cli
