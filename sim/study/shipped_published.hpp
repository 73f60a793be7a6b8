// The published numbers that come with Tritax, as embedded files. Internal to sim/study.
#pragma once

#include <span>
#include <string_view>
#include <utility>

namespace tritax::embedded {

// File stem and text of scenarios/published/*.toml; see cmake/TritaxModule.cmake.
std::span<const std::pair<std::string_view, std::string_view>> published_files();

}  // namespace tritax::embedded
