#include "cli/sweep_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "cli/svg.hpp"

namespace tritax::cli {

namespace {

constexpr SvgFrame kSweepFrame;

// Range of logarithms of an axis, with room beside the outermost points.
struct Range {
  double low = 1e300;
  double high = 0;

  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void widen() {
    if (high <= 0) low = high = 1;
    const double room = std::max(1.15, 2 / std::sqrt(high / low));
    low /= room;
    high *= room;
  }
  double share(double value) const { return std::log(value / low) / std::log(high / low); }
};

class SweepDrawing {
 public:
  explicit SweepDrawing(const SweepPlot& plot) : plot_(plot) {
    for (const SweepLine& line : plot.lines) {
      for (const auto& [value, time] : line.points) {
        x_.take(value);
        y_.take(time);
      }
    }
    x_.widen();
    y_.widen();
  }

  std::string draw() {
    put("{}", svg_head(kFramedWidth, kFramedHeight, kSweepFrame.left, plot_.title, plot_.subtitle));
    grid(x_, true);
    grid(y_, false);
    for (const double value : plot_.crossovers) {
      line(x_of(value), kSweepFrame.top, x_of(value), kSweepFrame.top + kSweepFrame.down,
           "stroke=\"#555\" stroke-dasharray=\"5 4\"");
    }
    put("{}", svg_frame(kSweepFrame, plot_.x_label, plot_.y_label));
    for (std::size_t i = 0; i < plot_.lines.size(); ++i) draw_line(i);
    legend();
    put("</svg>\n");
    return fmt::to_string(out_);
  }

 private:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  double x_of(double value) const { return kSweepFrame.left + kSweepFrame.across * x_.share(value); }
  double y_of(double time) const { return kSweepFrame.top + kSweepFrame.down * (1 - y_.share(time)); }

  void line(double x1, double y1, double x2, double y2, std::string_view style) {
    put("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, style);
  }

  // One line per digit of every decade; 1, 2 and 5 have numbers.
  void grid(const Range& range, bool across) {
    for (int decade = static_cast<int>(std::floor(std::log10(range.low))); decade <= std::log10(range.high);
         ++decade) {
      for (int digit = 1; digit <= 9; ++digit) {
        const double value = digit * std::pow(10, decade);
        if (value < range.low || value > range.high) continue;
        const std::string_view style = digit == 1 ? "stroke=\"#c8ccd2\"" : "stroke=\"#eef0f2\"";
        if (across) {
          line(x_of(value), kSweepFrame.top, x_of(value), kSweepFrame.top + kSweepFrame.down, style);
        } else {
          line(kSweepFrame.left, y_of(value), kSweepFrame.left + kSweepFrame.across, y_of(value), style);
        }
        if (digit == 1 || digit == 2 || digit == 5) tick(value, across);
      }
    }
  }

  void tick(double value, bool across) {
    if (across) {
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x_of(value),
          kSweepFrame.top + kSweepFrame.down + 20, tick_label(value));
    } else {
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kSweepFrame.left - 9,
          y_of(value) + 4.5, tick_label(value));
    }
  }

  void draw_line(std::size_t index) {
    const SweepLine& series = plot_.lines[index];
    if (!series.joined) return draw_points(index);
    std::string points;
    for (const auto& [value, time] : series.points) {
      points += fmt::format("{:.1f},{:.1f} ", x_of(value), y_of(time));
    }
    put("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" {}/>\n", points,
        colour_of(index), dashes(index));
    for (const auto& [value, time] : series.points) {
      put("<g><title>{}: {:.{}f} at {:g}</title>{}</g>\n", escaped(series.name), time, plot_.decimals, value,
          svg_marker(index, x_of(value), y_of(time)));
    }
  }

  // Too many points for tooltips.
  void draw_points(std::size_t index) {
    for (const auto& [value, time] : plot_.lines[index].points) {
      put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"1.3\" fill=\"{}\" fill-opacity=\"0.55\"/>\n", x_of(value),
          y_of(time), colour_of(index));
    }
  }

  // Lines with a repeated colour are dashed.
  static std::string_view dashes(std::size_t index) {
    return index < kColours.size() ? "" : "stroke-dasharray=\"7 3\"";
  }

  void legend() {
    const double x = kSweepFrame.left + kSweepFrame.across + 18;
    double y = kSweepFrame.top + 10;
    for (std::size_t i = 0; i < plot_.lines.size(); ++i, y += 22) {
      put("<line x1=\"{0:g}\" y1=\"{2:g}\" x2=\"{1:g}\" y2=\"{2:g}\" stroke=\"{3}\" stroke-width=\"1.6\" "
          "{4}/>{5}<text x=\"{6:g}\" y=\"{7:g}\">{8}</text>\n",
          x, x + 26, y, colour_of(i), dashes(i), svg_marker(i, x + 13, y), x + 34, y + 4.5,
          escaped(plot_.lines[i].name));
    }
    if (plot_.crossovers.empty()) return;
    put("<line x1=\"{0:g}\" y1=\"{2:g}\" x2=\"{1:g}\" y2=\"{2:g}\" stroke=\"#555\" stroke-dasharray=\"5 4\"/>"
        "<text x=\"{3:g}\" y=\"{4:g}\">the fastest changes</text>\n",
        x, x + 26, y, x + 34, y + 4.5);
  }

  const SweepPlot& plot_;
  Range x_;
  Range y_;
  fmt::memory_buffer out_;
};

}  // namespace

std::string to_svg(const SweepPlot& plot) { return SweepDrawing(plot).draw(); }

}  // namespace tritax::cli
