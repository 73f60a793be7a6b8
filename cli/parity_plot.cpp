#include "cli/parity_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "cli/svg.hpp"

namespace tritax::cli {

namespace {

// Sizes of the picture and of the square of the points, in pixels.
constexpr double kWidth = 720;
constexpr double kHeight = 740;
constexpr double kLeft = 84;
constexpr double kTop = 70;
constexpr double kSide = 600;
// Limits of both axes, in us: from 1 ns to half an hour. Values beyond are drawn at the edge.
constexpr double kLowest = 1e-3, kHighest = 2e9;

struct Series {
  std::string name;
  std::vector<double> magnitudes;  // |error| per point
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

class Drawing {
 public:
  explicit Drawing(const ParityPlot& plot) : plot_(plot) {
    double low = 1e300;
    double high = 0;
    for (const ParityPoint& point : plot.points) {
      for (const double value : {point.measured, point.predicted}) {
        low = std::min(low, std::clamp(value, kLowest, kHighest));
        high = std::max(high, std::clamp(value, kLowest, kHighest));
      }
      series_of(point).magnitudes.push_back(std::abs(point.predicted / point.measured - 1));
    }
    if (plot.points.empty()) low = high = 1;
    // Room beside the outermost points, and at least a factor of four in total.
    const double room = std::max(1.15, 2 / std::sqrt(high / low));
    low_ = std::log10(low / room);
    high_ = std::log10(high * room);
  }

  std::string draw() {
    begin();
    band_and_grid();
    for (const ParityPoint& point : plot_.points) {
      put("<g><title>{}</title>", escaped(point.label));
      put("{}</g>\n", svg_marker(index_of(point.series), kLeft + kSide * edge_share(point.measured),
                                 kTop + kSide * (1 - edge_share(point.predicted))));
    }
    put("</g>\n");
    frame();
    legend();
    put("</svg>\n");
    return fmt::to_string(out_);
  }

 private:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  Series& series_of(const ParityPoint& point) {
    const auto found = std::find_if(series_.begin(), series_.end(),
                                    [&](const Series& one) { return one.name == point.series; });
    return found != series_.end() ? *found : series_.emplace_back(Series{point.series, {}});
  }

  std::size_t index_of(const std::string& series) const {
    return static_cast<std::size_t>(
        std::find_if(series_.begin(), series_.end(), [&](const Series& one) { return one.name == series; }) -
        series_.begin());
  }

  double share(double value) const {
    return (std::log10(std::clamp(value, kLowest / 10, kHighest * 10)) - low_) / (high_ - low_);
  }
  double edge_share(double value) const { return std::clamp(share(value), 0.0, 1.0); }
  double x_of(double value) const { return kLeft + kSide * share(value); }
  double y_of(double value) const { return kTop + kSide * (1 - share(value)); }

  void begin() {
    put("{}", svg_head(kWidth, kHeight, kLeft, plot_.title, plot_.subtitle));
    put("<clipPath id=\"square\"><rect x=\"{0:g}\" y=\"{1:g}\" width=\"{2:g}\" "
        "height=\"{2:g}\"/></clipPath>\n",
        kLeft, kTop, kSide);
    put("<g clip-path=\"url(#square)\">\n");
  }

  void line(double x1, double y1, double x2, double y2, std::string_view style) {
    put("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, style);
  }

  void band_and_grid() {
    const double low = std::pow(10, low_);
    const double high = std::pow(10, high_);
    const double below = 1 - plot_.band;
    const double above = 1 + plot_.band;
    put("<polygon points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\" fill=\"#eceff3\"/>\n",
        x_of(low), y_of(low * below), x_of(high), y_of(high * below), x_of(high), y_of(high * above),
        x_of(low), y_of(low * above));
    for (int decade = static_cast<int>(std::floor(low_)); decade <= high_; ++decade) {
      for (int digit = 1; digit <= 9; ++digit) {
        const double value = digit * std::pow(10, decade);
        if (value < low || value > high) continue;
        const std::string_view style = digit == 1 ? "stroke=\"#c8ccd2\"" : "stroke=\"#eef0f2\"";
        line(x_of(value), kTop, x_of(value), kTop + kSide, style);
        line(kLeft, y_of(value), kLeft + kSide, y_of(value), style);
        if (digit == 1 || digit == 2 || digit == 5) ticks_.push_back(value);
      }
    }
    line(x_of(low), y_of(low), x_of(high), y_of(high), "stroke=\"#555\" stroke-width=\"1.2\"");
  }

  void frame() {
    put("{}", svg_frame({kLeft, kTop, kSide, kSide}, plot_.x_label, plot_.y_label));
    for (const double value : ticks_) {
      const std::string label = tick_label(value);
      line(x_of(value), kTop + kSide, x_of(value), kTop + kSide + 5, "stroke=\"#555\"");
      line(kLeft - 5, y_of(value), kLeft, y_of(value), "stroke=\"#555\"");
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x_of(value),
          kTop + kSide + 21, label);
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 9, y_of(value) + 4.5,
          label);
    }
  }

  // In the upper left corner, where only predictions that are far too slow would lie.
  void legend() {
    constexpr double kRow = 21;
    constexpr double kBox = 350;
    const double x = kLeft + 14;
    double y = kTop + 14;
    const double height = kRow * static_cast<double>(series_.size() + 2) + 12;
    put("<rect x=\"{:g}\" y=\"{:g}\" width=\"{:g}\" height=\"{:g}\" rx=\"4\" fill=\"#fff\" "
        "fill-opacity=\"0.9\" "
        "stroke=\"#c8ccd2\"/>\n",
        x, y, kBox, height);
    const auto text = [&](double at, std::string_view anchor, const std::string& what,
                          std::string_view fill) {
      put("<text x=\"{:g}\" y=\"{:g}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", at, y + 4.5, anchor, fill,
          what);
    };
    const double rows_at = x + 228;
    const double errors_at = x + kBox - 12;
    y += 18;
    text(rows_at, "end", "rows", "#777");
    text(errors_at, "end", "median |error|", "#777");
    for (std::size_t i = 0; i < series_.size(); ++i) {
      y += kRow;
      put("{}", svg_marker(i, x + 18, y));
      text(x + 34, "start", escaped(series_[i].name), "#222");
      text(rows_at, "end", fmt::format("{}", series_[i].magnitudes.size()), "#222");
      text(errors_at, "end", fmt::format("{:.1f} %", 100 * median(series_[i].magnitudes)), "#222");
    }
    y += kRow;
    put("<rect x=\"{:g}\" y=\"{:g}\" width=\"20\" height=\"12\" fill=\"#e0e5ec\"/>", x + 8, y - 6);
    line(x + 8, y + 6, x + 28, y - 6, "stroke=\"#555\" stroke-width=\"1.2\"");
    text(x + 34, "start", fmt::format("equal, and &#177;{:.0f} %", 100 * plot_.band), "#222");
  }

  const ParityPlot& plot_;
  std::vector<Series> series_;
  std::vector<double> ticks_;
  double low_ = 0;  // log10 of the ends of both axes
  double high_ = 0;
  fmt::memory_buffer out_;
};

}  // namespace

std::string to_svg(const ParityPlot& plot) { return Drawing(plot).draw(); }

}  // namespace tritax::cli
