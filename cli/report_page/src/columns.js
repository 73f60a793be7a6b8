// The timeline as it lies in the data: columns of numbers (model/timeline/columns.hpp).
const kArrays = { u8: Uint8Array, u32: Uint32Array, f32: Float32Array };

export function column({ type, base64 }) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return new kArrays[type](bytes.buffer);
}

export function columns(group) {
  return Object.fromEntries(Object.entries(group).map(([name, one]) => [name, column(one)]));
}

// Everything decoded, and for every track where its intervals begin in the columns.
export function decode(timeline) {
  const intervals = columns(timeline.intervals);
  const first = new Uint32Array(timeline.tracks.length + 1);
  for (const track of intervals.track) ++first[track + 1];
  for (let i = 0; i < timeline.tracks.length; ++i) first[i + 1] += first[i];
  return { ...timeline, intervals, first, flags: columns(timeline.flags), path: columns(timeline.path),
    end: Math.max(1, timeline.end) };
}

// The first of sorted numbers[low..high) that is at least `value`.
export function lowerBound(numbers, low, high, value) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
