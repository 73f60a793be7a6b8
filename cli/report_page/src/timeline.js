// The timeline on a canvas. Only what can be seen is drawn: of a track one rectangle for all that falls on a
// pixel, found by halving, so that a frame costs pixels and not operations.
import { lowerBound } from './columns.js';
import { kClassColours, looksOf, rowsOf, rowOfTracks } from './timeline_rows.js';
import { colour, drawn } from './dom.js';

const kAxis = 24;   // pixels for the times
const kPath = 18;   // … and for the critical path, below them
const kMostArrows = 400;

export class TimelineView {
  constructor(timeline, canvas, holder, onSelect) {
    this.timeline = timeline;
    this.canvas = canvas;
    this.holder = holder;  // scrolls up and down
    this.onSelect = onSelect;
    this.looks = looksOf(timeline.kinds);
    this.open = new Set(timeline.tracks.length > 0 ? [`gpu ${timeline.tracks[0].gpu}`] : []);
    this.show = { flags: true, path: true };
    this.selected = -1;  // interval
    this.hovered = -1;
    this.cursor = 0;     // row
    this.from = 0;
    this.to = timeline.end;
    this.onPath = new Uint8Array(timeline.intervals.begin.length);
    for (const interval of timeline.path.interval) if (interval !== 0xffffffff) this.onPath[interval] = 1;
    this.arrange();
    drawn(() => {
      this.ink = colour('ink');
      this.paper = colour('paper');
      this.faint = colour('faint');
      this.focus = colour('focus');
      this.paint();
    });
  }

  arrange() {
    const { rows, height } = rowsOf(this.timeline, this.open);
    this.rows = rows;
    this.rowOf = rowOfTracks(this.timeline, rows);
    this.content = height;
    this.cursor = Math.min(this.cursor, rows.length - 1);
    // As high as its rows, up to most of the window; then the rows scroll.
    const whole = height + kAxis + kPath + 4;
    const seen = `min(${whole}px, 560px, 75vh)`;
    this.holder.style.height = seen;
    this.canvas.style.height = seen;
    this.holder.firstElementChild.style.height = `${whole}px`;
    this.paint();
  }

  get gutter() { return this.width < 520 ? 84 : 128; }
  get width() { return this.canvas.clientWidth; }
  get height() { return this.canvas.clientHeight; }
  x(time) { return this.gutter + (time - this.from) / (this.to - this.from) * (this.width - this.gutter); }
  time(x) { return this.from + (x - this.gutter) / (this.width - this.gutter) * (this.to - this.from); }

  // One frame, as soon as the browser wants one.
  paint() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.draw();
    });
  }

  zoom(factor, around = (this.from + this.to) / 2) {
    const span = Math.min(this.timeline.end, Math.max(8, (this.to - this.from) * factor));
    const share = (around - this.from) / (this.to - this.from);
    this.look(around - share * span, span);
  }

  pan(share) { this.look(this.from + share * (this.to - this.from), this.to - this.from); }

  look(from, span) {
    this.from = Math.max(0, Math.min(from, this.timeline.end - span));
    this.to = this.from + span;
    this.paint();
  }

  fit() { this.look(0, this.timeline.end); }

  toggle(row) {
    if (!row || !row.opens) return;
    if (this.open.has(row.key)) this.open.delete(row.key);
    else this.open.add(row.key);
    this.arrange();
  }

  // The interval at a point of the canvas, -1 if there is none, and its row.
  pick(x, y) {
    const t = this.timeline;
    if (y < kAxis || x < this.gutter) return { interval: -1, row: this.rowAt(y) };
    const time = this.time(x);
    const slack = this.time(x + 2) - time;
    if (y < kAxis + kPath) {
      const step = lowerBound(t.path.end, 0, t.path.end.length, time);
      const interval = step < t.path.interval.length && t.path.begin[step] <= time ? t.path.interval[step] : 0xffffffff;
      return { interval: interval === 0xffffffff ? -1 : interval, row: null };
    }
    const row = this.rowAt(y);
    if (!row || row.kind !== 'track') return { interval: -1, row };
    const { begin, end } = t.intervals;
    const i = lowerBound(end, t.first[row.track], t.first[row.track + 1], time - slack);
    return { interval: i < t.first[row.track + 1] && begin[i] <= time + slack ? i : -1, row };
  }

  rowAt(y) {
    const place = y - kAxis - kPath + this.holder.scrollTop;
    if (y < kAxis + kPath) return null;
    return this.rows.find((row) => place >= row.top && place < row.top + row.height) ?? null;
  }

  select(interval, reveal = true) {
    this.selected = interval;
    if (interval >= 0 && reveal) {
      const { begin, end, track } = this.timeline.intervals;
      const span = this.to - this.from;
      if (begin[interval] < this.from || end[interval] > this.to) this.look((begin[interval] + end[interval]) / 2 - span / 2, span);
      const row = this.rows[this.rowOf[track[interval]]];
      const seen = this.height - kAxis - kPath;
      if (row.top < this.holder.scrollTop || row.top + row.height > this.holder.scrollTop + seen) {
        this.holder.scrollTop = row.top - seen / 2;
      }
    }
    this.onSelect(interval);
    this.paint();
  }

  // The next or last step of the critical path that an interval of the page is of.
  step(direction) {
    const { interval, begin } = this.timeline.path;
    let at = this.pathStep ?? (direction > 0 ? -1 : begin.length);
    do at += direction; while (at >= 0 && at < interval.length && interval[at] === 0xffffffff);
    if (at < 0 || at >= interval.length) return;
    this.pathStep = at;
    this.select(interval[at]);
  }

  draw() {
    const scale = window.devicePixelRatio || 1;
    const { width, height } = this;
    if (width === 0) return;
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
    }
    const g = this.canvas.getContext('2d');
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.fillStyle = this.paper;
    g.fillRect(0, 0, width, height);
    g.font = '11px system-ui, sans-serif';
    g.textBaseline = 'middle';
    const top = kAxis + kPath;
    g.save();
    g.beginPath();
    g.rect(0, top, width, height - top);
    g.clip();
    this.drawGrid(g);
    const offset = top - this.holder.scrollTop;
    for (let index = 0; index < this.rows.length; ++index) {
      const row = this.rows[index];
      const y = offset + row.top;
      if (y + row.height < top || y > height) continue;
      if (row.kind === 'track') this.drawTrack(g, row, y);
      else if (row.kind === 'die' || !row.isOpen) this.drawFolded(g, row, y);
    }
    if (this.show.flags) this.drawFlags(g, offset);
    this.drawMark(g, offset);
    g.restore();
    this.drawAxis(g);
    this.drawPath(g);
    this.drawLabels(g, offset);
  }

  ticks() {
    const target = (this.to - this.from) / Math.max(2, (this.width - this.gutter) / 110);
    const power = 10 ** Math.floor(Math.log10(Math.max(1, target)));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= target);
    const ticks = [];
    for (let tick = Math.ceil(this.from / step) * step; tick <= this.to; tick += step) ticks.push(tick);
    return { ticks, step };
  }

  drawGrid(g) {
    g.strokeStyle = this.faint;
    g.lineWidth = 1;
    g.beginPath();
    for (const tick of this.ticks().ticks) {
      const x = Math.round(this.x(tick)) + 0.5;
      g.moveTo(x, 0);
      g.lineTo(x, this.height);
    }
    g.stroke();
  }

  drawAxis(g) {
    const { ticks, step } = this.ticks();
    const us = this.timeline.tick_ns / 1000;
    const digits = Math.max(0, -Math.floor(Math.log10(step * us)));
    g.fillStyle = this.paper;
    g.fillRect(0, 0, this.width, kAxis);
    g.fillStyle = this.ink;
    g.textAlign = 'center';
    for (const tick of ticks) {
      const x = this.x(tick);
      if (x > this.gutter + 12 && x < this.width - 20) g.fillText((tick * us).toFixed(digits), x, kAxis / 2);
    }
    g.textAlign = 'left';
    g.fillText('time, us', 6, kAxis / 2);
  }

  // One row that holds the whole critical path.
  drawPath(g) {
    const { path, intervals } = this.timeline;
    const y = kAxis + 2;
    g.fillStyle = this.paper;
    g.fillRect(0, kAxis, this.width, kPath);
    let at = lowerBound(path.end, 0, path.end.length, this.from);
    let filled = 0;
    while (at < path.begin.length && path.begin[at] <= this.to) {
      const left = Math.max(this.gutter, this.x(path.begin[at]));
      const right = Math.min(this.width, this.x(path.end[at]));
      const interval = path.interval[at];
      g.fillStyle = interval === 0xffffffff ? this.faint : this.looks[intervals.kind[interval]].colour;
      g.fillRect(left, y, Math.max(0.75, right - left - 0.5), kPath - 4);
      filled = right;
      // Steps that fall on this pixel show nothing.
      at = Math.max(at + 1, lowerBound(path.end, at + 1, path.end.length, this.time(filled + 0.25)));
    }
    g.fillStyle = this.ink;
    g.textAlign = 'left';
    g.fillText(this.width < 520 ? 'crit. path' : 'critical path', 6, kAxis + kPath / 2);
  }

  drawTrack(g, row, y) {
    const { intervals, first, names } = this.timeline;
    const { begin, end, kind, name } = intervals;
    const last = first[row.track + 1];
    const height = row.height - 2;
    const perPixel = (this.to - this.from) / (this.width - this.gutter);
    let i = lowerBound(end, first[row.track], last, this.from);
    while (i < last && begin[i] <= this.to) {
      const left = Math.max(this.gutter, this.x(begin[i]));
      let right = Math.min(this.width, this.x(end[i]));
      const own = right - left;
      g.fillStyle = this.looks[kind[i]].colour;
      if (own < 1) {
        // All that ends on this pixel is one rectangle.
        const next = lowerBound(end, i + 1, last, begin[i] + perPixel);
        right = Math.min(this.width, Math.max(left + 1, this.x(end[Math.max(i, next - 1)])));
        g.fillRect(left, y + 1, right - left, height);
        i = Math.max(i + 1, next);
        continue;
      }
      g.fillRect(left, y + 1, own > 3 ? own - 0.5 : own, height);
      if (this.show.path && this.onPath[i]) {
        g.fillStyle = this.ink;
        g.fillRect(left, y + row.height - 3, own, 2);
      }
      if (own > 60 && height > 9) this.label(g, names[name[i]], left, y + row.height / 2, own, this.looks[kind[i]].colour);
      ++i;
    }
  }

  label(g, text, x, y, width, ground) {
    const shown = text.length * 5.6 < width - 6 ? text : text.slice(0, Math.max(0, Math.floor((width - 12) / 5.6))) + '…';
    if (shown.length < 3) return;
    g.fillStyle = ['#0072B2', '#D55E00', '#7f8ea3'].includes(ground) ? '#fff' : '#000';
    g.fillText(shown, x + 3, y);
  }

  // How many of the row's compute units do what, stacked: products, data, waiting. Stores go on beside
  // products; what of them does not fit above these is cut off.
  drawFolded(g, row, y) {
    const { intervals, first, tracks } = this.timeline;
    const { begin, end, kind } = intervals;
    const pixels = Math.max(1, Math.floor(this.width - this.gutter));
    const perPixel = (this.to - this.from) / pixels;
    const levels = this.levels && this.levels[0].length > pixels ? this.levels : (this.levels = kClassColours.map(() => new Float32Array(pixels + 2)));
    for (const level of levels) level.fill(0);
    for (const track of row.tracks) {
      const last = first[track + 1];
      for (let i = lowerBound(end, first[track], last, this.from); i < last && begin[i] < this.to; ++i) {
        const level = levels[this.looks[kind[i]].of];
        const a = Math.max(0, (begin[i] - this.from) / perPixel);
        const b = Math.min(pixels, (end[i] - this.from) / perPixel);
        const pa = Math.floor(a);
        const pb = Math.floor(b);
        // Differences: what covers pixels in part counts in part.
        if (pa === pb) {
          level[pa] += b - a;
          level[pa + 1] -= b - a;
        } else {
          level[pa] += pa + 1 - a;
          level[pa + 1] += a - pa;
          level[pb] -= 1 - (b - pb);
          level[pb + 1] -= b - pb;
        }
      }
    }
    const most = row.slots ?? (row.slots = new Set(row.tracks.filter((track) => tracks[track].group !== 'stores')).size);
    const height = row.height - 4;
    const base = y + row.height - 2;
    g.fillStyle = this.faint;
    g.globalAlpha = 0.45;
    g.fillRect(this.gutter, y + 2, pixels, height);
    g.globalAlpha = 1;
    // Whole pixels, and one rectangle for neighbours of one height.
    const floor = this.floor && this.floor.length >= pixels ? this.floor.fill(0) : (this.floor = new Int16Array(pixels));
    levels.forEach((level, place) => {
      g.fillStyle = kClassColours[place];
      let sum = 0;
      let begin = 0;
      let low = 0;
      let high = 0;
      for (let p = 0; p <= pixels; ++p) {
        if (p < pixels) sum += level[p];
        const bottom = p < pixels ? floor[p] : -1;
        const top = p < pixels ? Math.min(height, bottom + Math.round(Math.max(0, sum) / most * height)) : -1;
        if (bottom !== low || top !== high) {
          if (high > low) g.fillRect(this.gutter + begin, base - high, p - begin, high - low);
          begin = p;
          low = bottom;
          high = top;
        }
        if (p < pixels) floor[p] = top;
      }
    });
  }

  // Arrows from signals to the waits that saw them, where there are few enough to follow.
  drawFlags(g, offset) {
    const { flags, intervals } = this.timeline;
    const { begin, end, track } = intervals;
    const top = kAxis + kPath;
    const seen = [];
    this.flagsInView = 0;
    for (let f = 0; f < flags.signal.length; ++f) {
      const signal = flags.signal[f];
      const wait = flags.wait[f];
      if (end[wait] < this.from || end[signal] > this.to) continue;
      const chosen = signal === this.selected || wait === this.selected;
      const from = this.rows[this.rowOf[track[signal]]];
      const to = this.rows[this.rowOf[track[wait]]];
      if (!chosen && (from.kind !== 'track' || to.kind !== 'track')) continue;
      const y1 = offset + from.top + from.height / 2;
      const y2 = offset + to.top + to.height / 2;
      if ((y1 < top && y2 < top) || (y1 > this.height && y2 > this.height)) continue;
      ++this.flagsInView;
      if (chosen || seen.length < kMostArrows) seen.push([this.x(end[signal]), y1, this.x(end[wait]), y2, chosen]);
    }
    const many = this.flagsInView > kMostArrows;
    g.strokeStyle = this.ink;
    g.fillStyle = this.ink;
    for (const [x1, y1, x2, y2, chosen] of seen) {
      if (many && !chosen) continue;
      g.lineWidth = chosen ? 2 : 0.8;
      g.globalAlpha = chosen ? 1 : 0.6;
      const bend = Math.max(12, Math.abs(x2 - x1) / 2);
      g.beginPath();
      g.moveTo(x1, y1);
      g.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
      g.stroke();
      g.beginPath();
      g.moveTo(x2, y2);
      g.lineTo(x2 - 5, y2 - 3);
      g.lineTo(x2 - 5, y2 + 3);
      g.fill();
    }
    g.globalAlpha = 1;
  }

  drawMark(g, offset) {
    for (const [interval, wide] of [[this.hovered, 1], [this.selected, 2]]) {
      if (interval < 0) continue;
      const { begin, end, track } = this.timeline.intervals;
      const row = this.rows[this.rowOf[track[interval]]];
      const left = Math.max(this.gutter, this.x(begin[interval]));
      g.strokeStyle = this.ink;
      g.lineWidth = wide;
      g.strokeRect(left, offset + row.top + 0.5, Math.max(2, this.x(end[interval]) - left), row.height - 1);
    }
  }

  drawLabels(g, offset) {
    const top = kAxis + kPath;
    g.save();
    g.beginPath();
    g.rect(0, top, this.width, this.height - top);
    g.clip();
    g.fillStyle = this.paper;
    g.fillRect(0, top, this.gutter - 2, this.height - top);
    g.textAlign = 'left';
    this.rows.forEach((row, index) => {
      const y = offset + row.top;
      if (y + row.height < top || y > this.height) return;
      const x = 6 + (row.kind === 'gpu' ? 0 : 12) + (row.indent ?? 0) * 12;
      g.fillStyle = this.ink;
      g.font = `${row.kind === 'gpu' ? '600 12px' : row.height < 14 ? '9.5px' : '11px'} system-ui, sans-serif`;
      const fold = row.opens ? (row.isOpen ? '▾ ' : '▸ ') : '';
      g.fillText(fold + row.label + (row.note && this.gutter > 100 ? `, ${row.note}` : ''), x, y + row.height / 2 + 0.5);
      if (index === this.cursor && document.activeElement === this.canvas) {
        g.strokeStyle = this.focus;
        g.lineWidth = 2;
        g.strokeRect(1, y + 1, this.gutter - 4, row.height - 2);
      }
    });
    g.restore();
    g.strokeStyle = this.faint;
    g.beginPath();
    g.moveTo(0, top + 0.5);
    g.lineTo(this.width, top + 0.5);
    g.moveTo(this.gutter - 1.5, 0);
    g.lineTo(this.gutter - 1.5, this.height);
    g.stroke();
  }
}
