// Common parts of the program's pictures: colours, markers, axis labels, the form of the file.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace tritax::cli {

// Colours for readers with colour blindness (Okabe and Ito, https://jfly.uni-koeln.de/color).
inline constexpr std::array<std::string_view, 6> kColours{"#0072B2", "#D55E00", "#009E73",
                                                          "#CC79A7", "#E69F00", "#56B4E9"};

inline std::string_view colour_of(std::size_t series) { return kColours[series % kColours.size()]; }

// Text escaped for SVG.
std::string escaped(std::string_view text);

// "0.5", "20", "1 000", "50 000": with thousands separators.
std::string tick_label(double value);

// The first lines of a picture of that size in pixels: a white ground, and a title with a smaller line below
// it, both beginning at `left`.
std::string svg_head(double width, double height, double left, const std::string& title,
                     const std::string& subtitle);

// Area of the points of a picture with two axes, in pixels.
struct SvgFrame {
  double left = 84;
  double top = 70;
  double across = 640;
  double down = 420;
};
// Size of a picture with such a frame and a legend to its right.
inline constexpr double kFramedWidth = 960;
inline constexpr double kFramedHeight = 560;

// The border of the frame, and the labels of its axes.
std::string svg_frame(const SvgFrame& frame, const std::string& x_label, const std::string& y_label);

// The marker of a series around a point; every colour has its own shape.
std::string svg_marker(std::size_t series, double x, double y);

// Throws UserError for a name of --plot that is no SVG file, and for standard output.
void require_svg(const std::string& path);

}  // namespace tritax::cli
