#include "model/parts/fields.hpp"

#include <fmt/format.h>

namespace tritax {

Spec size_field(std::string_view name, std::string_view option, std::string_view help) {
  return {.name = name, .help = help, .high = kMaxSize, .required = true, .option = option};
}

Spec dtype_field(DType usual, std::string_view help, std::span<const std::string_view> names) {
  return {.name = "dtype",
          .help = help,
          .kind = ValueKind::name,
          .usual = {static_cast<std::int64_t>(usual)},
          .names = names};
}

Spec gpus_field(int least) {
  return {.name = "gpus",
          .help = "GPUs that share the work",
          .low = least,
          .high = kMaxGpus,
          .usual = {least},
          .required = true,
          .counts_gpus = true};
}

std::string product_text(const Problem& problem) {
  return fmt::format("{}x{}x{} {}", problem["m"], problem["n"], problem["k"],
                     name_of(static_cast<DType>(problem["dtype"])));
}

}  // namespace tritax
