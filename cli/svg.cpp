#include "cli/svg.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <utility>

#include "model/core/error.hpp"

namespace tritax::cli {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string tick_label(double value) {
  std::string text = fmt::format("{:g}", value);
  if (value < 1e3 || value >= 1e6) return text;
  text = fmt::format("{:.0f}", value);
  return text.insert(text.size() - 3, "&#8239;");
}

std::string svg_head(double width, double height, double left, const std::string& title,
                     const std::string& subtitle) {
  std::string head = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:g} {1:g}" width="{0:g}" height="{1:g}" )"
      R"(font-family="Helvetica, Arial, 'DejaVu Sans', sans-serif" font-size="13" fill="#222">)"
      "\n<rect width=\"{0:g}\" height=\"{1:g}\" fill=\"#fff\"/>\n",
      width, height);
  head += fmt::format("<text x=\"{:g}\" y=\"30\" font-size=\"17\" font-weight=\"bold\">{}</text>\n", left,
                      escaped(title));
  return head + fmt::format("<text x=\"{:g}\" y=\"52\" fill=\"#555\">{}</text>\n", left, escaped(subtitle));
}

std::string svg_frame(const SvgFrame& frame, const std::string& x_label, const std::string& y_label) {
  return fmt::format(
      "<rect x=\"{0:g}\" y=\"{1:g}\" width=\"{2:g}\" height=\"{3:g}\" fill=\"none\" stroke=\"#555\"/>\n"
      "<text x=\"{4:g}\" y=\"{5:g}\" text-anchor=\"middle\" font-size=\"14\">{6}</text>\n"
      "<text transform=\"translate(22 {7:g}) rotate(-90)\" text-anchor=\"middle\" "
      "font-size=\"14\">{8}</text>\n",
      frame.left, frame.top, frame.across, frame.down, frame.left + frame.across / 2,
      frame.top + frame.down + 48, escaped(x_label), frame.top + frame.down / 2, escaped(y_label));
}

std::string svg_marker(std::size_t series, double x, double y) {
  constexpr double s = 4.2;  // half of its size
  const std::string style = fmt::format(
      "fill=\"{0}\" fill-opacity=\"0.45\" stroke=\"{0}\" stroke-width=\"1.1\"", colour_of(series));
  const auto polygon = [&](std::initializer_list<std::pair<double, double>> corners) {
    std::string points;
    for (const auto& [dx, dy] : corners) points += fmt::format("{:.1f},{:.1f} ", x + s * dx, y + s * dy);
    return fmt::format("<polygon points=\"{}\" {}/>", points, style);
  };
  switch (series % kColours.size()) {
    case 0:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:g}\" {}/>", x, y, s, style);
    case 1:
      return polygon({{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}});
    case 2:
      return polygon({{0, -1.2}, {1.15, 0.8}, {-1.15, 0.8}});
    case 3:
      return polygon({{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}});
    case 4:
      return polygon({{0, 1.2}, {1.15, -0.8}, {-1.15, -0.8}});
    default:
      return polygon({{-0.45, -1.2},
                      {0.45, -1.2},
                      {0.45, -0.45},
                      {1.2, -0.45},
                      {1.2, 0.45},
                      {0.45, 0.45},
                      {0.45, 1.2},
                      {-0.45, 1.2},
                      {-0.45, 0.45},
                      {-1.2, 0.45},
                      {-1.2, -0.45},
                      {-0.45, -0.45}});
  }
}

void require_svg(const std::string& path) {
  if (path == "-") throw UserError("--plot: standard output holds the tables; give a file name");
  if (path.ends_with(".svg") || path.ends_with(".svg.gz")) return;
  throw UserError(
      fmt::format("--plot: '{}': the plot is drawn as SVG; give a name that ends in .svg or .svg.gz", path));
}

}  // namespace tritax::cli
