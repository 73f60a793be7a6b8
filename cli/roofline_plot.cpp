#include "cli/roofline_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "cli/svg.hpp"
#include "model/core/error.hpp"

namespace tritax::cli {

namespace {

constexpr SvgFrame kRoofFrame;
constexpr std::array<std::string_view, kMemoryLevels> kLevelTitles{"L2", "last-level cache", "HBM", "links"};

struct RoofAxis {
  double low = 1e300;
  double high = 0;

  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double share(double value) const { return std::log(value / low) / std::log(high / low); }
};

class RoofDrawing {
 public:
  explicit RoofDrawing(const RunRoofline& roofline) : roofline_(roofline) {
    for (const MachineCeilings::Peak& peak : roofline.ceilings.peaks)
      peak_ = std::max(peak_, peak.gflop_per_s);
    y_.take(peak_ * 2);
    for (const RooflinePoint& point : roofline.points) {
      if (point.flops <= 0) continue;
      y_.take(point.gflop_per_s() / 2);
      for (const double bytes : point.bytes) {
        if (bytes > 0) x_.take(point.flops / bytes);
      }
    }
    for (const double rate : roofline.ceilings.gb_per_s) {
      if (rate > 0) x_.take(peak_ / rate);  // ridge point of the roof
    }
    y_.take(peak_ / 30);
    x_.low /= 3;
    x_.high *= 3;
  }

  std::string draw(const std::string& title, const std::string& subtitle) {
    put("{}", svg_head(kFramedWidth, kFramedHeight, kRoofFrame.left, title, subtitle));
    grid();
    put("{}", svg_frame(kRoofFrame, "arithmetic intensity (flop/B)", "attained rate of one GPU (TFLOP/s)"));
    for (const MachineCeilings::Peak& peak : roofline_.ceilings.peaks) flat(peak);
    for (std::size_t level = 0; level < kMemoryLevels; ++level) slope(level);
    for (std::size_t i = 0; i < roofline_.points.size(); ++i) markers(roofline_.points[i]);
    legend();
    put("</svg>\n");
    return fmt::to_string(out_);
  }

 private:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  double x_of(double intensity) const { return kRoofFrame.left + kRoofFrame.across * x_.share(intensity); }
  double y_of(double rate) const { return kRoofFrame.top + kRoofFrame.down * (1 - y_.share(rate)); }

  void line(double x1, double y1, double x2, double y2, std::string_view style) {
    put("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, style);
  }

  void grid() {
    constexpr std::string_view kLine = "stroke=\"#e3e6ea\"";
    for (double at = std::pow(10, std::ceil(std::log10(x_.low))); at <= x_.high; at *= 10) {
      line(x_of(at), kRoofFrame.top, x_of(at), kRoofFrame.top + kRoofFrame.down, kLine);
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x_of(at),
          kRoofFrame.top + kRoofFrame.down + 20, tick_label(at));
    }
    for (double at = std::pow(10, std::ceil(std::log10(y_.low))); at <= y_.high; at *= 10) {
      line(kRoofFrame.left, y_of(at), kRoofFrame.left + kRoofFrame.across, y_of(at), kLine);
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kRoofFrame.left - 9,
          y_of(at) + 4.5, tick_label(at / 1e3));
    }
  }

  void flat(const MachineCeilings::Peak& peak) {
    line(kRoofFrame.left, y_of(peak.gflop_per_s), kRoofFrame.left + kRoofFrame.across, y_of(peak.gflop_per_s),
         "stroke=\"#222\" stroke-width=\"1.6\"");
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" font-size=\"12\">matrix cores, {}: {:.0f} "
        "TFLOP/s</text>\n",
        kRoofFrame.left + kRoofFrame.across - 6, y_of(peak.gflop_per_s) - 5, name_of(peak.dtype),
        peak.gflop_per_s / 1e3);
  }

  void slope(std::size_t level) {
    const double rate = roofline_.ceilings.gb_per_s[level];
    if (rate <= 0) return;
    const double begin = std::max(x_.low, y_.low / rate);
    const double end = std::min(x_.high, peak_ / rate);
    if (begin >= end) return;
    line(x_of(begin), y_of(begin * rate), x_of(end), y_of(end * rate),
         fmt::format("stroke=\"{}\" stroke-width=\"1.6\"", colour_of(level)));
  }

  void markers(const RooflinePoint& point) {
    if (point.flops <= 0 || point.gflop_per_s() <= 0) return;
    const double y = y_of(point.gflop_per_s());
    double right = 0, left = 1e300;
    std::string text;
    for (std::size_t level = 0; level < kMemoryLevels; ++level) {
      if (point.bytes[level] <= 0) continue;
      const double intensity = point.flops / point.bytes[level];
      right = std::max(right, x_of(intensity));
      left = std::min(left, x_of(intensity));
      text += fmt::format("<g><title>{}: {:.1f} TFLOP/s at {:.3g} flop/B of {}</title>{}</g>\n",
                          escaped(point.name), point.gflop_per_s() / 1e3, intensity, kLevelTitles[level],
                          svg_marker(level, x_of(intensity), y));
    }
    if (right <= 0) return;
    line(left, y, right, y, "stroke=\"#999\" stroke-dasharray=\"2 3\"");
    put("{}<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"12\">{}</text>\n", text, right + 9, y + 4.5,
        escaped(point.name));
  }

  void legend() {
    const double x = kRoofFrame.left + kRoofFrame.across + 18;
    double y = kRoofFrame.top + 10;
    for (std::size_t level = 0; level < kMemoryLevels; ++level) {
      const double rate = roofline_.ceilings.gb_per_s[level];
      if (rate <= 0) continue;
      put("<line x1=\"{0:g}\" y1=\"{2:g}\" x2=\"{1:g}\" y2=\"{2:g}\" stroke=\"{3}\" stroke-width=\"1.6\"/>{4}"
          "<text x=\"{5:g}\" y=\"{6:g}\">{7}</text><text x=\"{5:g}\" y=\"{8:g}\" fill=\"#555\" "
          "font-size=\"12\">{9:.3g} TB/s</text>\n",
          x, x + 26, y, colour_of(level), svg_marker(level, x + 13, y), x + 34, y + 4.5, kLevelTitles[level],
          y + 21, rate / 1e3);
      y += 42;
    }
  }

  const RunRoofline& roofline_;
  RoofAxis x_, y_;
  double peak_ = 0;
  fmt::memory_buffer out_;
};

}  // namespace

std::string roofline_picture(const RunRoofline& roofline, const std::string& title,
                             const std::string& subtitle) {
  if (roofline.ceilings.peaks.empty()) {
    throw UserError("--plot: no matrix core works in this run, so there is no roof to draw");
  }
  return RoofDrawing(roofline).draw(title, subtitle);
}

}  // namespace tritax::cli
