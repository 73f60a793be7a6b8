// What the timeline shows one below the other: a heading a GPU, its host, streams and copy engines, and its
// compute units, folded into one row a die until they are opened.

// The colour and the word of what an interval is. Three classes fill the rows of dies.
export const kClasses = ['matrix', 'data', 'waiting'];
const kLooks = {
  matmul: { colour: '#0072B2', of: 0 },
  attend: { colour: '#0072B2', of: 0 },
  load: { colour: '#56B4E9', of: 1 },
  reduce: { colour: '#56B4E9', of: 1 },
  combine: { colour: '#56B4E9', of: 1 },
  store: { colour: '#009E73', of: 1 },
  copy: { colour: '#009E73', of: 1 },
  atomic_add: { colour: '#009E73', of: 1 },
  signal: { colour: '#CC79A7', of: 1 },
  wait: { colour: '#E69F00', of: 2 },
  barrier: { colour: '#D55E00', of: 2 },
  claim: { colour: '#F0E442', of: 2 },
  kernel: { colour: '#7f8ea3', of: 0 },
  'copy engine': { colour: '#009E73', of: 1 },
  host: { colour: '#a58f79', of: 2 },
};
export const kClassColours = ['#0072B2', '#009E73', '#E69F00'];

export function looksOf(kinds) {
  return kinds.map((kind) => kLooks[kind] ?? { colour: '#999999', of: 1 });
}

// Which tracks of compute units are those of one die: [{gpu, die, tracks}] in order.
function diesOf(tracks) {
  const dies = [];
  tracks.forEach((track, index) => {
    if (track.die === undefined) return;
    const last = dies[dies.length - 1];
    if (last && last.gpu === track.gpu && last.die === track.die) last.tracks.push(index);
    else dies.push({ gpu: track.gpu, die: track.die, tracks: [index] });
  });
  return dies;
}

// Rows from top to bottom: { kind: 'gpu' | 'track' | 'die', label, height, top, … }. `open` holds keys of what
// is unfolded: "gpu 0", "gpu 0 die 3".
export function rowsOf(timeline, open) {
  const rows = [];
  const dies = diesOf(timeline.tracks);
  const gpus = [...new Set(timeline.tracks.map((track) => track.gpu))];
  for (const gpu of gpus) {
    const key = `gpu ${gpu}`;
    rows.push({ kind: 'gpu', key, gpu, label: `GPU ${gpu}`, height: 22, opens: true, isOpen: open.has(key),
      tracks: timeline.tracks.flatMap((track, index) => (track.gpu === gpu && track.die !== undefined ? [index] : [])) });
    if (!open.has(key)) continue;
    timeline.tracks.forEach((track, index) => {
      if (track.gpu === gpu && track.die === undefined) {
        rows.push({ kind: 'track', gpu, track: index, label: track.name, height: 16 });
      }
    });
    for (const die of dies.filter((one) => one.gpu === gpu)) {
      const dieKey = `gpu ${gpu} die ${die.die}`;
      const units = new Set(die.tracks.map((track) => timeline.tracks[track].name.match(/^CU \d+/)[0])).size;
      rows.push({ kind: 'die', key: dieKey, gpu, die: die.die, label: `die ${die.die}`, note: `${units} CUs`, units, height: 26,
        opens: true, isOpen: open.has(dieKey), tracks: die.tracks });
      if (!open.has(dieKey)) continue;
      for (const track of die.tracks) {
        rows.push({ kind: 'track', gpu, track, label: timeline.tracks[track].name, height: 12, indent: 1 });
      }
    }
  }
  let top = 0;
  for (const row of rows) {
    row.top = top;
    top += row.height;
  }
  return { rows, height: top };
}

// The row that shows each track, or the one that it is folded into; -1: none.
export function rowOfTracks(timeline, rows) {
  const rowOf = new Int32Array(timeline.tracks.length).fill(-1);
  rows.forEach((row, index) => {
    if (row.kind === 'track') rowOf[row.track] = index;
    else if (!row.isOpen) for (const track of row.tracks) rowOf[track] = index;
  });
  timeline.tracks.forEach((track, index) => {
    if (rowOf[index] < 0) rowOf[index] = rows.findIndex((row) => row.kind === 'gpu' && row.gpu === track.gpu);
  });
  return rowOf;
}
