#include "cli/accuracy_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "cli/svg.hpp"

namespace tritax::cli {

namespace {

constexpr SvgFrame kAccuracyFrame;

// An axis with round steps.
struct Linear {
  double low = 1e300;
  double high = -1e300;
  double step = 1;

  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void settle() {
    if (high <= low) {
      low -= 0.5;
      high += 0.5;
    }
    const double raw = (high - low) / 6;
    const double decade = std::pow(10, std::floor(std::log10(raw)));
    step = decade * (raw / decade < 2 ? 2 : raw / decade < 5 ? 5 : 10);
    low = std::floor(low / step) * step;
    high = std::ceil(high / step) * step;
  }
  double share(double value) const { return (value - low) / (high - low); }
};

class AccuracyDrawing {
 public:
  explicit AccuracyDrawing(const AccuracyPlot& plot) : plot_(plot) {
    for (const AccuracyLine& line : plot.lines) {
      for (const AccuracyPoint& point : line.points) {
        x_.take(point.speedup);
        y_.take(point.accuracy);
      }
    }
    x_.settle();
    y_.settle();
  }

  std::string draw() {
    put("{}", svg_head(kFramedWidth, kFramedHeight, kAccuracyFrame.left, plot_.title, plot_.subtitle));
    grid();
    put("{}", svg_frame(kAccuracyFrame, "theoretical speedup", "accuracy (%)"));
    path(pareto_points(plot_), "#999", "6 4");
    for (std::size_t i = 0; i < plot_.lines.size(); ++i) {
      path(plot_.lines[i].points, colour_of(i), "");
      for (const AccuracyPoint& point : plot_.lines[i].points) {
        put("{}", svg_marker(i, x_of(point.speedup), y_of(point.accuracy)));
        put("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"11\" fill=\"#555\">{}</text>\n",
            x_of(point.speedup) + 7, y_of(point.accuracy) - 6, escaped(point.label));
      }
    }
    legend();
    put("</svg>\n");
    return fmt::to_string(out_);
  }

 private:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  double x_of(double value) const { return kAccuracyFrame.left + kAccuracyFrame.across * x_.share(value); }
  double y_of(double value) const { return kAccuracyFrame.top + kAccuracyFrame.down * (1 - y_.share(value)); }

  void grid() {
    for (double x = x_.low; x < x_.high + x_.step / 2; x += x_.step) {
      put("<line x1=\"{0:.1f}\" y1=\"{1:g}\" x2=\"{0:.1f}\" y2=\"{2:g}\" stroke=\"#e3e6ea\"/>\n"
          "<text x=\"{0:.1f}\" y=\"{3:g}\" text-anchor=\"middle\">{4:.3g}</text>\n",
          x_of(x), kAccuracyFrame.top, kAccuracyFrame.top + kAccuracyFrame.down,
          kAccuracyFrame.top + kAccuracyFrame.down + 20, x);
    }
    for (double y = y_.low; y < y_.high + y_.step / 2; y += y_.step) {
      put("<line x1=\"{1:g}\" y1=\"{0:.1f}\" x2=\"{2:g}\" y2=\"{0:.1f}\" stroke=\"#e3e6ea\"/>\n"
          "<text x=\"{3:g}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.4g}</text>\n",
          y_of(y), kAccuracyFrame.left, kAccuracyFrame.left + kAccuracyFrame.across, kAccuracyFrame.left - 9,
          y_of(y) + 4.5, y);
    }
  }

  void path(const std::vector<AccuracyPoint>& points, std::string_view colour, std::string_view dashes) {
    std::string places;
    for (const AccuracyPoint& point : points)
      places += fmt::format("{:.1f},{:.1f} ", x_of(point.speedup), y_of(point.accuracy));
    put("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", places, colour,
        dashes.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dashes));
  }

  void legend() {
    const double left = kAccuracyFrame.left + kAccuracyFrame.across + 24;
    for (std::size_t i = 0; i <= plot_.lines.size(); ++i) {
      const double y = kAccuracyFrame.top + 12 + 24 * static_cast<double>(i);
      const bool front = i == plot_.lines.size();
      if (front) {
        put("<line x1=\"{:g}\" y1=\"{:g}\" x2=\"{:g}\" y2=\"{:g}\" stroke=\"#999\" stroke-width=\"2\" "
            "stroke-dasharray=\"6 4\"/>\n",
            left, y, left + 20, y);
      } else {
        put("{}", svg_marker(i, left + 10, y));
      }
      put("<text x=\"{:g}\" y=\"{:g}\">{}</text>\n", left + 28, y + 4.5,
          front ? "none better in both" : escaped(plot_.lines[i].name));
    }
  }

  const AccuracyPlot& plot_;
  Linear x_;
  Linear y_;
  fmt::memory_buffer out_;
};

}  // namespace

std::vector<AccuracyPoint> pareto_points(const AccuracyPlot& plot) {
  std::vector<AccuracyPoint> points;
  for (const AccuracyLine& line : plot.lines)
    points.insert(points.end(), line.points.begin(), line.points.end());
  std::sort(points.begin(), points.end(), [](const AccuracyPoint& a, const AccuracyPoint& b) {
    return a.speedup != b.speedup ? a.speedup > b.speedup : a.accuracy > b.accuracy;
  });
  std::vector<AccuracyPoint> best;
  for (AccuracyPoint& point : points) {
    if (best.empty() || point.accuracy > best.back().accuracy) best.push_back(std::move(point));
  }
  std::reverse(best.begin(), best.end());
  return best;
}

std::string to_svg(const AccuracyPlot& plot) { return AccuracyDrawing(plot).draw(); }

}  // namespace tritax::cli
